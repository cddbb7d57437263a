"""Texts of others as cells of a CSV file."""

import pytest

from csv_cells import from_cell, to_cell


@pytest.mark.parametrize(
    "text", ["=x", " =x", "\u200b=x", "\ufeff+x", "\u00ad@x", "\0=x", "＝x", "\t"]
)
def test_what_would_be_a_formula_begins_with_an_apostrophe(text):
    assert to_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["=x", "'=x", "''=x", "'", "'x", "x", "", "' =x"])
def test_what_is_written_reads_back_exactly(text):
    assert from_cell(to_cell(text)) == text
