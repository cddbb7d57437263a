import csv
import io

import pandas as pd
from hypothesis import given, strategies as st

from presentation.row_files import csv_parts, frame_csv, from_cell, to_cell

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
TEXTS = st.text(alphabet=st.sampled_from("'=+-@\t\r\n1. aé＝"), max_size=8)


def test_a_formula_becomes_a_text_and_what_is_none_stays_as_it_is():
    formulas = ['=HYPERLINK("http://a.example")', "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1"]
    for text in (*formulas, " =1+1", "\u200b=1+1", "\0=1+1"):
        assert to_cell(text) == f"'{text}"
    for text in ("", "a=b", "'tis good", "-5", "+4.25", "-1e-7", "5 - 3", " "):
        assert to_cell(text) == from_cell(text) == text


@given(TEXTS)
def test_every_text_reads_back_and_none_begins_a_formula(text):
    cell = to_cell(text)
    assert from_cell(cell) == text
    assert not cell.startswith(STARTS) or float(cell) == float(text)


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=4))
def test_rows_read_back_from_the_file(rows):
    content = "".join(csv_parts(["one", "=two"], rows))
    header, *cells = csv.reader(io.StringIO(content, newline=""))
    assert header == ["one", "'=two"]
    assert [[from_cell(cell) for cell in row] for row in cells] == rows


def test_a_large_file_comes_in_parts_while_its_rows_are_read():
    read = []

    def rows():
        for number in range(2000):
            read.append(number)
            yield (number, None)

    parts = csv_parts(["number", "nothing"], rows())
    assert next(parts).startswith("number,nothing\n0,\n1,\n")
    assert len(read) < 2000
    assert sum(part.count("\n") for part in parts) + 500 == 2000


def test_a_table_keeps_its_numbers_in_full_and_its_texts_safe():
    frame = pd.DataFrame(
        {
            "item": pd.Categorical(["=a", "b"]),
            "value": [-0.1 - 0.2, float("nan")],
            "is_tied": [True, False],
            "reason": [None, "-"],
        }
    )
    assert frame_csv(frame).splitlines() == [
        "item,value,is_tied,reason",
        "'=a,-0.30000000000000004,True,",
        "b,,False,'-",
    ]
