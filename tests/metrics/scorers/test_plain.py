import math

import pytest

from metrics.scorers.plain import DistinctN, Length, Repetition, corpus_distinct
from metrics.scorers.scorer import Scorer
from tests.metrics.scorers.conftest import HOSTILE
from tests.metrics.scorers.examples import example


def value(scorer: Scorer, response: str) -> float:
    (scores,) = scorer.score([example(response, None)])
    return scores[scorer.name].value


def test_length_counts_words_of_any_script_and_characters():
    (scores,) = Length().score([example("Привет, мир! 😀", None)])
    assert scores["length"].value == 2
    assert scores["length_characters"].value == 14


def test_each_length_is_signed_by_its_own_unit():
    scorer = Length()
    assert scorer.signature_for("length") == scorer.signature
    assert scorer.signature == "length|unit:words|tokenizer:unicode|version:1"
    assert scorer.signature_for("length_characters") == "length|unit:characters|version:1"


def test_an_empty_response_has_length_0():
    assert value(Length(), "") == 0


def test_distinct_n_is_the_share_of_different_ngrams():
    assert value(DistinctN(n=1), "a b a b") == 0.5
    assert value(DistinctN(n=2), "a b a b") == pytest.approx(2 / 3)
    assert value(DistinctN(), "A b, a B") == pytest.approx(2 / 3)


def test_repetition_is_the_share_of_ngrams_that_come_again():
    assert value(Repetition(), "so it goes on so it goes on so it goes on") == pytest.approx(5 / 9)
    assert value(Repetition(), "one two three four five") == 0


@pytest.mark.parametrize(
    ("scorer", "response", "reason"),
    [
        (DistinctN(n=1), "?!", "no words"),
        (DistinctN(n=2), "yes", "fewer than 2 words"),
        (Repetition(), "yes it is", "fewer than 4 words"),
    ],
)
def test_a_response_without_an_ngram_is_undefined_and_not_0(scorer, response, reason):
    (scores,) = scorer.score([example(response, None)])
    assert math.isnan(scores[scorer.name].value)
    assert scores[scorer.name].reason == reason


@pytest.mark.parametrize("scorer", [DistinctN(n=1), Repetition(n=1)])
@pytest.mark.parametrize("text", HOSTILE)
def test_shares_lie_between_0_and_1_or_have_a_reason(scorer, text):
    (scores,) = scorer.score([example(text, None)])
    score = scores[scorer.name]
    assert score.reason or 0 <= score.value <= 1


def test_distinct_n_of_a_corpus_counts_ngrams_across_responses():
    assert corpus_distinct(["a b", "a b"], 2) == 0.5
    assert math.isnan(corpus_distinct(["", "a"], 2))


def test_directions_and_parameters_are_declared():
    assert not Repetition().higher_is_better
    assert DistinctN().higher_is_better
    assert "|n:3|" in DistinctN(n=3).signature
    assert "|n:2|" in Repetition(n=2).signature


@pytest.mark.parametrize("make", [DistinctN, Repetition])
def test_0_grams_are_refused(make):
    with pytest.raises(ValueError, match="n must be at least 1"):
        make(n=0)
