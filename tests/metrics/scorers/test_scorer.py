import math
from collections.abc import Sequence

import pytest

from error_codes import InvalidValue
from metrics.scorers.plain import DistinctN, Length, Repetition, corpus_distinct
from metrics.scorers.scorer import Example, Score, Scorer, Scores, sign, undefined
from tests.codes import refused
from tests.metrics.scorers.conftest import HOSTILE, example, examples


class SharedWords(Scorer):
    """How many words a response shares with its reference and with its context."""

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


def test_examples_get_their_outputs_in_order_whatever_cannot_be_scored():
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


@pytest.mark.parametrize("blank", [None, "", " \n"])
def test_a_missing_or_blank_field_gives_nan_and_names_the_field(blank):
    one, both = SharedWords().score([example("a", blank, context="a"), example("a", blank)])
    for scores, names in ((one, ["reference"]), (both, ["context", "reference"])):
        assert all(math.isnan(score.value) for score in scores.values())
        [reason] = {score.reason for score in scores.values()}
        assert reason.code == "missing_field"
        assert [name for name in ("context", "reference") if name in reason] == names


def test_batches_hand_over_results_before_the_next_batch_is_measured():
    scorer = SharedWords()
    taken = scorer.batches([COMPLETE] * 5)
    batch, scores = next(taken)
    assert (len(batch), len(scores), scorer.batch_lengths) == (2, 2, [2])
    assert [len(batch) for batch, _ in taken] == [2, 1]
    finished: list[int] = []
    scorer.score([COMPLETE] * 5, progress=finished.append)
    assert finished == [2, 2, 1]
    assert scorer.score([]) == []


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
    assert scorer.higher_is_better
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
    assert not Repetition().higher_is_better
    assert DistinctN().higher_is_better
    assert "|n:3|" in DistinctN(n=3).signature
    assert "|n:2|" in Repetition(n=2).signature


@pytest.mark.parametrize(
    ("scorer", "response"),
    [(DistinctN(n=1), "?!"), (DistinctN(n=2), "yes"), (Repetition(), "yes it is")],
)
def test_a_response_without_an_ngram_is_undefined_and_not_0(scorer, response):
    (scores,) = scorer.score([example(response, None)])
    assert math.isnan(scores[scorer.name].value)
    assert scores[scorer.name].reason.code == "too_few_words"


@pytest.mark.parametrize("scorer", [DistinctN(n=1), Repetition(n=1)])
@pytest.mark.parametrize("text", HOSTILE)
def test_shares_lie_between_0_and_1_or_have_a_reason(scorer, text):
    (scores,) = scorer.score([example(text, None)])
    score = scores[scorer.name]
    assert score.reason or 0 <= score.value <= 1


@pytest.mark.parametrize("make", [DistinctN, Repetition])
def test_0_grams_are_refused(make):
    with refused(InvalidValue, "n_out_of_range"):
        make(n=0)
