import csv
import gzip
import json
import re
import struct
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import pytest
from django.core.management.base import CommandError

from annotation import models, pairs, study_files
from annotation.exceptions import ImportRefused
from annotation.protocols import records, versions
from annotation.readers import archives, formats
from annotation.readers.drafts import Faults
from annotation.readers.mapped_items import BLANK, NO_TEXT, REPEATED
from annotation.readers.mapping import (
    KEEP,
    LEAVE_OUT,
    Column,
    ColumnMapping,
    Use,
    guess_mapping,
    guess_reasons,
    mapping_faults,
    mapping_warnings,
)
from annotation.readers.profiles import items_of, profile_table
from annotation.readers.rows import ROWS_AT_ONCE
from annotation.readers.tables import opened_table
from hits.questions import task_page
from tests.annotation.importing import (
    altered_excel,
    as_excel,
    as_parquet,
    as_zip,
    assert_refused,
    command_output,
    everything,
    write_file,
)
from tests.codes import codes_of, refused, refused_naming

ROWS = [["dialog_id", "output"], *([f"d{n}", "Hi"] for n in range(5))]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def read(path: Path, kind: str = "rating") -> tuple[Any, Faults]:
    faults = Faults()
    with opened_table(path) as table:
        mapping = profile_table(table).guess()
        return list(items_of(table, mapping, faults=faults, kind=kind)), faults


def test_the_encoding_and_the_sheet_can_be_chosen(tmp_path):
    path = write_file(tmp_path / "a.csv", "item,context,response\nd1,Привет,да\n".encode("cp1251"))
    with opened_table(path, formats.FileFormat(encoding="windows-1251")) as table:
        assert next(table.rows(Faults())).fields["context"] == "Привет"
    path.write_bytes(as_excel(ROWS, ("notes", "data")))
    with opened_table(path, formats.FileFormat(sheet="data")) as table:
        assert (table.form.sheet, table.form.sheets) == ("data", ("notes", "data"))


def test_cells_of_excel_read_as_a_spreadsheet_shows_them(tmp_path):
    path = tmp_path / "a.xlsx"
    rows = [["item", "context", "response", None], [7, date(2026, 1, 2), 2.0, None], [None] * 4]
    path.write_bytes(as_excel([*rows, [8, True, 0.5]]))
    [first, second], faults = read(path)
    assert faults.n == 0
    assert (first.key, first.context, first.candidates[0].text) == ("7", "2026-01-02T00:00:00", "2")
    assert (second.key, second.context, second.candidates[0].text) == ("8", "TRUE", "0.5")


def test_lists_of_turns_and_pools_inside_an_object_are_cells_and_rows(tmp_path):
    path = tmp_path / "a.jsonl"
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    pool = [{"key": "a", "title": "Red"}, {"key": "b", "title": "Blue"}]
    path.write_text(json.dumps({"item": "t1", "context": turns, "candidates": pool}))
    [item], faults = read(path)
    assert faults.n == 0
    assert item.context == "User: Hi\nAssistant: Hello"
    assert [(each.key, each.text) for each in item.candidates] == [("a", "Red"), ("b", "Blue")]


def test_a_column_for_each_system_makes_a_response_of_each(tmp_path):
    path = write_file(
        tmp_path / "wide.csv",
        "prompt,response_alpha,beta output,ms\nHi,Hello,Hey,3\nBye,,So long,4\n",
    )
    [first, second], faults = read(path)
    assert faults.n == 0
    expected = {"alpha": "Hello", "beta": "Hey"}
    assert {each.system: each.text for each in first.candidates} == expected
    # An empty cell is no response; the name of an item without one is made of its page.
    assert [each.system for each in second.candidates] == ["beta"]
    assert first.key.startswith("item-")
    assert first.key != second.key
    assert [item.key for item in read(path)[0]] == [first.key, second.key]


@pytest.mark.django_db
def test_extra_columns_stay_with_responses_and_are_exported(tmp_path):
    rows = "d1,Hi,a,Hello,89.90,3\nd1,Hi,b,Hey,,\nd2,Bye,a,So long,7,0\nd2,Bye,b,Ciao,,1\n"
    path = write_file(tmp_path / "a.csv", f"item,context,system,response,price,stock\n{rows}")
    maps = ("item", "context", "system", "response", "extra=price", "extra=stock")
    options = [f"--map={each if '=' in each else f'{each}={each}'}" for each in maps]
    command_output("import_items", path, *options, study="s")
    study = models.Study.objects.get()
    first = '{"price": "89.90", "stock": "3"}'
    expected = [first, "", '{"price": "7", "stock": "0"}', '{"stock": "1"}']

    def exported():
        lines = "".join(study_files.study_download("items.csv").write(study)).splitlines()
        return [row["extra"] for row in csv.DictReader(lines)]

    assert exported() == expected
    assert "89.90" not in task_page(study.items.first())
    # Pairs have them, and so have the items that come back.
    document = versions.current_document(study)
    versions.save_draft(study=study, document=pairs.with_pairs(document, records.Pairs("all")))
    assert sorted(exported()) == sorted(expected)
    versions.save_draft(study=study, document=document)
    assert exported() == expected


@pytest.mark.parametrize("is_wide", [True, False])
def test_empty_responses_are_left_out_with_the_names_of_their_items_unless_kept(tmp_path, is_wide):
    content = "item,context,response_a,response_b\nd1,Hi,Hello, \nd2,Bye,,So\nd3,Ok,Fine,Well\n"
    if not is_wide:
        cells = [row.split(",") for row in content.splitlines()[1:]]
        rows = [f"{i},{c},{s},{t}\n" for i, c, *ts in cells for s, t in zip("ab", ts, strict=True)]
        content = "item,context,system,response\n" + "".join(rows)
    path = write_file(tmp_path / "table.csv", content)
    for fixes, n_candidates in (({}, 4), ({BLANK: KEEP}, 6)):
        with opened_table(path) as table:
            mapping = replace(profile_table(table).guess(), fixes=fixes)
            items = items_of(table, mapping, faults=(faults := Faults()), kind="rating")
        assert (faults.n, len(items), items.n_candidates) == (0, 3, n_candidates)
        [note] = items.notes()
        assert note.code == BLANK
        assert "d1, b; d2, a" in note
        left_out = items.report().parts if is_wide else items.report().left_out
        assert [(code, each.n) for code, each in left_out.items()] == [(BLANK, 2)][: 1 - len(fixes)]
    # An item without any response is a fault.
    path.write_text(content + ("d4,Oh,,\n" if is_wide else "d4,Oh,a,\nd4,Oh,b, \n"))
    items, faults = read(path)
    assert [fault.code for fault in faults.first] == ["no_response"]
    assert len(items) == 3


def test_candidates_without_a_text_and_twice_in_an_item_are_kept_unless_left_out(tmp_path):
    table = (
        "item,title,image,key,candidate_image,response\nt1,Shoe,a.png,c1,a1.png,Red\n"
        "t1,Shoe,a.png,c2,a2.png,\nt1,Shoe,a.png,c3,a1b.png,Red\n"
    )
    files = {f"{n}.png": PNG + n[:2].encode() for n in ("a", "a1", "a2", "a1b")}
    path = write_file(tmp_path / "a.zip", as_zip({"t.csv": table.encode(), **files}))
    for fixes, keys in (
        ({}, ["c1", "c2", "c3"]),
        ({NO_TEXT: LEAVE_OUT}, ["c1", "c3"]),
        ({NO_TEXT: KEEP, REPEATED: LEAVE_OUT}, ["c1", "c2"]),
    ):
        with opened_table(path) as table:
            mapping = replace(profile_table(table).guess(), fixes=fixes)
            items = items_of(table, mapping, faults=(faults := Faults()), kind="alternatives")
            assert faults.n == 0
            assert [each.key for each in next(iter(items)).candidates] == keys
        assert [(found.code, found.n) for found in items.found] == [(NO_TEXT, 1), (REPEATED, 1)]
        assert sorted(items.report().left_out) == sorted(c for c in fixes if fixes[c] == LEAVE_OUT)


def test_a_batch_of_mechanical_turk_with_its_system_in_a_column(tmp_path):
    """One output a HIT, and a row for each assignment of it."""
    path = write_file(
        tmp_path / "batch.csv",
        "HITId,WorkerId,Input.dialog_id,Input.prompt,Input.system,Input.output,Answer.quality\n"
        "H1,W1,d1,Hi,alpha,Hello,80\nH1,W2,d1,Hi,alpha,Hello,70\nH2,W1,d1,Hi,beta,Hey,20\n",
    )
    with opened_table(path) as table:
        mapping = profile_table(table).guess()
        items = items_of(table, mapping, faults=(faults := Faults()), kind="rating")
        [item] = items
    assert faults.n == 0
    assert (item.key, [each.system for each in item.candidates]) == ("d1", ["alpha", "beta"])
    assert items.report().left_out["repeated_response"].n == 1


def guess(columns: list[str], n_rows: int = 0, **cells: Any) -> ColumnMapping:
    """The guess for columns of which the number of different cells and the first one are known."""
    counts, first = cells.get("n_distinct", {}), cells.get("first", {})
    known = [
        Column(name, first.get(name, ""), n_rows, n_distinct=counts.get(name, 0))
        for name in columns
    ]
    return guess_mapping(known, n_rows=n_rows)


def guessed_item(columns: list[str], n_rows: int, **cells: Any) -> str | None:
    return guess(columns, n_rows, **cells).column(Use.ITEM)


def test_uses_of_columns_are_guessed_from_their_names_and_values():
    answers = ["Answer.q_alpha", "Answer.q_beta"]
    mapping = guess(["HITId", "Input.context", "Input.alpha", "Input.beta", *answers])
    assert mapping.columns(Use.RESPONSE) == ["Input.alpha", "Input.beta"]
    assert mapping.column(Use.CONTEXT) == "Input.context"
    assert [mapping.system_of(name) for name in mapping.columns(Use.RESPONSE)] == ["alpha", "beta"]
    # A dialogue's name beside its history names the item.
    for name in ("dialog", "Dialogue", "conversation"):
        columns = [name, "history", "model", "response"]
        n_distinct = {name: 4, "history": 4, "model": 2, "response": 8}
        first = {name: "d-17", "history": "Hello. Hello!"}
        guessed = guess(columns, 8, n_distinct=n_distinct, first=first)
        assert (guessed.column(Use.ITEM), guessed.column(Use.CONTEXT)) == (name, "history")
    # A dialogue in words, or a kind of dialogue, does not.
    columns = ["dialog", "history", "model", "response"]
    n_distinct = {"dialog": 4, "history": 4, "model": 2}
    words = {"dialog": "Hello. Hello!"}
    assert guessed_item(columns, 8, n_distinct=n_distinct, first=words) is None
    few = n_distinct | {"dialog": 2}
    assert guessed_item(columns, 8, n_distinct=few, first={"dialog": "chat"}) is None
    alone = guess(["dialog", "model", "response"], 8, n_distinct=n_distinct)
    assert (alone.column(Use.CONTEXT), alone.column(Use.ITEM)) == ("dialog", None)
    # The number of a row names no item.
    columns, n_distinct = ["id", "prompt", "model", "response"], {"id": 4, "prompt": 2, "model": 2}
    assert guessed_item(columns, 4, n_distinct=n_distinct) is None
    assert guessed_item(columns, 8, n_distinct=n_distinct) == "id"


@pytest.mark.parametrize(
    ("uses", "code", "named"),
    [
        ({}, "no_response", ""),
        ({"a": "item", "b": "item", "c": "response"}, "repeated_use", "a, b"),
        ({"a": "system", "b": "response", "c": "response"}, "several_responses", "b, c"),
        ({"response_x": "response", "x_response": "response"}, "repeated_system", "x"),
        ({"a": "picture", "c": "response"}, "no_pictures", ""),
        ({"x" * 101: "response"}, "system_too_long", "100"),
    ],
)
def test_unfit_mappings_have_faults(uses, code, named):
    faults = {fault.code: fault for fault in mapping_faults(ColumnMapping.of({"uses": uses}))}
    assert named in faults[code]


LONG = {"item": "item", "context": "context", "system": "system", "response": "response"}
HEADER = b"item,context,system,response\n"

NO_SYSTEM = {"item": "item", "response": "response"}
WIDE = {"item": "item", "alpha": "response", "beta": "response"}
LONG_CONDITION = b"item,condition,response\na," + b"b" * 65 + b",c\n"
LINE_OF_JSON = b'{"item": "a", "context": "b", "system": "c", "response": "d"}\n'
CELL_ERROR = as_excel([["item", "response"], ["a", "#REF!"]])
CELL_BEYOND = as_excel([["item", "response"], ["a", "b", "c"]])

# name, content, the uses of its columns; and the line, column and code of each fault
BAD_FILES: list[tuple[str, bytes, dict[str, str], list[tuple[int | None, str, str]]]] = [
    (
        "rows of both kinds",
        HEADER + b"a,b\nc,d,e,f,g\n,x,y,z\n",
        LONG,
        [(2, "", "field_count"), (3, "", "field_count"), (4, "item", "empty")],
    ),
    ("spaces for an item", HEADER + b" ,b,c,d\n", LONG, [(2, "item", "empty")]),
    ("a long item", HEADER + b"a" * 201 + b",b,c,d\n", LONG, [(2, "item", "too_long")]),
    ("a long system", HEADER + b"a,b," + b"c" * 101 + b",d\n", LONG, [(2, "system", "too_long")]),
    ("a NUL", HEADER + b"a,b\x00b,c,d\n", LONG, [(2, "context", "nul")]),
    (
        "a long condition",
        LONG_CONDITION,
        NO_SYSTEM | {"condition": "condition"},
        [(2, "condition", "too_long")],
    ),
    ("no response in a row", b"item,alpha,beta\na,, \n", WIDE, [(2, "", "no_response")]),
    ("a quote left open", HEADER + b'a,b,c,d\ne,"f,g,h\n', LONG, [(3, "", "not_csv")]),
    ("a quote in the open", HEADER + b'a,"b"b,c,d\n', LONG, [(2, "", "not_csv")]),
    ("header only", HEADER, LONG, [(None, "", "no_rows")]),
    ("a column twice", b"item,item,system\na,b,c\n", LONG, [(1, "", "repeated_columns")]),
    (
        "too many columns",
        b",".join(b"c%d" % n for n in range(501)) + b"\n" + b"1," * 500 + b"2\n",
        LONG,
        [(1, "", "too_many_columns")],
    ),
    ("half a line of JSON", LINE_OF_JSON + b'{"item": \n', LONG, [(2, "", "not_json")]),
    ("an array among lines", LINE_OF_JSON + b"[1]\n", LONG, [(2, "", "not_object")]),
    ("JSON that ends", b'[{"item": "a"', LONG, [(1, "", "not_json")]),
    ("an array of numbers", b"[1, 2]", LONG, [(1, "", "not_object")]),
    ("an object of nothing", b'{"a":\n1}', LONG, [(1, "", "not_objects")]),
    ("deep JSON", b'{"item": ' + b"[" * 30 + b"]" * 30 + b"}\n", LONG, [(1, "item", "too_deep")]),
    ("half a pair", b'{"item": "a", "context": "\\ud800"}\n', LONG, [(1, "context", "surrogate")]),
    ("an error in a cell of Excel", CELL_ERROR, NO_SYSTEM, [(2, "response", "cell_error")]),
    ("a cell beyond the header", CELL_BEYOND, NO_SYSTEM, [(2, "", "unnamed_column")]),
]
MANY_FILES = {"a.csv": b"a,b\n1,2\n", "b.txt": archives.MEMBER * 100_001}
BOMB = b"item\n" * 400_000
BOOK_BOMB = as_zip({"xl/workbook.xml": b"<a/>", "xl/a.xml": b" " * 2_000_000}, ZIP_DEFLATED)
REFUSED_FILES = [
    ("empty", b"", "empty_file"),
    ("an old Excel file", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, "old_excel"),
    ("a PDF", b"%PDF-1.7\n", "pdf"),
    ("a web page", b"<!doctype html><table>", "web_page"),
    ("a picture", PNG, "picture"),
    ("a broken zip", b"PK\x03\x04" + b"\0" * 40, "not_zip"),
    ("a broken name", as_zip({"é.csv": b"a"}).replace("é".encode(), b"\xb1\xb1", 1), "not_zip"),
    ("a broken gzip", b"\x1f\x8b\x08" + b"\0" * 40, "not_gzip"),
    ("a zip without a table", as_zip({"a.png": PNG}), "no_table"),
    ("a Word document", as_zip({"word/document.xml": b"<a/>"}), "word"),
    ("an OpenDocument sheet", as_zip({"content.xml": b"<a/>"}), "open_document"),
    ("a broken workbook", as_zip({"xl/workbook.xml": b"<a/>"}), "not_excel"),
    ("a bomb", as_zip({"a.csv": BOMB}), "unpacked_too_large"),
    ("a zip of a hundred thousand files", as_zip(MANY_FILES), "too_many_files"),
    ("a workbook bomb in a zip", as_zip({"a.csv": BOOK_BOMB}), "unpacked_too_large"),
    ("a gzip bomb", gzip.compress(BOMB, mtime=0), "unpacked_too_large"),
    ("a broken Parquet file", as_parquet({"item": ["d1"]})[:-20], "not_parquet"),
]
BAD_KINDS = [
    *BAD_FILES,
    *((name, content, LONG, [(None, "", code)]) for name, content, code in REFUSED_FILES),
]


@pytest.mark.parametrize("case", BAD_KINDS, ids=lambda case: case[0])
def test_each_fault_of_a_file_has_its_cell_and_code(case, tmp_path):
    _name, content, uses, expected = case
    path = write_file(tmp_path / "bad", content)
    faults = Faults()
    try:
        with opened_table(path, most_bytes=1024**2) as table:
            items_of(table, ColumnMapping.of({"uses": uses}), faults=faults, kind="rating")
    except ImportRefused as refused_file:
        faults.add(refused_file)
    found = [(fault.line, fault.column, fault.code) for fault in faults.first]
    assert found[: len(expected)] == expected


def test_a_sheet_that_says_it_has_a_row_far_down_is_not_read_to_there(tmp_path):
    path = tmp_path / "a.xlsx"
    row = b'<row r="99999999999"><c r="A99999999999"/></row></sheetData>'
    path.write_bytes(altered_excel(ROWS, b"</sheetData>", row))
    faults = Faults()
    with opened_table(path) as table:
        assert len(list(table.rows(faults))) == len(ROWS) - 1
    assert faults.first[0].code == "too_many_rows"


def test_texts_of_workbooks_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_TEXTS_BYTES", 100)
    part = b'<Override PartName="/xl/styles.xml" ContentType="%b"/></Types>'
    content = altered_excel(ROWS, b"</Types>", part % archives.TEXTS.encode())
    path = write_file(tmp_path / "a.xlsx", content)
    with refused(ImportRefused, "texts_too_large"), opened_table(path):
        pass


def test_only_what_is_small_once_unpacked_is_read_before_the_page_answers():
    for content, is_small in (
        (b"a" * 1000, True),
        (b"a" * 1001, False),
        (gzip.compress(b"a" * 1000, mtime=0), True),
        (gzip.compress(b"a" * 1001, mtime=0), False),
        (gzip.compress(b"a", mtime=0) + gzip.compress(b"a" * 1001, mtime=0), False),
        (as_zip({"a.csv": b"a" * 1000}), True),
        (as_zip({"a.csv": b"a" * 1001}), False),
        (as_zip({"a.csv": as_zip({"a": b""})}), False),
        (as_zip({"xl/workbook.xml": b"a" * 1000}), True),
        (b"PAR1", False),
        (b"PK\x03\x04 broken", True),
        (b"\x1f\x8b broken", True),
    ):
        assert archives.is_small(content, most_bytes=1000) == is_small


def test_of_many_faults_the_first_hundred_are_kept_and_the_rest_counted(tmp_path):
    path = write_file(tmp_path / "a.csv", HEADER + b",b,c,d\n" * 250)
    faults = Faults()
    with opened_table(path) as table:
        items_of(table, ColumnMapping.of({"uses": LONG}), faults=faults, kind="rating")
    assert (faults.n, len(faults.first), faults.n_more) == (250, 100, 150)


def test_faults_of_rows_that_are_far_apart_come_in_the_files_order(tmp_path):
    """A file in the order of its systems, which is longer than what is checked at once."""
    n_items = ROWS_AT_ONCE + 100
    rows = [f"d{n},c,{system},t\n" for system in ("a", "b") for n in range(n_items)]
    rows += ["d1,c,a,t\n", "d2,c,a,other\n", "d3,other,a,t\n", "d4,c,,t\n", "d5,c\n"]
    rows += ["d6,c,c,t\n", "d6,c,c,other\n"]
    path = write_file(tmp_path / "a.csv", HEADER.decode() + "".join(rows))
    faults = Faults()
    with opened_table(path) as table:
        items = items_of(table, ColumnMapping.of({"uses": LONG}), faults=faults, kind="rating")
    first = 2 * n_items + 2
    assert [((fault.line or 0) - first, fault.column, fault.code) for fault in faults.first] == [
        (1, "system", "repeated_response"),
        (2, "context", "differs"),
        (3, "system", "empty"),
        (4, "", "field_count"),
        (6, "system", "repeated_response"),
    ]
    assert (items.n_faulty, len(items)) == (4, n_items - 4)
    left_out = {code: (each.n, each.places) for code, each in items.report().left_out.items()}
    assert left_out == {
        "repeated_response": (2, [f"Line {first}", f"Line {first + 2}"]),
        "field_count": (1, [f"Line {first + 4}"]),
        "faulty_item": (4 * 2 + 4, []),
    }
    assert [each.system for each in next(iter(items)).candidates] == ["a", "b"]


def pool(tmp_path: Path, files: dict[str, bytes], rows: str) -> tuple[list[Any], Faults]:
    path = write_file(
        tmp_path / "a.zip",
        as_zip({"t.csv": f"item,title,image,key,candidate_image\n{rows}".encode(), **files}),
    )
    return read(path, kind="alternatives")


HUGE = 50_001
PICTURES = {
    "png": PNG[:8] + b"\0\0\0\rIHDR" + struct.pack(">II", HUGE, 1000),
    "gif": b"GIF89a" + struct.pack("<HH", HUGE, 1000),
    "webp-extended": b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\x50\xc3\0\xe7\x03\0",
    "webp-lossless": b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 9999 | 5000 << 14),
    "webp": b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 10_000, 5001),
    "jpeg": b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x11\x08" + struct.pack(">HH", 1000, HUGE),
}


BAD_POOLS = [
    *((f"t1,Shoe,{kind},c1,b.png\n", "too_many_pixels") for kind in PICTURES),
    ("t1,Shoe,gone.png,c1,b.png\n", "no_picture"),
    ("t1,Shoe,../../etc/passwd,c1,b.png\n", "no_picture"),
    ("t1,Shoe,https://x.org/a.png,c1,b.png\n", "web_address"),
    ("t1,Shoe,t.csv,c1,b.png\n", "not_picture"),
    ("t1,Shoe,a.png,c1,a.png\n", "target_in_pool"),
    ("t1,Shoe,a.png,c1,B.PNG\n", "several_pictures"),
    ("t1,,a.png,c1,b.png\n", "no_title"),
    ("t1,Shoe,big.png,c1,b.png\n", "too_large"),
]


@pytest.mark.parametrize(
    "name", ["t1.png", "T1.PNG", "./t1.png", "t1", "t1.jpeg.png", "in\\\\t1.png", "deep/in/t1.png"]
)
def test_pictures_are_found_by_file_name_in_any_folder_of_the_zip(tmp_path, name):
    known = name if name.endswith("jpeg.png") else "t1.png"
    files = {f"deep/in/{known}": PNG + b"t", "deep/b 1.png": PNG + b"b", "__MACOSX/b 1.png": PNG}
    [item], faults = pool(tmp_path, files, f"t1,Shoe,{name},c1,b 1.png\n")
    assert faults.n == 0
    pictures = (item.picture, item.candidates[0].picture)
    assert [picture.content for picture in pictures] == [PNG + b"t", PNG + b"b"]


@pytest.mark.parametrize(("rows", "code"), BAD_POOLS)
def test_pictures_that_cannot_be_shown_are_faults(tmp_path, rows, code):
    files = {"a.png": PNG + b"a", "b.png": PNG + b"b", "big.png": PNG + b"x" * 2 * 1024**2}
    files["c/b.png"] = PNG + b"c"
    items, faults = pool(tmp_path, files | PICTURES, rows)
    assert code in [fault.code for fault in faults.first]
    assert items == []


# The command


@pytest.mark.django_db
def test_a_command_maps_the_columns_of_a_file(tmp_path):
    path = write_file(tmp_path / "a.csv", "n;who;said;heard\n1;alpha;Hello;Hi\n1;beta;Hey;Hi\n")
    maps = [f"--map={text}" for text in ("item=n", "system=who", "response=said", "context=heard")]
    command_output("import_items", path, *maps, study="s")
    assert models.Item.objects.get().context == "Hi"
    expected = [("alpha", "Hello"), ("beta", "Hey")]
    assert list(models.Candidate.objects.values_list("system", "text")) == expected
    before = everything()
    command_output("import_items", path, *maps, study="s")
    assert everything() == before


@pytest.mark.django_db
def test_a_command_names_the_system_of_each_column(tmp_path):
    path = write_file(tmp_path / "a.csv", "prompt,x,y\nHi,Hello,Hey\n")
    options = ["--system=x=alpha", "--system=y=beta", "--json"]
    dry = json.loads(command_output("import_items", path, "--dry-run", *options, study="s"))
    assert (dry["items"], dry["systems"], models.Study.objects.count()) == (1, 2, 0)
    assert {each["code"] for each in dry["reasons"].values()} <= {"usual_name"}
    command_output("import_items", path, *options, study="s")
    assert set(models.Candidate.objects.values_list("system", flat=True)) == {"alpha", "beta"}
    # A template makes a study of its kind.
    pooled = [{"key": "a", "title": "Red"}]
    path.write_text(json.dumps({"item": "t", "target": {"title": "Shoe"}, "candidates": pooled}))
    command_output("import_items", path, study="pools", protocol="alternatives")
    study = models.Study.objects.named("pools")
    assert (study.kind, study.protocols.count()) == ("alternatives", 1)


@pytest.mark.django_db
def test_bad_rows_are_left_out_only_if_asked(tmp_path):
    path = write_file(tmp_path / "a.csv", HEADER + b",b,c,d\ne,b,,d\nf,b,c,d\n")
    message = str(assert_refused("import_items", path, "faults"))
    assert re.findall(r"Line (\d), column (\w+)", message) == [("2", "item"), ("3", "system")]
    command_output("import_items", path, "--leave-out", study="s")
    assert list(models.Item.objects.values_list("key", flat=True)) == ["f"]


@pytest.mark.parametrize(
    ("columns", "codes", "reasons"),
    [
        (["item_id", "prompt", "output", "model"], [], ["usual_name"] * 3),
        (["T", "question", "response_a", "bot answer"], ["T"],
         ["codes", "usual_name", "named_after_system", "named_after_system"]),
        (["HITId", "Input.context", "Input.alpha", "Answer.good_alpha"], [],
         ["usual_name", "usual_name", "rated_by_column"]),
    ],
)  # fmt: skip
def test_guesses_have_reasons(columns, codes, reasons):
    known = [Column(name, "", 3, n_distinct=3, has_codes=name in codes) for name in columns]
    mapping = guess_mapping(known, n_rows=3)
    found = guess_reasons(mapping, known, 3)
    assert [found[name].code for name in columns if name in mapping.uses] == reasons


@pytest.mark.django_db
def test_options_that_mean_nothing_are_refused(tmp_path):
    path = write_file(tmp_path / "a.csv", HEADER + b"a,b,c,d\n")
    options = ["--map=item", "--map=item=gone", "--map=thing=item", "--system=item"]
    for option in (*options, "--encoding=latin-x", "--delimiter=!"):
        with refused_naming(CommandError, *option.split("=")[:2]):
            command_output("import_items", path, option, study="s")


@pytest.mark.parametrize("form", [formats.FileFormat(), formats.FileFormat(encoding="utf-8")])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_of_another_encoding_is_named_and_the_rest_taken_for_what_it_is(
    tmp_path, form, name
):
    """A reader reads ahead: it stands at the first line when the fourth is found to be wrong."""
    lines = ["item,response", *(f"{n},so \N{SPARKLES}" for n in range(3)), "9,na\N{SPARKLES}"]
    if name.endswith("jsonl"):
        lines = [json.dumps({"item": line}, ensure_ascii=False) for line in lines]
    content = "\n".join(lines[:3]).encode() + b"\n" + lines[3].encode().replace(b"so", b"caf\xe9")
    path = write_file(tmp_path / name, content + b"\n" + lines[4].encode())
    with opened_table(path, form) as table, refused(ImportRefused, "wrong_encoding", line=4):
        list(table.records(on_fault=pytest.fail))


TABLES_OF_CODES = {
    "fashion": (
        "target,target picture,description,candidate,candidate picture\n"
        "T01,t1.png,A red dress,T01-C1,a.png\nT01,t1.png,A red dress,T01-C2,b.png\n"
        "T02,t2.png,A coat,T02-C1,c.png\n",
        {"target": "item", "description": "context"},
    ),
    "pictures without a text": (
        "target,target picture,candidate,candidate picture\nT01,t1.png,T01-C1,a.png\n"
        "T01,t1.png,T01-C2,b.png\nT02,t2.png,T02-C1,c.png\n",
        {"target": "item", "target picture": "picture"},
    ),
    "a text of each candidate": (
        "target,target picture,candidate,candidate picture,remark\nT01,t1.png,T01-C1,a.png,red\n"
        "T01,t1.png,T01-C2,b.png,blue\nT02,t2.png,T02-C1,c.png,green\n",
        {"target": "item", "remark": None},
    ),
    "long": (
        "dialogue,user_turn,system,response\nctx-01,Hi there!,a,Hello\nctx-01,Hi there!,b,Hey\n"
        "ctx-02,I need 2 tickets,a,Sure\nctx-02,I need 2 tickets,b,No\n",
        {"dialogue": "item", "user_turn": "context"},
    ),
    "wide": (
        "No.,context,response_a,response_b\n1,Hi,Hello,Hey\n2,Hi,Bye,No\n3,Hey,Yes,No\n",
        {"No.": "item", "context": "context"},
    ),
    "unique texts and scores": (
        "context,score,model,response\nHi,0.5,a,Hello\nHi,0.5,b,Hey\nBye,0.75,a,So\nBye,0.75,b,No\n",
        {"score": None, "context": "context"},
    ),
    "several turns of a dialogue": (
        "dialogue,user_turn,system,response\nctx-01,Hi!,a,Hello\nctx-01,So?,a,Hey\nctx-02,No,a,Yes\n",
        {"dialogue": "context", "user_turn": None},
    ),
    "short texts": (
        "context,remark,model,response\nHi,greets,a,Hello\nBye,leaves,a,So\n",
        {"context": "context", "remark": None},
    ),
    "no usual name, a row per candidate": (
        "topic,shown,wanted,option,seen,label,price\nT1,t1.png,A red dress,a-1,a.png,Some dress,1.5\n"
        "T1,t1.png,A red dress,a-2,b.png,Other dress,2\nT2,t2.png,A long coat,a-3,c.png,One coat,9\n",
        {
            "topic": "item",
            "shown": "picture",
            "wanted": "context",
            "option": "candidate",
            "seen": "candidate_picture",
            "label": "response",
            "price": None,
        },
    ),
    "no usual name, a row per response": (
        "case,said,who,heard\nc1,Hi to you,Bot A,Hello my friend\nc1,Hi to you,Bot B,Hey my friend\n"
        "c2,Good bye then,Bot A,So long now\nc2,Good bye then,Bot B,See you later\n",
        {"case": "item", "said": "context", "heard": "response"},
    ),
    "no usual name, a column per system": (
        "nr,said,Bot A,Bot B,remarks\n1,Hi to you,Hello my friend,Hey my friend,a good one\n"
        "2,Good bye then,So long now,See you later,a bad one\n",
        {
            "nr": "item",
            "said": "context",
            "Bot A": "response",
            "Bot B": "response",
            "remarks": None,
        },
    ),
    "a number for most rows only": (
        "No.,context,response_a,response_b\n1,Hi,Hello,Hey\n,Ho,Bye,No\n",
        {"No.": None},
    ),
}


@pytest.mark.parametrize("name", TABLES_OF_CODES)
def test_codes_that_tell_items_apart_are_guessed_as_their_names(tmp_path, name):
    content, uses = TABLES_OF_CODES[name]
    path = write_file(tmp_path / "table.csv", content)
    with opened_table(path) as table:
        profile = profile_table(table)
    mapping = profile.guess()
    assert {column: mapping.uses.get(column) for column in uses} == uses
    is_named = "item" in uses.values()
    assert codes_of(mapping_warnings(mapping)) == ([] if is_named else ["no_item_column"])


@pytest.mark.django_db
def test_an_import_without_names_of_items_says_so(tmp_path):
    path = write_file(
        tmp_path / "table.csv", "context,response_a,response_b\nHi,Hello,Hey\nHo,Bye,No\n"
    )
    for options in ({"dry_run": True, "json": True}, {"dry_run": True}, {}):
        output = command_output("import_items", path, study="s", **options)
        assert str(mapping_warnings(ColumnMapping())[0]) in output
    path.write_text("item,context,response_a,response_b\ni1,Hi,Hello,Hey\ni2,Ho,Bye,No\n")
    output = command_output("import_items", path, study="t", dry_run=True, json=True)
    assert json.loads(output)["notes"] == []
