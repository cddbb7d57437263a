import math
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from error_codes import InvalidValue
from metrics.scorers.bertscore import BertScore
from metrics.scorers.errors import ModelUnavailableError, TruncatedTextWarning
from metrics.scorers.interface import Score
from tests.codes import refused
from tests.metrics.scorers.conftest import cut_to, example, examples

PAIRS = [
    ("the cat sat", "the cat sat"),
    ("the dog ran off", "the cat sat"),
    ("dog", "the cat ran off the dog"),
    ("  the cat ", "the whale sat"),
    ("the the the the the", "off"),
]


def scores_of(scorer: BertScore, pairs: Sequence[tuple[str, str]]) -> list[list[float]]:
    parts = ("bertscore_precision", "bertscore_recall", "bertscore")
    return [[one[part].value for part in parts] for one in scorer.score(examples(pairs))]


def oracle(
    folder: Path, layer: int, pairs: Sequence[tuple[str, str]], idf: Sequence[str] = ()
) -> list[list[float]]:
    """The authors' package, one pair at a time: its padding counts as a cosine of 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bert_score
        from bert_score.utils import get_idf_dict, get_tokenizer

    frequencies = get_idf_dict(list(idf), get_tokenizer(str(folder)), nthreads=0) if idf else False
    options = {"model_type": str(folder), "num_layers": layer, "device": "cpu", "idf": frequencies}
    of_pairs = (bert_score.score([one], [other], **options) for one, other in pairs)
    return [[float(part) for part in parts] for parts in of_pairs]


@pytest.fixture(scope="module")
def bert(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The encoder alone, whose tokeniser says how much it reads: the oracle needs that."""
    from transformers import BertTokenizer

    folder = tmp_path_factory.mktemp("models") / "bert"
    shutil.copytree(tiny_bert.parent / "bert", folder)
    tokenizer = BertTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("layer", [1, 2])
def test_it_equals_the_authors_package(bert, layer):
    expected = oracle(bert, layer, PAIRS)
    ours = scores_of(BertScore(model=bert, layer=layer), PAIRS)
    assert ours == [pytest.approx(row, abs=1e-5) for row in expected]


def test_with_document_frequencies_it_equals_the_authors_package(bert, tmp_path):
    corpus = ["the cat sat", "the dog ran", "the cat ran off"]
    (tmp_path / "corpus.txt").write_text("\n".join(corpus) + "\n")
    expected = oracle(bert, 2, PAIRS[:4], corpus)
    scorer = BertScore(model=bert, layer=2, idf=tmp_path / "corpus.txt")
    assert scores_of(scorer, PAIRS[:4]) == [pytest.approx(row, abs=1e-5) for row in expected]


def test_weightless_empty_and_blank_texts_are_scored_0_or_undefined(bert, tmp_path):
    (tmp_path / "corpus.txt").write_text("the cat sat\nthe dog ran\n")
    scorer = BertScore(model=bert, layer=2, idf=tmp_path / "corpus.txt")
    (scores,) = scorer.score([example("the the", "off")])
    assert math.isnan(scores["bertscore_precision"].value)
    assert scores["bertscore"].reason.code == "weightless"
    assert scores["bertscore_recall"].value > -1
    empty, blank = BertScore(model=bert, layer=2).score([example(" ", "cat"), example("cat", " ")])
    assert set(empty.values()) == {Score(0.0)}
    assert math.isnan(blank["bertscore"].value)
    assert blank["bertscore"].reason.code == "missing_field"


def test_rescaling_moves_each_figure_by_its_own_baseline(bert):
    raw = scores_of(BertScore(model=bert, layer=2), PAIRS)
    rescaled = scores_of(BertScore(model=bert, layer=2, baseline=[0.1, 0.2, 0.5]), PAIRS)
    for before, after in zip(raw, rescaled, strict=True):
        expected = [(v - b) / (1 - b) for v, b in zip(before, (0.1, 0.2, 0.5), strict=True)]
        assert after == pytest.approx(expected)


def test_longer_texts_are_cut_with_a_warning_and_first_words_as_any_other(tiny_roberta):
    scorer = BertScore(model=tiny_roberta, layer=2)
    (first,), (second,) = scorer._token_ids(["day"]), scorer._token_ids(["Good day"])
    assert len(first) > 2
    assert second[-len(first) + 1 :] == first[1:]
    scorer = BertScore(model=tiny_roberta, layer=1)
    with pytest.warns(TruncatedTextWarning) as caught:
        (row,) = scores_of(scorer, [("Good day " * 90, "Good day")])
    assert cut_to(caught) == [1, 2, 60]
    assert all(map(math.isfinite, row))


def test_what_changes_the_numbers_is_in_the_signature(bert, tmp_path):
    (tmp_path / "corpus.txt").write_text("the cat\n")
    (tmp_path / "other.txt").write_text("the dog\n")
    changed = [
        {},
        {"layer": 1},
        {"baseline": [0, 0, 0.1]},
        {"idf": tmp_path / "corpus.txt"},
        {"idf": tmp_path / "other.txt"},
    ]
    signatures = {
        BertScore(**({"model": bert, "layer": 2} | change)).signature for change in changed
    }
    assert len(signatures) == len(changed)
    assert BertScore(model=bert, layer=2, device="cpu").signature in signatures


def test_a_parameter_out_of_range_or_a_layer_the_model_has_not_is_named(bert):
    for parameters, code in (
        ({"model": "org/other"}, "layer_missing"),
        ({"layer": 0}, "layer_out_of_range"),
        ({"baseline": [0.1]}, "baseline_out_of_range"),
        ({"baseline": [0.1, 0.1, 1.0]}, "baseline_out_of_range"),
        ({"idf": "nowhere.txt"}, "idf_not_a_file"),
    ):
        with refused(InvalidValue, code):
            BertScore(**parameters)
    with refused(ModelUnavailableError, "layer_out_of_range"):
        BertScore(model=bert, layer=3).score([example("cat", "cat")])
