from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from django.utils.translation import gettext

from presentation.numbers import shorten_names
from stats.ceilings import NoCeiling
from tests.codes import codes_of
from tests.validation.validation_tables import random_tables
from validation.analysis import Settings, report_from_tables
from validation.analysis.ceilings import REASONS
from validation.analysis.human_results import QuestionScale, question_result
from validation.analysis.records import CeilingRecord, ComparisonRecord
from validation.documents.metric_tables import (
    NO_SHARE_INTERVAL,
    ceiling_warnings,
    ceilings_table,
    comparisons_table,
)
from validation.documents.metrics_answers import metrics_answers
from validation.documents.terms import CUT_DIFFERENCES, difference_within
from validation.management.commands.validate_study import lines_of
from validation.results import TableResults

SETTINGS = Settings(levels=("item",), coefficients=("pearson",), n_resamples=200, n_splits=0)


def answer_of(strength):
    """Of a metric that follows the ratings so far, beside one that says nothing of them."""
    rng = np.random.default_rng(1)
    cells = pd.DataFrame(
        [{"item": f"i{i}", "system": f"s{s}"} for i in range(30) for s in range(4)]
    )
    truth = rng.normal(size=len(cells))
    human = cells.assign(question="q", annotator="a", value=truth)
    noise = rng.normal(size=(2, len(cells)))
    scores = pd.concat(
        cells.assign(metric=name, value=share * truth + noise[row])
        for row, (name, share) in enumerate((("near", strength), ("nothing", -0.2)))
    )
    [(_question, answer)] = metrics_answers(
        TableResults("study", report_from_tables(human, scores, SETTINGS))
    )
    return answer


def ceiling_answer(coefficient, *, level="item", steps=False):
    """Of a metric that follows the truth from afar, where three annotators rate it nearly alike."""
    settings = replace(SETTINGS, levels=(level,), coefficients=(coefficient,), n_splits=10)
    rng = np.random.default_rng(1)
    rows = [(f"i{i}", f"s{s}") for i in range(40) for s in range(5)]
    cells = pd.DataFrame(rows, columns=["item", "system"])
    truth = rng.normal(size=len(cells)) + 2 * (cells["system"] == "s0").to_numpy()
    people = [truth + rng.normal(0, 0.3, len(cells)) for _ in range(3)]
    people = [(value > 0).astype(float) for value in people] if steps else people
    human = pd.concat(
        cells.assign(question="q", annotator=f"a{n}", value=value) for n, value in enumerate(people)
    )
    scores = cells.assign(metric="far", value=truth + rng.normal(0, 2, len(cells)))
    [(_question, answer)] = metrics_answers(
        TableResults("study", report_from_tables(human, scores, settings))
    )
    return answer


def test_the_ceiling_speaks_of_equal_ratings_and_of_these_annotators():
    answer = ceiling_answer("pearson")
    assert answer.below_ceiling.code == "below_ceiling"
    assert ceiling_answer("kendall").below_ceiling.code == "below_ceiling_of_ties"
    # Means of systems are not equal.
    of_systems = ceiling_answer("kendall", level="system")
    below = of_systems.below_ceiling
    assert below is None or below.code == "below_ceiling"
    assert answer.ceiling.attainable_low is not None
    assert "ceiling_interval" in codes_of(answer.ceiling_sentences)
    assert of_systems.ceiling.attainable is not None
    assert "ceiling_interval" not in codes_of(of_systems.ceiling_sentences)


def test_why_yes_and_no_have_no_ceiling_of_pairwise_accuracy_is_true():
    answer = ceiling_answer("acc_eq", steps=True)
    assert answer.ceiling.split_half > 0.6
    assert answer.ceiling.reason == REASONS[NoCeiling.TIED]
    assert codes_of(answer.ceiling_sentences) == ["ceiling_unknown"]


def test_only_a_metric_beyond_chance_is_called_the_best():
    assert answer_of(-0.1).answer.code == "chance"
    best = answer_of(2.0).answer
    assert best.code == "best"
    assert "near" in best


FEW_DRAWS = Settings(n_resamples=60, n_permutations=60, n_splits=10)
CUT_AT_TWO = gettext(CUT_DIFFERENCES) % {"least": "\N{MINUS SIGN}2", "most": "2"}


def results_of(n_items, *, seed=0, settings=FEW_DRAWS):
    return TableResults(
        "few", report_from_tables(*random_tables(n_items=n_items, seed=seed), settings)
    )


def test_intervals_of_three_items_end_where_differences_do_and_shares_may_have_none():
    results = results_of(3, seed=2)
    records = results.rows(
        ComparisonRecord, scope="all", level=results.level, coefficient=results.coefficient
    )
    assert max(record.ci_high for record in records) > 2  # as it is computed
    table = comparisons_table(results, "q")
    differences = [row[2] for row in table.rows]
    assert {-2 <= cell.low <= cell.high <= 2 for cell in differences} == {True}
    assert CUT_AT_TWO in table.note
    ceilings = results.rows(CeilingRecord)
    may_be_none = [one.attainable_low is not None and one.attainable_low <= 0 for one in ceilings]
    assert any(may_be_none)
    table = ceilings_table(results)
    without = [cell.low is None and cell.high is None for cell in [row[-1] for row in table.rows]]
    assert all(gone for gone, none in zip(without, may_be_none, strict=True) if none)
    assert str(NO_SHARE_INTERVAL) in table.full_note


def test_intervals_of_many_items_are_kept():
    results = results_of(60)
    table = comparisons_table(results, "q")
    records = results.rows(
        ComparisonRecord, scope="all", level=results.level, coefficient=results.coefficient
    )
    assert [(row[2].low, row[2].high) for row in table.rows] == [
        (record.ci_low, record.ci_high) for record in records
    ]
    assert CUT_AT_TWO not in table.note
    rows = zip(results.rows(CeilingRecord), ceilings_table(results).rows, strict=True)
    sure = [row[-1] for one, row in rows if one.level != "system"]
    assert len(sure) == 6
    assert all(share.low < share.value < share.high for share in sure)


@pytest.mark.parametrize(
    ("coefficient", "limits"),
    [("kendall", (-2.0, 2.0)), ("pearson", (-2.0, 2.0)), ("acc_eq", (-1.0, 1.0))],
)
def test_shares_of_pairs_lie_no_further_apart_than_one(coefficient, limits):
    assert difference_within(0.4, (-5.44, 4.29), coefficient) == limits
    assert difference_within(None, (None, None), coefficient) == (None, None)


def judgments(values: list[float]) -> pd.DataFrame:
    rows = range(len(values))
    return pd.DataFrame(
        {
            "item": [f"item {row // 2}" for row in rows],
            "candidate": [f"candidate {row}" for row in rows],
            "system": ["meadow", "harbour"] * (len(values) // 2),
            "annotator": "ann",
            "value": values,
        }
    )


def counts(scale: QuestionScale, values: list[float]) -> list[tuple[str, int]]:
    bins = question_result(scale, judgments(values), []).bins
    return [(one.label, one.n) for one in bins if one.system == "meadow"]


@pytest.mark.parametrize("level", ["interval", "ordinal"])
def test_whole_numbers_of_a_short_scale_have_a_bin_each(level: str) -> None:
    """Tenths of seven values would leave gaps that nobody answered around."""
    answered = counts(QuestionScale("quality", "line", level, 1.0, 7.0), [1, 2, 3, 2, 7, 2, 7, 2])
    assert answered == [
        ("1", 1), ("2", 0), ("3", 1), ("4", 0), ("5", 0), ("6", 0), ("7", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(("high", "values"), [(7.0, [1.5, 2, 3, 2]), (100.0, [20, 30, 40, 50])])
def test_other_values_are_counted_by_tenths_of_the_scale(high: float, values: list[float]) -> None:
    assert len(counts(QuestionScale("quality", "line", "interval", 1.0, high), values)) == 10


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "a, b and 2 others"),
        (list("abcdefgh"), "a, b and 6 others"),
    ],
)
def test_a_list_of_many_names_ends_with_how_many_others_there_are(names, text):
    assert shorten_names(names) == text


def test_an_unreliable_ceiling_is_said_to_be_so_on_the_page_in_tables_and_lines():
    settings = replace(SETTINGS, n_splits=5)
    rng = np.random.default_rng(2)
    cells = pd.DataFrame(
        [(f"i{i}", f"s{s}") for i in range(40) for s in range(5)], columns=["item", "system"]
    )
    truth = rng.normal(4.5, 1, size=len(cells))
    for shift, expected in ((0.0, "top_heavy_scale"), (-1.5, None)):
        human = pd.concat(
            cells.assign(
                question="q",
                annotator=f"a{n}",
                value=np.clip(np.round(truth + shift + rng.normal(0, 0.4, len(cells))), 1, 5),
            )
            for n in range(3)
        )
        scores = cells.assign(metric="far", value=truth + rng.normal(0, 2, len(cells)))
        results = TableResults("study", report_from_tables(human, scores, settings))
        [ceiling] = results.rows(CeilingRecord)
        assert ceiling.warning == expected
        [(_question, answer)] = metrics_answers(results)
        is_warned = expected is not None
        assert ("ceiling_unreliable" in codes_of(answer.ceiling_sentences)) == is_warned
        warnings = list(ceiling_warnings([ceiling]))
        assert codes_of(warnings) == ["ceiling_unreliable"] * is_warned
        assert all(warning in ceilings_table(results).note for warning in warnings)
        assert all(f"Note: {warning}" in lines_of(results) for warning in warnings)
