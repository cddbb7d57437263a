"""What no reader takes, whatever the file is meant to be."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation.exceptions import AnnotationError
from annotation.readers.alternatives import read_alternatives
from annotation.readers.drafts import StudyDraft
from annotation.readers.judgments import read_judgments
from annotation.readers.mturk_batch import read_mturk_batch
from annotation.readers.pooled_batch import read_pooled_batch
from annotation.readers.responses import read_responses
from annotation.readers.tables import read_array, read_object, read_rows
from tests.annotation.importing import assert_refused, command_output, everything
from tests.annotation.studies import rated_study

COMMANDS = (
    "import_responses",
    "import_alternatives",
    "import_altereval",
    "import_judgments",
    "import_mturk_batch",
)
READERS = (
    read_responses,
    read_alternatives,
    read_pooled_batch,
    read_judgments,
    partial(read_mturk_batch, context="C"),
)
HEADER = "item,system,context,response\n"

# name, content, line, field, problem
CSV_REFUSALS = [
    ("empty", b"", None, None, "no rows"),
    ("only a byte order mark", b"\xef\xbb\xbf", None, None, "no rows"),
    ("header only", HEADER.encode(), None, None, "no rows"),
    ("blank lines only", b"\n\n", 1, None, "columns are missing: item, system, context, response"),
    ("a missing column", b"item,system,context\na,b,c\n", 1, None, "missing: response .found: i"),
    ("columns of another case", b"Item,System,Context,Response\n", 1, None, "are missing: item"),
    ("a column twice", b"item,item,system,context,response\n", 1, None, "appear twice: item"),
    ("columns without a name", HEADER.strip().encode() + b",,\n", 1, None, "twice: .no name."),
    ("a NUL in the header", b"it\x00em,system,context,response\n", 1, None, "NUL"),
    ("too few fields", b"item,system,context,response\na,b,c\n", 2, None, "3 fields, .* has 4"),
    ("too many fields", b"item,system,context,response\na,b,c,d,e\n", 2, None, "5 fields"),
    ("Latin-1", HEADER.encode() + b"d0,alpha,hi,ok\nd1,alpha,caf\xe9,ok\n", 3, None, "not UTF-8"),
    ("not UTF-8 at the start", b"\xff\xfei\x00t\x00", 1, None, "not UTF-8"),
    ("not UTF-8 far away", HEADER.encode() + b"a,b,c,d\n" * 9999 + b"\xff", 10001, None, "UTF-8"),
    ("a NUL in a text", HEADER.encode() + b"d0,alpha,a\x00b,ok\n", 2, "context", "NUL"),
    ("a NUL in a key", HEADER.encode() + b"d\x000,alpha,hi,ok\n", 2, "item", "NUL"),
    ("a quote in the open", HEADER.encode() + b'd0,alpha,"a"b,ok\n', 2, None, "not CSV"),
    ("a quote left open", HEADER.encode() + b'd0,alpha,"hi,ok\nmore\n', 2, None, "not CSV"),
    ("a huge field", HEADER.encode() + b"d0,a," + b"x" * 10_000_001 + b",ok\n", 2, None, "not CSV"),
    ("an empty key", HEADER.encode() + b" ,alpha,hi,ok\n", 2, "item", "must not be empty"),
    (
        "a long key",
        HEADER.encode() + b"d" * 201 + b",alpha,hi,ok\n",
        2,
        "item",
        "201 characters, where 200 fit",
    ),
    (
        "a long system",
        HEADER.encode() + b"d0," + b"s" * 101 + b",hi,ok\n",
        2,
        "system",
        "101 characters, where 100 fit",
    ),
    (
        "after quoted lines",
        HEADER.encode() + b'd0,alpha,"one\ntwo\r\nthree",ok\nd1,,hi,ok\n',
        5,
        "system",
        "must not be empty",
    ),
    (
        "after blank lines and old line ends",
        HEADER.strip().encode() + b"\r\n\r\nd0,alpha,hi,ok\rd1,,hi,ok\r",
        4,
        "system",
        "must not be empty",
    ),
]

GOOD = '{"item": "d0", "system": "alpha", "context": "hi", "response": "ok"}\n'
JSON_REFUSALS = [
    ("junk", GOOD + "junk\n", 2, None, "not JSON"),
    ("two objects on a line", GOOD.strip() + GOOD, 1, None, "not JSON"),
    ("an array", "[1, 2]\n", 1, None, "expected a JSON object"),
    ("a number", "\n\n7\n", 3, None, "expected a JSON object"),
    ("null", "null\n", 1, None, "expected a JSON object"),
    ("an object over two lines", '{"item":\n "d0"}\n', 1, None, "not JSON"),
    ("a missing field", '{"item": "d0", "system": "a", "context": "hi"}', 1, "response", "missing"),
    ("a list for a text", GOOD.replace('"hi"', "[1]"), 1, "context", "expected text, not list"),
    ("an object for a text", GOOD.replace('"hi"', "{}"), 1, "context", "expected text, not dict"),
    ("a truth for a text", GOOD.replace('"hi"', "true"), 1, "context", "expected text, not bool"),
    ("null for a key", GOOD.replace('"d0"', "null"), 1, "item", "must not be empty"),
    ("NaN", GOOD.replace('"hi"', "NaN"), 1, None, "not JSON: NaN"),
    ("Infinity", GOOD.replace('"hi"', "-Infinity"), 1, None, "not JSON: -Infinity"),
    ("an endless number", GOOD.replace('"hi"', "9" * 5000), 1, None, "not JSON"),
    ("a line cut short", GOOD + '{"item": "d0', 2, None, "JSON: Unterminated .* at, column 10"),
    ("a line without its end", GOOD + '{"item": "d0"\n', 2, None, "JSON: Expecting .* column 14"),
    ("too deep to read", GOOD.replace('"hi"', "[" * 100_000), 1, None, "nested too deeply"),
    ("deep", GOOD.replace('"hi"', "[" * 50 + "]" * 50), 1, "context", "nested more than 20"),
    ("an escaped NUL", GOOD.replace("hi", "a\\u0000b"), 1, "context", "NUL"),
    ("a NUL deep inside", GOOD.replace('"hi"', '[{"a": "\\u0000"}]'), 1, "context", "NUL"),
    ("a NUL in a name", GOOD.replace("{", '{"a\\u0000": 1, '), 1, "a\x00", "NUL"),
    ("half a pair", GOOD.replace("hi", "\\ud83d"), 1, "context", "half a surrogate pair"),
    ("half a pair unused", GOOD.replace("{", '{"x": "\\ude00", '), 1, "x", "half a surrogate"),
    ("not UTF-8", GOOD.encode() + b'{"item": "caf\xe9"}', 2, None, "not UTF-8"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "line", "field", "problem"),
    [case[1:] for case in CSV_REFUSALS],
    ids=[case[0] for case in CSV_REFUSALS],
)
def test_a_csv_file_is_refused_with_its_line_and_field(
    tmp_path: Path, content: bytes, line: int | None, field: str | None, problem: str
) -> None:
    rated_study("another")
    path = tmp_path / "responses.csv"
    path.write_bytes(content)
    assert_refused("import_responses", path, problem, line=line, field=field)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "line", "field", "problem"),
    [case[1:] for case in JSON_REFUSALS],
    ids=[case[0] for case in JSON_REFUSALS],
)
def test_a_json_lines_file_is_refused_with_its_line_and_field(
    tmp_path: Path, content: str | bytes, line: int, field: str | None, problem: str
) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert_refused("import_responses", path, problem, line=line, field=field)


@pytest.mark.django_db
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, command: str) -> None:
    assert_refused(command, tmp_path / "nothing.csv", "there is no such file")


@pytest.mark.django_db
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_is_refused(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert_refused(command, folder, "is not a file")


@pytest.mark.django_db
@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_too_long_for_a_file_is_refused(tmp_path: Path, command: str) -> None:
    assert_refused(command, tmp_path / ("x" * 300), "cannot be read: File name too long")


@pytest.mark.django_db
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\xff\xfe\x00", b"item\n", b"[]\n"])
def test_every_reader_refuses_what_is_not_its_file(
    tmp_path: Path, command: str, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    before = everything()
    with pytest.raises(AnnotationError, match=f"file{suffix}.*nothing was imported"):
        command_output(command, path, study="s")
    assert everything() == before


def test_a_json_file_is_refused_at_the_line_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    for read, text in ((read_object, '{\n"a": 1,\n"b": x}'), (read_array, '[\n{"a": 1,\n"b": x}]')):
        path.write_text(text)
        with pytest.raises(AnnotationError, match=r"Line 3 of data.json: this is not JSON: .*col"):
            read(path)


def test_a_file_without_a_name_is_called_by_its_path() -> None:
    with pytest.raises(AnnotationError, match=r"^\.: \. is not a file"):
        read_rows(Path())


@pytest.mark.parametrize("number", ["", "x", "1,5", "1_000", "nan", "-inf", "1e999", "2e15"])
def test_what_is_no_finite_number_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text(f'n,m\n1,"{number}"\n')
    (row,) = read_rows(path)
    with pytest.raises(AnnotationError, match=r"Line 2 of numbers.csv, field m: '.*'"):
        row.number("m")


@pytest.mark.parametrize(("text", "value"), [(" 1.5 ", 1.5), ("-2e3", -2000.0), ("1e15", 1e15)])
def test_a_finite_number_is_read(tmp_path: Path, text: str, value: float) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text(f"n\n{text}\n")
    assert read_rows(path)[0].number("n") == value


def test_a_mark_of_utf8_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    for name, content in (("a.csv", "item,n\nx,1\n"), ("a.jsonl", '{"item": "x", "n": 1}')):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8-sig")
        assert [row.text("item") for row in read_rows(path, ("item", "n"))] == ["x"]


def test_rows_know_the_line_they_begin_on(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    path.write_bytes(b'a,"b\nb"\r\n1,"2\n\n3"\r\n\r\n4,5\r6,"7\r8"\n9,10')
    rows = read_rows(path)
    assert [(row.line, row.text("a")) for row in rows] == [(3, "1"), (7, "4"), (8, "6"), (10, "9")]
    assert rows[0].fields["b\nb"] == "2\n\n3"


# Files that are nearly right reach further into a reader than noise does.
PIECES = st.sampled_from(
    [
        *(b"item,", b"system,", b"context,", b"response\n", b"annotator,", b"value\n", b"round,"),
        *(b"HITId,", b"WorkerId,", b"AssignmentStatus,", b"Input.A,", b"Input.C,", b"Answer.Q_A\n"),
        *(b"Input.target1,", b"Input.top1,", b"top1\n", b"True", b"Approved,", b"AcceptTime,"),
        *(b'{"item": "a", ', b'"target": ', b'"candidates": ', b"[", b"]", b"}", b'{"title": "t"'),
        *(
            b'"key": "k"',
            b"NaN",
            b"1",
            b"-1e308",
            b"a,b,c,d\n",
            b",",
            b'"',
            b"\n",
            b"\x00",
            b"\xff",
        ),
    ]
)
HEADERS = st.sampled_from(
    [
        b"",
        b"item,system,context,response,reference\n",
        b"item,annotator,value,round,condition\n",
        b"HITId,WorkerId,AssignmentStatus,AcceptTime,Input.A,Input.C,Answer.Q_A\n",
        b"HITId,Input.target1,Input.top1,top1\n",
    ]
)
CONTENTS = st.one_of(
    st.binary(max_size=300),
    st.builds(
        lambda header, pieces: header + b"".join(pieces), HEADERS, st.lists(PIECES, max_size=40)
    ),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
COMPLETE = {
    **{"item": "a", "system": "b", "context": "c", "response": "d", "reference": "e"},
    **{"annotator": "Ann", "value": 1, "round": 1, "condition": "f", "question": "g"},
    "target": {"title": "a", "image": ""},
    "candidates": [{"key": "k", "title": "t", "system": "s"}],
    **{"HITId": "H1", "WorkerId": "W1", "AssignmentStatus": "Approved"},
    **{"AcceptTime": "Tue Jun 13 14:13:34 PDT 2023", "WorkTimeInSeconds": 60},
    **{"Input.A": "a", "Input.C": "c", "Answer.Q_A": 50},
    **{"Input.target1": "t", "Input.top1": "p", "top1": "True"},
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=CONTENTS)
def test_any_bytes_are_read_or_refused(
    tmp_path: Path, read: Any, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(content)
    _is_read_or_refused(read, path)


@pytest.mark.parametrize("read", READERS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(sorted(COMPLETE)), JSON_VALUES, max_size=2))
def test_any_json_objects_are_read_or_refused(
    tmp_path: Path, read: Any, changes: dict[str, Any]
) -> None:
    path = tmp_path / "any.jsonl"
    rows = [{**COMPLETE, **changes}, {**COMPLETE, **changes, "item": "b", "HITId": "H2"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _is_read_or_refused(read, path)


@pytest.mark.parametrize("read", READERS)
def test_the_object_that_is_changed_at_random_is_whole(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "whole.jsonl"
    path.write_text(json.dumps(COMPLETE))
    assert len(read(path).items) == 1


def _is_read_or_refused(read: Any, path: Path) -> None:
    refusal = ""
    try:
        draft = read(path)
    except AnnotationError as error:
        refusal = str(error)
    if refusal:
        assert path.name in refusal
        assert "othing was imported." in refusal
    else:
        assert isinstance(draft, StudyDraft)
        assert draft.items
