import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from metrics.scorers.interface import Example


def example(response: str, reference: str | None, **fields: str) -> Example:
    return Example(item="1", system="a", response=response, reference=reference, **fields)


def examples(pairs: Iterable[tuple[str, str | None]]) -> list[Example]:
    return [example(response, reference) for response, reference in pairs]


HOSTILE = [
    "",
    " \t\n",
    "?!... -- ;;",
    "😀🏳️‍🌈 👩‍👩‍👧",
    "مرحبا بالعالم، كيف حالك؟",
    "שלום mixed עם Latin 123",
    "你好，世界。再见",
    "नमस्ते दुनिया",
    "İstanbul K ﬁne Straße",
    "a\u0301 e\u200bf g\u00a0h \ufeff",
    "one\ntwo\n\nthree one",
    "word " * 100,
    "x" * 3000,
    "the cat the cat the the dog",
    "dog the cat the\r\ncat\u2028the the",
    "Don't_do-it, No. 7 (3.14)!",
]
HOSTILE_PAIRS = [(response, reference) for response in HOSTILE for reference in HOSTILE]


def cut_to(caught: pytest.WarningsRecorder) -> list[int]:
    """Texts that were cut, texts and tokens read, as the one warning of cut texts says."""
    [warning] = caught
    return [int(number) for number in re.findall(r"\b\d+\b", str(warning.message))[:3]]


LONG = " ".join(f"word{index % 977}" for index in range(10_000))
LONG_PAIRS = [(LONG, "word1 word2 so"), ("word7 word5", LONG)]


@pytest.fixture
def lmstyle_pairs(shared_data: Path) -> list[tuple[str, str]]:
    with (shared_data / "lmstyle" / "metric_scores.csv").open(newline="") as file:
        pairs = [(row["output"], row["reference"]) for row in csv.DictReader(file)]
    assert len(pairs) == 1600
    return pairs


TINY_BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
TINY_BERT |= {"intermediate_size": 32}
TRAINING_TEXTS = [
    "Good day, how may I help you this morning?",
    "Hey, what's up? I love live music, that's why I go to concerts.",
    "###Speaker: I took the train to work the other day. ###Formal Response: I am sorry.",
    "###Speaker: Stocks fell sharply on Monday. ###Response: That is bad news.",
    "Привет, мир! 😀 你好，世界。 مرحبا",
]


def save_byte_level_tokenizer(folder: Path) -> int:
    """Train a byte-level BPE on a few sentences; return how many tokens it knows."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING_TEXTS, trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(folder)
    return tokenizer.get_vocab_size()


def save_tiny_model(
    factory: pytest.TempPathFactory, name: str, model: str, seed: int, **options: Any
) -> Path:
    """A random model of transformers with a byte-level tokeniser, such as "LlamaForCausalLM"."""
    import torch
    import transformers

    folder = factory.mktemp("models") / name
    vocab_size = save_byte_level_tokenizer(folder)
    architecture = getattr(transformers, model)
    config = architecture.config_class(vocab_size=vocab_size, initializer_range=0.5, **options)
    torch.manual_seed(seed)
    architecture(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of two layers: rotary positions, 256 of them."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "max_position_embeddings": 256}
    return save_tiny_model(tmp_path_factory, "tiny-llama", "LlamaForCausalLM", 2, **sizes)


@pytest.fixture(scope="session")
def tiny_bloom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Bloom of two layers: its positions are distances, so it has no window."""
    sizes = {"hidden_size": 32, "n_layer": 2, "n_head": 4}
    return save_tiny_model(tmp_path_factory, "tiny-bloom", "BloomForCausalLM", 3, **sizes)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers folder: a random BERT of two layers that reads 12 tokens."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("models")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "sat", "ran", "off"]
    tokenizer = BertTokenizer(vocab={word: index for index, word in enumerate(words)})
    tokenizer.save_pretrained(folder / "bert")
    torch.manual_seed(1)
    config = BertConfig(vocab_size=len(words), initializer_range=0.5, **TINY_BERT)
    BertModel(config).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=12)
    pooling = Pooling(transformer.get_embedding_dimension())
    SentenceTransformer(modules=[transformer, pooling], device="cpu").save(str(folder / "tiny"))
    return folder / "tiny"


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import processors
    from transformers import AutoTokenizer

    sizes = TINY_BERT | {"max_position_embeddings": 64}
    folder = save_tiny_model(tmp_path_factory, "tiny-roberta", "RobertaModel", 4, **sizes)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.cls_token, tokenizer.sep_token = "<s>", "</s>"
    tokenizer.model_max_length = 60
    tokenizer.backend_tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", tokenizer.sep_token_id), ("<s>", tokenizer.cls_token_id)
    )
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_classifier(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    folder = tmp_path_factory.mktemp("models") / "tiny-styles"
    tokenizer = BertTokenizer.from_pretrained(tiny_bert.parent / "bert")
    tokenizer.model_max_length = 12
    tokenizer.save_pretrained(folder)
    labels = ["formal", "informal", "POSITIVE"]
    config = BertConfig(
        vocab_size=len(tokenizer),
        initializer_range=0.8,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        **(TINY_BERT | {"num_hidden_layers": 1}),
    )
    torch.manual_seed(5)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def save_bag_of_words(factory: pytest.TempPathFactory, words: list[str]) -> Path:
    """A sentence-transformers folder without weights: counts of these words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    folder = factory.mktemp("models") / "bag"
    SentenceTransformer(modules=[BoW(words)], device="cpu").save(str(folder))
    return folder


@pytest.fixture(scope="session")
def bag_of_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bag_of_words(tmp_path_factory, ["cat", "dog", "ran", "sat"])
