"""Saves the same kind of Llama, one that says digits, as transformers loads it."""

from pathlib import Path


def save(folder: Path) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from benchmarks.model_servers.tiny_gguf import CHAT, LEVEL_WEIGHTS, WIDTH, alphabet

    words = ["<unk>", "<s>", "</s>", *alphabet()]
    tokenizer = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    fast.chat_template = CHAT
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 1
        for level, weight in zip("123", LEVEL_WEIGHTS, strict=True):
            model.lm_head.weight[words.index(level), 0] = weight
        model.model.layers[0].mlp.down_proj.weight.zero_()
        model.model.layers[0].self_attn.o_proj.weight.zero_()
    model.save_pretrained(folder)
    return folder
