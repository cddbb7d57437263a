import math
from collections.abc import Sequence

import pytest

from metrics.scorers.scorer import Example, Score, Scorer, Scores, sign, undefined
from tests.metrics.scorers.examples import example, examples


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


def test_every_example_gets_every_output_in_order():
    other = example("x", "x", context="y")
    scores = SharedWords().score([COMPLETE, other, COMPLETE])
    assert [one["shared"].value for one in scores] == [1, 1, 1]
    assert [one["shared_context"].value for one in scores] == [2, 0, 2]


@pytest.mark.parametrize("blank", [None, "", " \n"])
def test_a_missing_or_blank_field_gives_nan_and_names_the_field(blank):
    (scores,) = SharedWords().score([example("a", blank, context="a")])
    assert all(math.isnan(score.value) for score in scores.values())
    assert {score.reason for score in scores.values()} == {"no reference"}


def test_all_missing_fields_are_named():
    (scores,) = SharedWords().score([example("a", None)])
    assert scores["shared"].reason == "no context and no reference"


def test_an_example_that_cannot_be_scored_does_not_shift_the_others():
    gap = example("a", None, context="a")
    scores = SharedWords().score([gap, COMPLETE, COMPLETE, gap, gap, gap, COMPLETE])
    undefined_at = [math.isnan(one["shared"].value) for one in scores]
    assert undefined_at == [True, False, False, True, True, True, False]


def test_a_batch_with_nothing_to_measure_is_not_measured():
    scorer = SharedWords()
    gap = example("a", None)
    scorer.score([COMPLETE, COMPLETE, gap, gap, COMPLETE])
    assert scorer.batch_lengths == [2, 1]


def test_batches_hand_over_results_before_the_next_batch_is_measured():
    scorer = SharedWords()
    taken = scorer.batches([COMPLETE] * 5)
    batch, scores = next(taken)
    assert (len(batch), len(scores), scorer.batch_lengths) == (2, 2, [2])
    assert [len(batch) for batch, _ in taken] == [2, 1]


def test_progress_counts_every_example_once():
    finished: list[int] = []
    SharedWords().score([COMPLETE] * 5, progress=finished.append)
    assert finished == [2, 2, 1]


def test_no_examples_no_scores():
    assert SharedWords().score([]) == []


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
    ("scores", "complaint"),
    [
        ([], "0 scores for 1"),
        ([{"other": Score(1.0)}], "other"),
        ([{"careless": Score(math.nan)}], "NaN without a reason"),
    ],
)
def test_a_scorer_that_breaks_its_word_is_stopped(scores, complaint):
    with pytest.raises(ValueError, match=complaint):
        Careless(scores).score(examples([("a", None)]))


def test_nan_with_a_reason_is_a_score():
    (scores,) = Careless([{"careless": undefined("unparsed")}]).score(examples([("a", None)]))
    assert scores["careless"].reason == "unparsed"


def test_the_direction_is_reported_for_each_output():
    class Errors(Careless):
        outputs = ("careless", "careless_errors")
        lower_is_better = frozenset({"careless_errors"})

    scorer = Errors([])
    assert scorer.higher_is_better
    assert scorer.higher_is_better_for("careless")
    assert not scorer.higher_is_better_for("careless_errors")
    with pytest.raises(ValueError, match="output must be one of careless, careless_errors"):
        scorer.higher_is_better_for("other")


def test_a_signature_refuses_its_own_separator():
    with pytest.raises(ValueError, match="model"):
        sign("embedding", model="a|b")
