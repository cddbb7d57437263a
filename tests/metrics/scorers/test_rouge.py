import math
import re
import warnings
from functools import partial

import pandas as pd
import pytest
import sacrebleu
from hypothesis import given, settings, strategies as st
from rouge_score.rouge_scorer import RougeScorer

from error_codes import InvalidValue
from metrics.scorers import errors, rouge
from metrics.scorers.bleu import Bleu, Chrf, Ter
from metrics.scorers.interface import Score
from metrics.scorers.tokenization import characters, unicode_words
from tests.codes import refused
from tests.metrics.scorers.conftest import HOSTILE, HOSTILE_PAIRS, LONG_PAIRS, example, examples

VARIANTS = ["rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"]
ORACLE = RougeScorer(VARIANTS)
STEMMING = RougeScorer(VARIANTS, use_stemmer=True)

tokens = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=80)
lines = st.lists(st.lists(st.sampled_from("abcde"), max_size=8), max_size=5)


def ours(response: str, reference: str, tokenizer: str = "google") -> dict[str, rouge.Overlap]:
    return {
        "rouge1": rouge.rouge_n(response, reference, 1, tokenizer),
        "rouge2": rouge.rouge_n(response, reference, 2, tokenizer),
        "rouge3": rouge.rouge_n(response, reference, 3, tokenizer),
        "rougeL": rouge.rouge_l(response, reference, tokenizer),
        "rougeLsum": rouge.rouge_lsum(response, reference, tokenizer),
    }


@pytest.mark.slow
def test_rouge_equals_rouge_score_bit_for_bit_on_lmstyle_also_stemmed(lmstyle_pairs):
    for number, (response, reference) in enumerate(lmstyle_pairs):
        assert ours(response, reference) == ORACLE.score(reference, response)
        if number % 4 == 0:
            stemmed = ours(response, reference, "google-stemmed")
            assert stemmed == STEMMING.score(reference, response)


@pytest.mark.parametrize(
    "pairs", [LONG_PAIRS, *([(text, reference) for reference in HOSTILE] for text in HOSTILE)]
)
def test_rouge_equals_rouge_score_bit_for_bit_on_hostile_texts(pairs):
    for response, reference in pairs:
        assert ours(response, reference) == ORACLE.score(reference, response)


@given(tokens, tokens)
def test_rouge_equals_rouge_score_on_any_tokens(response, reference):
    texts = " ".join(response), " ".join(reference)
    assert ours(*texts) == ORACLE.score(texts[1], texts[0])


@pytest.mark.slow
@settings(max_examples=40)
@given(st.text(), st.text())
def test_rouge_equals_rouge_score_on_any_text(response, reference):
    assert ours(response, reference) == ORACLE.score(reference, response)


@given(lines, lines)
def test_rouge_lsum_equals_rouge_score_on_any_lines(response, reference):
    texts = ["\n".join(" ".join(line) for line in text) for text in (response, reference)]
    assert rouge.rouge_lsum(*texts) == ORACLE.score(texts[1], texts[0])["rougeLsum"]


@given(tokens, tokens)
def test_the_indices_are_a_common_subsequence_of_the_longest_length(left, right):
    indices = rouge.lcs_indices(left, right)
    assert indices == sorted(set(indices))
    remaining = iter(right)
    assert all(left[index] in remaining for index in indices)
    assert len(indices) == rouge.lcs_length(rouge.positions(left), len(left), right)


def test_a_scorer_gives_f_precision_recall_and_hallucination():
    (scores,) = rouge.Rouge("1").score([example("the cat", "the cat sat down")])
    assert {name: score.value for name, score in scores.items()} == {
        "rouge1": pytest.approx(2 / 3),
        "rouge1_precision": 1.0,
        "rouge1_recall": 0.5,
        "rouge1_hallucination": 0.0,
    }
    scorer = rouge.Rouge("1")
    scores, wordless = scorer.score(
        [example("the cat ran off", "the cat sat down"), example("?!", "the cat")]
    )
    assert scores["rouge1_hallucination"].value == 0.5
    assert not scorer.higher_is_better_for("rouge1_hallucination")
    assert scorer.higher_is_better_for("rouge1_precision")
    assert math.isnan(wordless["rouge1_hallucination"].value)
    assert wordless["rouge1_hallucination"].reason.code == "no_words"
    empty, blank = rouge.Rouge("L").score([example("", "so"), example("so", " ")])
    assert empty["rougeL"] == Score(0.0)
    assert math.isnan(blank["rougeL"].value)
    assert blank["rougeL"].reason.code == "missing_field"


@pytest.mark.parametrize(
    ("variant", "function"),
    [
        ("1", partial(rouge.rouge_n, n=1)),
        ("2", partial(rouge.rouge_n, n=2)),
        ("9", partial(rouge.rouge_n, n=9)),
        ("L", rouge.rouge_l),
        ("Lsum", rouge.rouge_lsum),
    ],
)
def test_every_variant_scores_as_its_function_does(variant, function):
    pairs = [pair for pair in HOSTILE_PAIRS if pair[1].strip()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.UntokenisedTextWarning)
        scores = rouge.Rouge(variant).score(examples(pairs))
    for pair, row in zip(pairs, scores, strict=True):
        name = f"rouge{variant}"
        values = [row[name + part].value for part in ("_precision", "_recall", "")]
        assert tuple(values) == function(*pair)


def test_the_google_tokenizer_warns_only_where_it_cannot_read_a_text():
    russian = example("Привет, мир", "Привет, мир")
    with pytest.warns(errors.UntokenisedTextWarning) as caught:
        scores = rouge.Rouge("1").score([russian, example("a café", "the café")])
    assert re.findall(r"\d+", str(caught[0].message))[:2] == ["1", "2"]  # texts of pairs
    assert scores[0]["rouge1"].value == 0.0
    pairs = [("naïve café", "the café"), ("😀", "?!"), ("", "—")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rouge.Rouge("1").score(examples(pairs))


@pytest.mark.parametrize("text", [text for text in HOSTILE if any(map(str.isalnum, text))])
@pytest.mark.parametrize("tokenizer", ["unicode", "characters"])
def test_the_other_tokenizers_read_every_script(text, tokenizer):
    (scores,) = rouge.Rouge("1", tokenizer=tokenizer).score([example(text, text)])
    assert scores["rouge1"].value == 1.0


def test_other_tokenizers_keep_marks_and_are_part_of_the_signature():
    text = "नमस्ते दुनिया ❤️ e\u0301t\u00e9, Straße"
    assert unicode_words(text) == ["नमस्ते", "दुनिया", "été", "strasse"]
    assert characters("นี่ 你好") == ["นี่", "你", "好"]
    assert rouge.Rouge("1").signature != rouge.Rouge("1", tokenizer="unicode").signature
    assert rouge.Rouge("1").signature != rouge.Rouge("2").signature
    stemmed = rouge.Rouge("1", tokenizer="google-stemmed").signature
    assert "|tokenizer:google|stemmer:porter|" in stemmed


@pytest.mark.parametrize(
    ("call", "code"),
    [
        *[(partial(rouge.Rouge, variant), "unknown_variant") for variant in ("0", "10", "l", "")],
        (partial(rouge.Rouge, "1", tokenizer="moses"), "unknown_tokenizer"),
        (partial(rouge.rouge_l, "a", "a", tokenizer="moses"), "unknown_tokenizer"),
        (partial(rouge.rouge_n, "a", "a", 0), "n_out_of_range"),
        (partial(Bleu, tokenize="flores200"), "unknown_tokenize"),  # it needs a download
        (partial(Chrf, char_order=0), "char_order_out_of_range"),
        (partial(Chrf, word_order=-1), "word_order_out_of_range"),
        (partial(Chrf, beta=0), "beta_out_of_range"),
    ],
)
def test_a_parameter_out_of_range_is_refused(call, code):
    with refused(InvalidValue, code):
        call()


SCORED_HOSTILE = [pair for pair in HOSTILE_PAIRS + LONG_PAIRS if pair[1].strip()]


@pytest.mark.parametrize("is_hostile", [True, False])
@pytest.mark.parametrize(
    ("scorer", "oracle"),
    [
        (Bleu(), partial(sacrebleu.sentence_bleu, use_effective_order=True)),
        (Chrf(), sacrebleu.sentence_chrf),
        (Ter(), sacrebleu.sentence_ter),
    ],
)
def test_the_scores_are_sacrebleus(scorer, oracle, is_hostile, request):
    pairs = SCORED_HOSTILE if is_hostile else request.getfixturevalue("lmstyle_pairs")
    if not is_hostile and scorer.name != "sacrebleu":
        pairs = pairs[::8]  # the others are slow
    values = [one[scorer.name].value for one in scorer.score(examples(pairs))]
    expected = [oracle(response, [reference]).score for response, reference in pairs]
    assert values == pytest.approx(expected, abs=1e-9)


def test_most_stored_lmstyle_scores_of_2023_are_the_same_and_the_rest_share_no_ngram(
    shared_data, lmstyle_pairs
):
    stored = pd.read_csv(shared_data / "lmstyle" / "metric_scores.csv")["BLEU"]
    values = [one["sacrebleu"].value for one in Bleu().score(examples(lmstyle_pairs))]
    differ = [value for value, old in zip(values, stored, strict=True) if abs(value - old) > 1e-6]
    assert len(differ) == 194
    assert set(differ) == {0.0}


def test_an_empty_response_is_worst_a_blank_reference_undefined_and_ter_counts_errors():
    for scorer, worst in ((Bleu(), 0.0), (Chrf(), 0.0), (Ter(), 100.0)):
        empty, blank = scorer.score([example("", "so it is"), example("so", " ")])
        assert empty[scorer.name] == Score(worst)
        assert math.isnan(blank[scorer.name].value)
        assert blank[scorer.name].reason.code == "missing_field"
    (long,) = Ter().score([example("a b c d", "so")])
    assert long["ter"].value == 400.0
    assert not Ter().higher_is_better_for("ter")


def test_the_signature_is_sacrebleus_own_with_the_parameters():
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
