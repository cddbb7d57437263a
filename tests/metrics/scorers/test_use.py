import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.use import UniversalSentenceEncoder
from tests.metrics.scorers.examples import example, examples

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SAVE = f"""
import sys, tensorflow as tf

class Letters(tf.Module):
    def __init__(self):
        self.letters = tf.Variable(list({LETTERS!r}))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        count = lambda letter: tf.strings.length(texts) - tf.strings.length(
            tf.strings.regex_replace(texts, letter, ""))
        return tf.cast(tf.stack([count(x) for x in {list(LETTERS)!r}], axis=1), tf.float32)

tf.saved_model.save(Letters(), sys.argv[1])
"""


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel that takes texts, as the encoder does, and counts their letters."""
    pytest.importorskip("tensorflow", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("models") / "letters"
    subprocess.run([sys.executable, "-c", SAVE, folder], check=True, capture_output=True)
    return folder


def test_it_is_the_cosine_of_what_the_saved_model_says(letters):
    pairs = [("abba", "ab"), ("abc", "xyz"), ("aab", "abb"), *[("ab" * n, "b") for n in range(99)]]
    scores = UniversalSentenceEncoder(model=letters).score(examples(pairs))
    values = [one["use"].value for one in scores[:3]]
    assert values == pytest.approx([1.0, 0.0, 4 / 5])
    assert len(scores) == 102


def test_a_text_without_embedding_and_a_blank_reference_are_undefined(letters):
    zero, blank = UniversalSentenceEncoder(model=str(letters)).score(
        examples([("?!", "a"), ("a", " ")])
    )
    assert math.isnan(zero["use"].value)
    assert zero["use"].reason == "an embedding is all zeros"
    assert blank["use"].reason == "no reference"


def test_the_signature_names_the_model_by_its_content(letters, tmp_path):
    signature = UniversalSentenceEncoder(model=letters).signature
    shutil.copytree(letters, tmp_path / "letters")
    assert UniversalSentenceEncoder(model=tmp_path / "letters").signature == signature
    variables = tmp_path / "letters" / "variables" / "variables.data-00000-of-00001"
    variables.write_bytes(variables.read_bytes() + b"\0")
    assert UniversalSentenceEncoder(model=tmp_path / "letters").signature != signature
    assert "|model:letters|weights:" in signature
    assert "|version:1-tensorflow-" in signature


def test_without_a_folder_it_says_what_it_needs(tmp_path):
    with pytest.raises(ModelUnavailableError, match="model=FOLDER"):
        UniversalSentenceEncoder().score([example("a", "a")])
    with pytest.raises(ModelUnavailableError, match=r"no saved_model\.pb"):
        UniversalSentenceEncoder(model=tmp_path).score([example("a", "a")])


def test_without_tensorflow_it_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ModelUnavailableError, match="pip install tensorflow-cpu"):
        UniversalSentenceEncoder(model=tmp_path).score([example("a", "a")])
