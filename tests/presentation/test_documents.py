import csv
import re

import pytest

from presentation import latex, writers
from presentation.documents import (
    MOST_COLUMNS_PRINTED,
    MOST_PRINTED,
    Column,
    Document,
    Number,
    P,
    Section,
    Table,
    cell_text,
)
from presentation.writers import records_csv, table_csv
from tests.presentation.latex import compile_latex


def test_numbers_have_signs_where_they_say_something_and_p_is_printed_as_papers_do():
    assert [cell_text(Number(v)) for v in (-0.004, 0.004, -0.006)] == ["0.00", "0.00", "-0.01"]
    assert [P(p).text for p in (0.0004, 0.05, 1.0, None)] == ["<.001", ".050", "1.000", "–"]
    signed = Number(0.25, 2, -0.001, 0.5, is_signed=True)
    assert signed.text == "+0.25 [0.00, +0.50]"
    assert Number(float("nan"), low=float("nan"), reason="few") == Number(None, reason="few")


def test_records_of_tables_keep_all_values_and_no_name_is_computed():
    columns = [Column("Run", is_number=False), Column("Mean"), Column("Judged")]
    rows = [("a", Number(0.5, 2, 0.25, 0.75), Number(1.0)), ("b", Number(None), Number(0.5))]
    header, *lines = table_csv(Table("means", "Means", columns, rows)).splitlines()
    assert len(next(csv.reader([header]))) == 5
    assert lines == ["a,0.5,0.25,0.75,1.0", "b,,,,0.5"]
    columns = [Column("Mean"), Column("without"), Column("Rank"), Column("without")]
    [record] = Table("left-out", "Left out", columns, [(1, 2, 3, 4)]).records()
    assert record == {"Mean": 1, "without": 2, "Rank": 3, "without (2)": 4}
    assert records_csv([{"metric": "=BLEU*", "value": -0.5}]).splitlines()[1] == "'=BLEU*,-0.5"


@pytest.mark.parametrize("form", ["latex", "md"])
def test_a_table_too_long_or_too_wide_for_paper_is_a_file_beside_it(form):
    columns = [Column(f"c{number}") for number in range(MOST_COLUMNS_PRINTED + 1)]
    fits = Table(
        "fits", "It fits", columns[1:], [tuple(range(MOST_COLUMNS_PRINTED))] * MOST_PRINTED
    )
    wide = Table("wide", "Too wide", columns, [tuple(range(MOST_COLUMNS_PRINTED + 1))] * 2)
    long = Table("long", "Too long", columns[:1], [("x",)] * (MOST_PRINTED + 1))
    files = writers.FORMATS[form](Document("Tables", [Section("All", [fits, wide, long])]))
    [text] = [content.decode() for name, content in files.items() if name.startswith("report.")]
    assert [one.file_note in text for one in (wide, long, fits)] == [True, True, False]
    assert {name for name in files if name.endswith(".csv")} == {
        "tables/wide.csv",
        "tables/long.csv",
    }
    assert files["tables/long.csv"].decode().count("x") == MOST_PRINTED + 1


@pytest.mark.parametrize(
    ("rows", "n_headers"),
    [
        ([("random", "SimBase", 1), ("GRU", "SimBase", 2)], 1),
        ([("random", "SimBase", 1), ("random", "MetaSimTol", 2)], 2),
        ([("random", "SimBase", 1), ("random", "SimBase", 2)], 1),
        ([("random", "", 1), ("random", "MetaSimTol", 2)], 2),
    ],
)
def test_the_headers_of_a_row_together_tell_it_from_all_others(rows, n_headers):
    columns = [Column(title, is_number=False) for title in ("Recommender", "User")]
    table = Table("t", "T", [*columns, Column("Mean")], rows)
    html = writers.FORMATS["html"](Document("D", [Section("S", [table])]))["report.html"].decode()
    body = html[html.index("<tbody>") :].splitlines()[: len(rows)]
    headers = [re.findall(r'<th scope="row">(.*?)</th>', row) for row in body]
    assert headers == [[word for word in row[:n_headers] if word] for row in rows]


def test_a_character_without_a_glyph_is_its_number():
    table = Table("t", "模", [Column("a", is_number=False)], [("模",), ("é",)])
    assert re.search(r"\\texttt{U\+6A21}.*é", latex.table_latex(table), re.DOTALL)


def test_rows_that_begin_with_a_bracket_and_words_of_long_tables_compile(tmp_path):
    rows = [("[0, 1]", Number(1.0)), ("*", Number(2.0))] * 2
    columns = [Column("[range]", is_number=False), Column("n")]
    tables = [Table("short", "A", columns, rows), Table("long", "B", columns, rows * 20)]
    tables.append(Table("wide", "C", columns * 6, [rows[0] * 6]))
    assert r"\begin{tabular}{lr}" in latex.table_latex(tables[2])
    compile_latex(Document("Brackets", [Section("S", tables)]), tmp_path)
    titles = ["Question", "Condition", "Metric", "Candidates", "Scored", "Groups"]
    columns = [Column(title, is_number=at > 2) for at, title in enumerate(titles)]
    columns += [Column(f"Constant {what}") for what in ("people", "metric", "something else")] * 2
    rows = [("appropriateness", "mean of conditions", "m", *range(9))] * 40
    compile_latex(Document("Wide", [Section("S", [Table("t", "T", columns, rows)])]), tmp_path)
    log = (tmp_path / "report.log").read_text(errors="replace")
    # twice 3 points lie between columns
    assert all(float(over) < 6 for over in re.findall(r"Overfull \\hbox \((\S+?)pt", log))
