"""Intervals of few items: of differences of coefficients, and of shares of a ceiling near 0."""

import pytest
from django.utils.translation import gettext

from tests.validation.validation_tables import random_tables
from validation.analysis import Settings, report_from_tables
from validation.analysis.records import CeilingRecord, ComparisonRecord
from validation.documents.comparison_tables import comparisons_table
from validation.documents.documents import note_of
from validation.documents.scale_limits import CUT_DIFFERENCES, difference_within
from validation.documents.tables import NO_SHARE_INTERVAL, ceilings_table
from validation.results import TableResults

SETTINGS = Settings(n_resamples=60, n_permutations=60, n_splits=10)
CUT_AT_TWO = gettext(CUT_DIFFERENCES) % {"least": "\N{MINUS SIGN}2", "most": "2"}


def results_of(n_items, *, seed=0, settings=SETTINGS):
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
    shares = [row[-1] for row in table.rows]
    without = [cell.low is None and cell.high is None for cell in shares]
    assert all(gone for gone, none in zip(without, may_be_none, strict=True) if none)
    assert str(NO_SHARE_INTERVAL) in note_of(table)


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
