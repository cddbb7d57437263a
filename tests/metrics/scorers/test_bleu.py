import math

import pytest

from error_codes import InvalidValue
from metrics.scorers.bleu import Bleu, Chrf, Ter
from metrics.scorers.scorer import Score
from tests.codes import refused
from tests.metrics.scorers.conftest import HOSTILE_PAIRS, LONG_PAIRS, example, examples

SCORED_HOSTILE = [pair for pair in HOSTILE_PAIRS + LONG_PAIRS if pair[1].strip()]


def bleu(response: str, reference: str) -> float:
    import sacrebleu

    return sacrebleu.sentence_bleu(response, [reference], use_effective_order=True).score


def chrf(response: str, reference: str) -> float:
    import sacrebleu

    return sacrebleu.sentence_chrf(response, [reference]).score


def ter(response: str, reference: str) -> float:
    import sacrebleu

    return sacrebleu.sentence_ter(response, [reference]).score


THREE = pytest.mark.parametrize(
    ("scorer", "oracle"), [(Bleu(), bleu), (Chrf(), chrf), (Ter(), ter)]
)


@THREE
def test_the_scores_are_sacrebleus_on_lmstyle(scorer, oracle, lmstyle_pairs):
    pairs = lmstyle_pairs[:: 1 if scorer.name == "sacrebleu" else 8]  # the others are slow
    values = [one[scorer.name].value for one in scorer.score(examples(pairs))]
    assert values == pytest.approx([oracle(*pair) for pair in pairs], abs=1e-9)


@THREE
def test_the_scores_are_sacrebleus_on_hostile_texts(scorer, oracle):
    values = [one[scorer.name].value for one in scorer.score(examples(SCORED_HOSTILE))]
    assert values == pytest.approx([oracle(*pair) for pair in SCORED_HOSTILE], abs=1e-9)


def test_most_stored_lmstyle_scores_of_2023_are_the_same_and_the_rest_share_no_ngram(
    shared_data, lmstyle_pairs
):
    import pandas as pd

    stored = pd.read_csv(shared_data / "lmstyle" / "metric_scores.csv")["BLEU"]
    values = [one["sacrebleu"].value for one in Bleu().score(examples(lmstyle_pairs))]
    differ = [value for value, old in zip(values, stored, strict=True) if abs(value - old) > 1e-6]
    assert len(differ) == 194
    assert set(differ) == {0.0}


@pytest.mark.parametrize("scorer", [Bleu(), Chrf()])
def test_an_empty_response_scores_zero_and_a_blank_reference_is_undefined(scorer):
    empty, blank = scorer.score([example("", "so"), example("so", " ")])
    assert empty[scorer.name] == Score(0.0)
    assert math.isnan(blank[scorer.name].value)
    assert blank[scorer.name].reason.code == "missing_field"


def test_ter_counts_errors_so_lower_is_better_and_an_empty_response_has_a_hundred():
    empty, blank, long = Ter().score(
        [example("", "so it is"), example("so", ""), example("a b c d", "so")]
    )
    assert empty["ter"].value == 100.0
    assert math.isnan(blank["ter"].value)
    assert long["ter"].value == 400.0
    assert not Ter().higher_is_better


def test_the_signature_is_sacrebleus_own_with_the_parameters():
    import sacrebleu

    metric = sacrebleu.BLEU(effective_order=True)
    metric.sentence_score("a", ["a"])
    assert Bleu().signature == f"BLEU|{metric.get_signature()}"
    assert "eff:yes" in Bleu().signature
    assert sacrebleu.__version__ in Bleu().signature
    assert "tok:zh" in Bleu(tokenize="zh").signature
    assert "case:lc" in Bleu(lowercase=True).signature
    assert Chrf(word_order=2, beta=1).signature.startswith("chrF1++|")
    assert "nc:4" in Chrf(char_order=4).signature
    assert "case:mixed" in Ter(case_sensitive=True).signature
    assert "punct:no" in Ter(no_punct=True).signature
    assert "norm:yes" in Ter(normalized=True).signature


@pytest.mark.parametrize(
    ("scorer", "parameter", "code"),
    [
        (Bleu, {"tokenize": "flores200"}, "unknown_tokenize"),  # it needs a download
        (Chrf, {"char_order": 0}, "char_order_out_of_range"),
        (Chrf, {"word_order": -1}, "word_order_out_of_range"),
        (Chrf, {"beta": 0}, "beta_out_of_range"),
    ],
)
def test_a_parameter_that_is_out_of_range_is_named(scorer, parameter, code):
    with refused(InvalidValue, code):
        scorer(**parameter)
