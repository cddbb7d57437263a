"""Texts of others as cells of a CSV file."""

import pytest

from csv_cells import from_cell, to_cell


@pytest.mark.parametrize(
    "text", ["=x", " =x", "\u200b=x", "\ufeff+x", "\u00ad@x", "\0=x", "＝x", "\t"]
)
def test_what_would_be_a_formula_begins_with_an_apostrophe(text):
    assert to_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("x;=1+1", "x;'=1+1"),
        ("x; \u200b@y;-cmd|z", "x;' \u200b@y;'-cmd|z"),
        ("x\r\n=1", "x\r\n'=1"),
        ("=1;=1", "'=1;'=1"),
    ],
)
def test_nor_does_what_a_spreadsheet_with_semicolons_takes_for_the_next_cell(text, cell):
    assert to_cell(text) == cell


@pytest.mark.parametrize("text", ["Good; but - well", "Nice ;-)", "Two:\n- one\n+ two", "x;y"])
def test_what_is_no_formula_within_a_text_stays(text):
    assert to_cell(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("=x", "'=x", "''=x", "'", "'x", "x", "", "' =x", "\n=x", "\r\n'=x", ";=x", ";'=x"),
        *("a;''@b;'=c", ";;=x", ";+;=x", "a;-)", "a;'-)", ";\n;-1", "'a;'=b", "\n;='"),
    ],
)
def test_what_is_written_reads_back_exactly(text):
    assert from_cell(to_cell(text)) == text
