import gzip
import json
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.readers import coded_table, drafts, formats
from annotation.readers.tables import each_row, opened_table, read_object, read_rows
from tests.annotation.importing import altered_excel, as_excel, as_parquet, as_zip, write_file
from tests.codes import refused

RECORDS = [
    {"item": "1", "who": "Zoë", "label": "gut; schön"},
    {"item": "2", "who": "Bob", "label": "Größe, “x”"},
    {"item": "3", "who": "Zoë", "label": 'a "b"\nc'},
]
NAMES = list(RECORDS[0])


def as_csv(delimiter: str = ",", first: str = "") -> str:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    lines = [delimiter.join(map(cell, row)) for row in (NAMES, *(r.values() for r in RECORDS))]
    return first + "\r\n".join(lines) + "\r\n"


def as_ods(rows: list[list[str]], repeated: str = "") -> bytes:
    """The parts of OpenDocument 1.3 that LibreOffice writes of a sheet of texts."""

    def cell(text: str) -> str:
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        lines = "".join(f"<text:p>{line}</text:p>" for line in text.split("\n"))
        kind = 'office:value-type="string"' if text else ""
        return f"<table:table-cell {kind}>{lines if text else ''}</table:table-cell>"

    name = "urn:oasis:names:tc:opendocument:xmlns"
    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    content = (
        f'<office:document-content xmlns:office="{name}:office:1.0" xmlns:table="{name}:table:1.0"'
        f' xmlns:text="{name}:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Data">{body}{repeated}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    mimetype = b"application/vnd.oasis.opendocument.spreadsheet"
    return as_zip({"mimetype": mimetype, "content.xml": content.encode()})


ROWS = [NAMES, *(list(record.values()) for record in RECORDS)]
JSON_TEXT = json.dumps(RECORDS)
JSON_LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)
CSV, JSON, LINES = (formats.FileFormat(kind, "utf-8") for kind in ("csv", "json", "jsonl"))
COMMAS, TABS = replace(CSV, delimiter=","), replace(CSV, delimiter="\t")
SEMICOLONS, BARS = replace(CSV, delimiter=";"), replace(CSV, delimiter="|")
WIDE, BARE = replace(TABS, encoding="utf-16"), replace(COMMAS, encoding="utf-16-le")
WESTERN = replace(COMMAS, encoding="windows-1252")
ZIPPED = replace(COMMAS, table="in/a.csv", tables=("in/a.csv",))
SHEET = formats.FileFormat("xlsx", sheet="Sheet", sheets=("Sheet",))
ODS = formats.FileFormat("ods", sheet="Data", sheets=("Data",))
PAGE = {"results": RECORDS, "count": 9, "next": "/2"}
ARCHIVE = as_zip({"in/a.csv": as_csv(), "__MACOSX/in/a.csv": b"?"})
# name of the file, content, the format that is found, codes of the report's notes
FILES: list[tuple[str, bytes, formats.FileFormat, list[str]]] = [
    ("commas.csv", as_csv().encode(), COMMAS, []),
    ("mark.csv", as_csv().encode("utf-8-sig"), COMMAS, []),
    ("semicolons.csv", as_csv(";").encode(), SEMICOLONS, ["delimiter_guessed"]),
    ("tabs.tsv", as_csv("\t").encode(), TABS, []),
    ("bars.txt", as_csv("|").encode(), BARS, ["delimiter_guessed"]),
    ("excel.csv", as_csv(";", "sep=;\r\n").encode(), SEMICOLONS, ["delimiter_guessed", "sep_line"]),
    ("sep.csv", as_csv(",", "sep=,\r\n").encode(), COMMAS, ["sep_line"]),
    ("utf16.csv", as_csv("\t").encode("utf-16"), WIDE, ["encoding_guessed", "delimiter_guessed"]),
    ("bare.csv", as_csv().encode("utf-16-le"), BARE, ["encoding_guessed"]),
    (
        "utf16.json",
        JSON_TEXT.encode("utf-16"),
        replace(JSON, encoding="utf-16"),
        ["encoding_guessed"],
    ),
    ("western.csv", as_csv().encode("cp1252"), WESTERN, ["encoding_guessed"]),
    ("unpacked.csv.gz", as_csv().encode(), COMMAS, []),
    ("packed.csv.gz", gzip.compress(as_csv().encode(), mtime=0), COMMAS, []),
    ("packed.zip", ARCHIVE, ZIPPED, []),
    ("sheet.xlsx", as_excel(ROWS), SHEET, []),
    ("title.xlsx", as_excel([["Results of May"], [], *ROWS]), SHEET, ["title_row"]),
    ("sheet.ods", as_ods(ROWS), ODS, []),
    ("array.json", JSON_TEXT.encode(), JSON, []),
    ("indented.json", json.dumps(RECORDS, indent=1).encode(), JSON, []),
    ("page.json", json.dumps({"items": RECORDS, "total": 3}).encode(), JSON, ["json_page"]),
    ("first.json", json.dumps(PAGE, indent=1).encode(), JSON, ["json_page", "incomplete_page"]),
    ("lines.jsonl", JSON_LINES.encode(), LINES, []),
    ("lines.txt", JSON_LINES.encode(), LINES, []),
    ("mark.jsonl", JSON_LINES.encode("utf-8-sig"), LINES, []),
    ("table.parquet", as_parquet(pa.Table.from_pylist(RECORDS)), formats.FileFormat("parquet"), []),
]


@pytest.fixture
def write(tmp_path):
    return lambda name, content: write_file(tmp_path / name, content)


@pytest.mark.parametrize("case", FILES, ids=lambda case: case[0])
def test_every_file_has_the_same_rows_and_columns(case, write):
    name, content, form, codes = case
    path, report = write(name, content), drafts.ReadingReport()
    with opened_table(path) as table:
        assert table.form == form
        assert [row.fields for row in table.rows(drafts.Faults())] == RECORDS
    rows = read_rows(path, NAMES, report=report)
    assert [row.fields for row in rows] == RECORDS
    assert [note.code for note in report.notes] == codes
    assert (report.n_rows, report.n_used) == (3, 3)
    columns = coded_table.read_table(path, ["label", "who"])
    assert columns.columns["label"].to_list() == [record["label"] for record in RECORDS]
    assert list(columns.lines) == [row.line for row in rows]


def test_header_rows_of_qualtrics_are_no_respondents(write):
    """Layout: Qualtrics' CSV export, "Understanding your dataset" of its documentation."""
    path = write(
        "qualtrics.csv",
        'ResponseId,Q1_1\nResponse ID,"How fluent\nis A?"\n'
        '"{""ImportId"": ""_recordId""}","{""ImportId"": ""Q1_1""}"\nR_0,1\nR_1,2\n',
    )
    report = drafts.ReadingReport()
    rows = read_rows(path, ["Q1_1"], report=report)
    assert [(row.line, row.number("Q1_1")) for row in rows] == [(5, 1), (6, 2)]
    assert rows[0].source is not None
    assert rows[0].source.wording["Q1_1"] == "How fluent\nis A?"
    assert [note.code for note in report.notes] == ["qualtrics_header"]
    assert len(coded_table.read_table(path)) == report.n_rows == 2


def test_the_second_header_row_of_surveymonkey_names_the_options(write):
    """Layout: SurveyMonkey's "All responses" export as CSV, of its help pages."""
    path = write(
        "survey.csv",
        "Respondent ID,Collector ID,How fluent is A?,Which errors?,,\n"
        ",,Response,Grammar,Style,Other (please specify)\n11,7,3,Grammar,,none\n",
    )
    [row] = read_rows(path)
    assert row.fields == {
        "Respondent ID": "11",
        "Collector ID": "7",
        "How fluent is A?": "3",
        "Which errors?: Grammar": "Grammar",
        "Which errors?: Style": "",
        "Which errors?: Other (please specify)": "none",
    }
    assert row.source is not None
    assert row.source.wording["Which errors?: Style"] == "Which errors?"


def test_records_of_a_json_array_and_rows_of_a_sheet_are_named(write):
    first, second = read_rows(write("a.json", '[{"id": "r1", "n": 1}, {"n": "x"}]'))
    assert first.refuse("").record == "1 (id r1)"
    with refused(ImportRefused, "not_number", record="2", line=1):
        second.number("n")
    with refused(ImportRefused, "not_number", record="1 (id r1)", field="a.b"):
        first.child({"b": "x"}, "a").number("b")
    path = write("a.xlsx", as_excel([["n"], ["x"]]))
    with refused(ImportRefused, "not_number", sheet="Sheet", line=2):
        read_rows(path)[0].number("n")


def test_decimal_commas_are_numbers_unless_commas_separate_columns(write):
    for name, content in (("a.csv", "k;n\na;1,5\n"), ("a.tsv", "k\tn\na\t1,5\n")):
        report = drafts.ReadingReport()
        assert read_rows(write(name, content), report=report)[0].number("n") == 1.5
        assert report.notes[-1].code == "decimal_comma"
    assert read_rows(write("a.xlsx", as_excel([["n"], ["1,5"]])))[0].number("n") == 1.5
    for content in ('k,n\na,"1,5"\n', "k;n\na;1,2,3\n", "k;n\na;1_5\n"):
        with refused(ImportRefused, "not_number", line=2):
            read_rows(write("a.csv", content))[0].number("n")


def test_each_row_that_is_skipped_has_a_count_and_a_place(write):
    path = write("a.csv", "a,b\n1,2\n,\n1,2,3\n\n4,5,,\n6\n")
    report, faults = drafts.ReadingReport(), drafts.Faults()
    rows = list(each_row(path, on_fault=faults.add, report=report))
    assert [row.fields["a"] for row in rows] == ["1", "4"]
    assert (report.n_rows, report.n_used) == (5, 2)
    assert report.left_out["blank_row"].places == ["line 3"]
    assert (report.left_out["field_count"].n, faults.n) == (2, 2)


def test_equal_faults_are_one_error_with_a_count_and_the_first_places(write):
    path = write("a.csv", "a,b\n" + "1\n" * 9 + "1,2\n")
    with refused(ImportRefused, "field_count", line=2, naming=("8", "Line 3", "Line 4")):
        read_rows(path)
    faults = drafts.Faults()
    list(each_row(path, on_fault=faults.add))
    [group] = faults.groups.values()
    assert (group.code, group.n, group.places) == ("field_count", 9, ["Line 2", "Line 3", "Line 4"])


def test_an_array_longer_than_what_is_read_at_once_streams(write):
    text = "x" * 3000
    records = [{"n": n, "text": text + "\N{SPARKLES}"} for n in range(1000)]
    path = write("a.json", json.dumps(records, ensure_ascii=False, indent=1))
    rows = list(each_row(path))
    assert [row.fields for row in rows] == records
    assert rows[-1].line == 2 + 999 * 4
    broken = path.read_text()[:-40] + "]"
    with refused(ImportRefused, "not_json"):
        list(each_row(write("b.json", broken)))


def test_repeated_rows_of_a_sheet_cannot_fill_the_memory(write):
    one = '<table:table-cell office:value-type="float" office:value="2"/>'
    row = '<table:table-row table:number-rows-repeated="{}">' + one + "</table:table-row>"
    path = write("a.ods", as_ods([["n"], ["1"]], row.format(2) + row.format(10**9)))
    with refused(ImportRefused, "not_ods"):
        read_rows(path)
    path = write("b.ods", as_ods([["n"], ["1"]], row.format(2)))
    assert [each.text("n") for each in read_rows(path)] == ["1", "2", "2"]


def test_columns_of_irregular_texts_are_those_of_the_rows(write):
    for content in (
        'a,b\n"1\n2",x\n\n"3""4",\n,\n5,6\n',
        "a,b\r1,2\r3,4\r",
        "a,b\n1,2,,\n3,4\n",
        '\n\na,b\n1,"x\r\ny"\n',
        "a,b\n'=1,2\n",
    ):
        path = write("a.csv", content)
        rows, columns = read_rows(path), coded_table.read_table(path)
        assert list(columns.lines) == [row.line for row in rows]
        for name in ("a", "b"):
            assert columns.columns[name].to_list() == [row.fields[name] for row in rows]


CELLS = st.sampled_from(["", "a", "NA", "1,5", '"q"', '"a""b"', '"x\ny"', "ü", '"', 'a"b', '"a" '])
LINES = st.lists(CELLS, min_size=1, max_size=3)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=6), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_columns_and_rows_agree_on_any_text(write, lines, end):
    path = write("a.csv", end.join(["a,b", *(",".join(line) for line in lines)]))
    results: list[Any] = []
    for read in (lambda: read_rows(path), lambda: coded_table.read_table(path)):
        try:
            results.append(read())
        except ImportRefused as error:
            results.append((error.code, error.line))
    rows, columns = results
    if isinstance(rows, tuple):
        assert columns == rows
    else:
        assert list(columns.lines) == [row.line for row in rows]
        for name, column in columns.columns.items():
            assert column.to_list() == [row.fields[name] for row in rows]


EMPTY_VALUES = [b"[]", b"{}", b'""', b"null"]


@st.composite
def damaged_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file that was cut, flipped, repeated, or has an empty value in place of another."""
    name, content, *_ = draw(st.sampled_from(FILES))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        size = draw(st.integers(1, 20))
        kind = draw(st.sampled_from(["cut", "flip", "repeat", "empty", "remove"]))
        if kind == "cut":
            content = content[:at]
        elif kind == "flip":
            content = content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
        elif kind == "repeat":
            content = content[: at + size] + content[at : at + size] * 3 + content[at + size :]
        elif kind == "empty":
            content = content[:at] + draw(st.sampled_from(EMPTY_VALUES)) + content[at + size :]
        else:
            content = content[:at] + content[at + size :]
    return name, content


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(file=damaged_files())
def test_damaged_files_end_in_codes_and_every_row_is_counted(write, file):
    path, start = write(*file), time.process_time()
    codes: list[str] = []
    for flat in (False, True):
        report, faults, n_used = drafts.ReadingReport(), drafts.Faults(), 0
        try:
            with opened_table(path, most_bytes=1024**2, report=report) as table:
                rows = table.rows(faults) if flat else table.records(on_fault=faults.add)
                for row in rows:
                    n_used += 1
                    assert path.name in str(row.refuse("x")) or path.suffix == ".zip"
        except AnnotationError as error:
            codes.append(error.code)
        codes += [fault.code for fault in faults.first]
        assert report.n_rows == n_used + sum(each.n for each in report.left_out.values())
    for read in (coded_table.read_table, read_object):
        try:
            read(path)
        except AnnotationError as error:
            codes.append(error.code)
    assert not {"", "import_refused"} & set(codes)
    assert time.process_time() - start < 5


CELLS = b"<c/>" * 200_001


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"</sheetData>", b"<row>" + CELLS + b"</row></sheetData>"),
        (b"</sheetData>", b'</sheetData><row xmlns="x">' + CELLS * 13 + b"</row>"),
        (b"</sheetData>", b"<row><c><v>" + b"1" * 2**26 + b"</v></c></row></sheetData>"),
        (b"</cellXfs>", CELLS * 13 + b"</cellXfs>"),
    ],
    ids=["a row", "rows of another kind", "a text", "styles"],
)
def test_what_a_workbook_keeps_in_memory_is_limited(write, old, new):
    content = altered_excel(ROWS, old, new)
    for path in (write("a.xlsx", content), write("a.xlsx.gz", gzip.compress(content, 1))):
        with refused(ImportRefused, "row_too_large"):
            read_rows(path)


def test_what_an_ods_file_keeps_in_memory_is_limited(write):
    for repeated in (f"<table:table-row>{CELLS.decode()}</table:table-row>", CELLS.decode() * 13):
        with refused(ImportRefused, "row_too_large"):
            read_rows(write("a.ods", as_ods(ROWS, repeated)))


def test_long_texts_of_parquet_are_not_all_in_memory(write):
    text, codes = "x" * 2**20, pa.array([0] * 2000, pa.int32())
    path = write("a.parquet", as_parquet({"a": pa.DictionaryArray.from_arrays(codes, [text])}))
    tracemalloc.start()
    assert sum(len(row.fields["a"]) for row in each_row(path)) == 2000 * 2**20
    assert len(coded_table.read_table(path)) == 2000
    _now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200 * 2**20
    faults = drafts.Faults()
    with opened_table(path) as table:
        assert len([row.line for row in table.rows(faults)]) < 2000
    assert [fault.code for fault in faults.first] == ["unpacked_too_large"]


def test_cells_of_parquet_are_limited_and_no_column_is_dropped(write):
    for code, table in {
        "unpacked_too_large": pa.table({"a": pa.repeat("", 1_100_000)}),
        "repeated_columns": pa.table([pa.array(["1"]), pa.array(["2"])], names=["a", "a"]),
    }.items():
        path = write("a.parquet", as_parquet(table))
        with refused(ImportRefused, code), opened_table(path, most_bytes=2**20) as opened:
            list(opened.records())


@pytest.mark.parametrize(
    "content",
    [
        '{"Ann": {"a": 1, "b": 1}, "Ann": {"a": 2, "b": 2}, "Bob": {"a": 1, "b": 1}}',
        '{"Ann": {"a": 1, "a": 2, "b": 1}, "Bob": {"a": 1, "b": 1}}',
        '[{"a": 1, "b": {"c": 1, "c": 2}}]',
        '{"a": 1, "a": 2}\n{"a": 1}\n',
    ],
)
def test_a_field_that_an_object_has_twice_is_refused(write, content):
    """The first of two labels was dropped without a count."""
    for name in ("a.json", "a.jsonl"):
        if "\n" in content or name == "a.json":
            with refused(ImportRefused, "repeated_field", line=1):
                read_rows(write(name, content))


def test_records_with_ever_new_fields_cannot_fill_the_memory(write):
    path = write("a.jsonl", "".join(f'{{"field {n}": {n}}}\n' for n in range(17_000)))
    faults = drafts.Faults()
    with opened_table(path) as table:
        assert sum(1 for _row in table.rows(faults)) < 17_000
    assert [fault.code for fault in faults.first] == ["too_many_columns"]
    with refused(ImportRefused, "too_many_columns"):
        coded_table.read_table(path)
    table = coded_table.read_table(write("b.jsonl", '{"a": "x"}\n{"b": ""}\n{"a": "x", "b": 1}\n'))
    columns = {name: words.to_list() for name, words in table.columns.items()}
    assert columns == {"a": ["x", "", "x"], "b": ["", "", 1]}
