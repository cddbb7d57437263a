import math
import shutil
import sys
from pathlib import Path

import pytest

from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.use import UniversalSentenceEncoder
from tests.codes import refused
from tests.metrics.scorers.conftest import example, examples


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
    scores = UniversalSentenceEncoder(model=letters).score(examples(pairs))
    values = [one["use"].value for one in scores[:3]]
    assert values == pytest.approx([1.0, 0.0, 4 / 5])
    assert len(scores) == 102
    zero, blank = UniversalSentenceEncoder(model=str(letters)).score(
        examples([("?!", "a"), ("a", " ")])
    )
    assert math.isnan(zero["use"].value)
    assert zero["use"].reason.code == "zero_embedding"
    assert blank["use"].reason.code == "missing_field"


def test_the_signature_names_the_model_by_its_content(letters, tmp_path):
    signature = UniversalSentenceEncoder(model=letters).signature
    shutil.copytree(letters, tmp_path / "letters")
    assert UniversalSentenceEncoder(model=tmp_path / "letters").signature == signature
    variables = tmp_path / "letters" / "variables" / "variables.data-00000-of-00001"
    variables.write_bytes(variables.read_bytes() + b"\0")
    assert UniversalSentenceEncoder(model=tmp_path / "letters").signature != signature
    assert "|model:letters|weights:" in signature
    assert "|version:1-tensorflow-" in signature


def test_without_a_model_or_tensorflow_it_says_what_it_needs(tmp_path, monkeypatch):
    def code(model=None):
        with refused(ModelUnavailableError) as raised:
            UniversalSentenceEncoder(model=model).score([example("a", "a")])
        return raised.value.code

    assert (code(), code(tmp_path)) == ("model_missing", "no_saved_model")
    (tmp_path / "saved_model.pb").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert code(tmp_path) == "no_tensorflow"
