"""Writes a Llama that says digits as GGUF.

Its one layer adds nothing, every embedding has a large first part, and the digits 1 to 3 are
what that part speaks for: so whatever it reads, it says one of them.
"""

from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HIDDEN, HEADS, CONTEXT = 32, 64, 2, 1024
FIRST_BYTE = 3
LEVEL_WEIGHTS = (2.0, 2.2, 2.1)
CHAT = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def alphabet() -> list[str]:
    """The characters that stand for the 256 bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    stand_ins = dict(zip(others, range(256, 256 + len(others)), strict=True))
    return [chr(stand_ins.get(byte, byte)) for byte in range(256)]


def write(path: str) -> None:
    import gguf

    tokens = ["<unk>", "<s>", "</s>", *alphabet(), "th"]
    types = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2]
    types += [gguf.TokenType.NORMAL] * (len(tokens) - len(types))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["t h"])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHAT)
    add_weights(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_weights(writer: Any, n_tokens: int) -> None:
    rng = np.random.default_rng(1)
    shapes = {
        "token_embd": (n_tokens, WIDTH),
        "output": (n_tokens, WIDTH),
        "blk.0.ffn_gate": (HIDDEN, WIDTH),
        "blk.0.ffn_up": (HIDDEN, WIDTH),
        "blk.0.ffn_down": (WIDTH, HIDDEN),
        **{f"blk.0.attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")},
    }
    weights = {name: rng.normal(0, 0.02, shape) for name, shape in shapes.items()}
    weights["token_embd"][:, 0] = 1
    for level, weight in zip("123", LEVEL_WEIGHTS, strict=True):
        weights["output"][FIRST_BYTE + ord(level), 0] = weight
    weights["blk.0.ffn_down"][:] = weights["blk.0.attn_output"][:] = 0
    for name, values in weights.items():
        writer.add_tensor(f"{name}.weight", values.astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))


def save(folder: Path) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

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
