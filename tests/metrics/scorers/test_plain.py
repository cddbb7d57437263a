import math

import pytest

from error_codes import InvalidValue
from metrics.scorers.plain import DistinctN, Length, Repetition, corpus_distinct
from metrics.scorers.scorer import Scorer
from tests.codes import refused
from tests.metrics.scorers.conftest import HOSTILE
from tests.metrics.scorers.examples import example

ABAB = "a b a b"


def value(scorer: Scorer, response: str) -> float:
    (scores,) = scorer.score([example(response, None)])
    return scores[scorer.name].value


def test_length_counts_words_of_any_script_and_characters():
    scores, empty = Length().score([example("Привет, мир! 😀", None), example("", None)])
    assert scores["length"].value == 2
    assert scores["length_characters"].value == 14
    assert empty["length"].value == 0


def test_each_length_is_signed_by_its_own_unit():
    scorer = Length()
    assert scorer.signature_for("length") == scorer.signature
    assert scorer.signature == "length|unit:words|tokenizer:unicode|version:1"
    assert scorer.signature_for("length_characters") == "length|unit:characters|version:1"


def test_shares_of_different_and_of_repeated_ngrams_are_those_by_hand():
    assert value(DistinctN(n=1), ABAB) == 0.5
    assert value(DistinctN(n=2), ABAB) == pytest.approx(2 / 3)
    assert value(DistinctN(), "A b, a B") == pytest.approx(2 / 3)
    assert value(Repetition(), " ".join(["so it goes on"] * 3)) == pytest.approx(5 / 9)
    assert value(Repetition(), " ".join("abcde")) == 0


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
    with refused(InvalidValue, "n_out_of_range"):
        make(n=0)
