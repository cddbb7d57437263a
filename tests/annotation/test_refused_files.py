import json
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from annotation import exceptions
from annotation.readers import drafts, item_files, judgments, mturk_batch, pooled_batch
from annotation.readers.tables import read_object, read_rows
from error_codes import CodedText
from presentation.files import FileUnwritable, require_writable, write_whole
from tests.annotation.importing import assert_refused, command_output, everything, write_file
from tests.annotation.studies import rated_study
from tests.codes import refused, refused_naming

COMMANDS = (
    "import_responses",
    "import_alternatives",
    "import_altereval",
    "import_judgments",
    "import_mturk_batch",
)
READERS = (
    item_files.read_responses,
    item_files.read_alternatives,
    pooled_batch.read_pooled_batch,
    judgments.read_judgments,
    partial(mturk_batch.read_mturk_batch, context="C"),
)
HEADER = b"item,system,context,response\n"
FIELDS = HEADER.strip()

# name, content, line, field, code and, if it matters, data in the message
CSV_REFUSALS: list[tuple[Any, ...]] = [
    ("only a byte order mark", b"\xef\xbb\xbf", None, None, "no_rows"),
    ("blank lines only", b"\n\n", None, None, "no_rows"),
    ("a missing column", b"item,system,context\na,b,c\n", 1, None, "missing_columns", "response ("),
    ("a column twice", b"item," + HEADER, 1, None, "repeated_columns", "item"),
    ("columns without a name", FIELDS + b",,\n", None, None, "no_rows"),
    ("a NUL in the header", b"it\x00em,system,context,response\n", 1, None, "nul"),
    ("too many fields", HEADER + b"a,b,c,d,e\n", 2, None, "field_count", "5"),
    ("UTF-16 without its end", b"\xff\xfei\x00t", 1, None, "wrong_encoding"),
    (
        "not UTF-8 far away",
        HEADER + "a,b,c,d\ndä,b,c,d\n".encode() * 5000 + b"\xff",
        10002,
        None,
        "wrong_encoding",
    ),
    ("a NUL in a key", HEADER + b"d\x000,alpha,hi,ok\n", 2, "item", "nul"),
    ("a huge field", HEADER + b"d0,a," + b"x" * 10_000_001 + b",ok\n", 2, None, "not_csv"),
    ("an empty key", HEADER + b" ,alpha,hi,ok\n", 2, "item", "empty"),
    ("a long key", HEADER + b"d" * 201 + b",alpha,hi,ok\n", 2, "item", "too_long", "200"),
]

GOOD = b'{"item": "d0", "system": "alpha", "context": "hi", "response": "ok"}\n'


def changed(old: bytes, new: bytes) -> bytes:
    """A good object with another context or key."""
    return GOOD.replace(old, new)


JSON_REFUSALS: list[tuple[Any, ...]] = [
    ("junk", GOOD + b"junk\n", 2, None, "not_json"),
    ("two objects on a line", GOOD.strip() + GOOD, 1, None, "not_json"),
    ("a number", b"\n\n7\n", 3, None, "not_object"),
    ("an object over two lines", b'{"item":\n "d0"}\n', 1, None, "not_json"),
    (
        "a missing field",
        b'{"item": "a", "system": "b", "context": ""}',
        1,
        "response",
        "missing_field",
    ),
    ("a list for a text", changed(b'"hi"', b"[1]"), 1, "context", "not_text", "list"),
    ("a truth for a text", changed(b'"hi"', b"true"), 1, "context", "not_text", "bool"),
    ("null for a key", changed(b'"d0"', b"null"), 1, "item", "empty"),
    ("NaN", changed(b'"hi"', b"NaN"), 1, None, "not_json", "NaN"),
    ("an endless number", changed(b'"hi"', b"9" * 5000), 1, None, "not_json"),
    ("a line cut short", GOOD + b'{"item": "d0', 2, None, "not_json", "10"),
    ("a line without its end", GOOD + b'{"item": "d0"\n', 2, None, "not_json", "14"),
    ("too deep to read", changed(b'"hi"', b"[" * 100_000), 1, None, "too_deep"),
    ("deep", changed(b'"hi"', b"[" * 50 + b"]" * 50), 1, "context", "too_deep", "20"),
    ("an escaped NUL", changed(b"hi", b"a\\u0000b"), 1, "context", "nul"),
    ("a NUL deep inside", changed(b'"hi"', b'[{"a": "\\u0000"}]'), 1, "context", "nul"),
    ("a NUL in a name", changed(b"{", b'{"a\\u0000": 1, '), 1, "a\x00", "nul"),
    ("half a pair unused", changed(b"{", b'{"x": "\\ude00", '), 1, "x", "surrogate"),
    (
        "not UTF-8",
        changed(b"hi", "höflich, schön".encode()) + b'{"item": "caf\xe9"}',
        2,
        None,
        "wrong_encoding",
    ),
]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("suffix", "case"),
    [*((".csv", case) for case in CSV_REFUSALS), *((".jsonl", case) for case in JSON_REFUSALS)],
    ids=lambda case: case if isinstance(case, str) else case[0],
)
def test_a_file_is_refused_at_its_line_and_field(tmp_path, suffix, case):
    _name, content, line, field, code, *values = case
    rated_study("another")
    path = write_file(tmp_path / f"responses{suffix}", content)
    assert_refused("import_responses", path, code, line=line, field=field, value="".join(values))


@pytest.mark.django_db
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_what_is_not_its_file(tmp_path, command):
    assert_refused(command, tmp_path / "nothing.csv", "no_file")
    assert_refused(command, tmp_path, "not_file")
    assert_refused(command, tmp_path / ("x" * 300), "unreadable")
    before = everything()
    for suffix in (".csv", ".jsonl"):
        path = tmp_path / f"file{suffix}"
        for content in (b"", b"\xef\xbb\xbf", b"\xff\xfe\x00", b"item\n", b"[]\n"):
            path.write_bytes(content)
            with pytest.raises(exceptions.ImportRefused) as caught:
                command_output(command, path, study="s")
            assert path.name in str(caught.value)
    assert everything() == before


def test_a_json_file_is_refused_at_the_line_that_is_none(tmp_path):
    path = tmp_path / "data.json"
    for read, text in ((read_object, '{\n"a": 1,\n"b": x}'), (read_rows, '[\n{"a": 1,\n"b": x}]')):
        path.write_text(text)
        with refused(exceptions.ImportRefused, "not_json", line=3):
            read(path)
    # A file without a name is called by its path.
    with refused(exceptions.ImportRefused, "not_file") as caught:
        read_rows(Path())
    assert str(caught.value).startswith(".:")


def test_only_a_finite_number_is_read(tmp_path):
    path = tmp_path / "numbers.csv"
    codes = {
        "nan": "not_finite",
        "-inf": "not_finite",
        "1e999": "not_finite",
        "2e15": "out_of_range",
    }
    for number in ("", "x", "1,5", "1_000", *codes):
        path.write_text(f'n,m\n1,"{number}"\n')
        [row] = read_rows(path)
        with refused(exceptions.ImportRefused, codes.get(number, "not_number"), line=2, field="m"):
            row.number("m")
    for text, value in ((" 1.5 ", 1.5), ("-2e3", -2000.0), ("1e15", 1e15)):
        path.write_text(f"n\n{text}\n")
        assert read_rows(path)[0].number("n") == value


def test_rows_know_the_line_they_begin_on(tmp_path):
    path = write_file(tmp_path / "lines.csv", b'a,"b\nb"\r\n1,"2\n\n3"\r\n\r\n4,5\r6,"7\r8"\n9,10')
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
        *(b'"key": "k"', b"NaN", b"1", b"-1e308", b"a,b,c,d\n", b",", b'"', b"\n", b"\x00"),
        b"\xff",
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
def test_any_bytes_are_handled(tmp_path, read, suffix, content):
    _is_read_or_refused(read, write_file(tmp_path / f"any{suffix}", content))


@pytest.mark.slow
@pytest.mark.parametrize("read", READERS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(sorted(COMPLETE)), JSON_VALUES, max_size=2))
def test_any_json_is_handled(tmp_path, read, changes):
    path = write_file(tmp_path / "any.jsonl", json.dumps(COMPLETE))
    assert len(read(path).items) == 1
    rows = [{**COMPLETE, **changes}, {**COMPLETE, **changes, "item": "b", "HITId": "H2"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _is_read_or_refused(read, path)


def _is_read_or_refused(read: Any, path: Path) -> None:
    refusal: exceptions.AnnotationError | None = None
    try:
        draft = read(path)
    except exceptions.AnnotationError as error:
        refusal = error
    if refusal is not None:
        assert path.name in str(refusal)
        assert isinstance(refusal, exceptions.ImportRefused) or refusal.code == "no_context"
    else:
        assert isinstance(draft, drafts.StudyDraft)
        assert draft.items


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "real.txt").write_text("before")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    write_whole(link, "after")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "after"


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_whole(pipe, "through")
    assert pipe.is_fifo()
    reader.join(timeout=10)
    assert read == ["through"]


def test_what_cannot_be_written_leaves_nothing_beside_it(tmp_path):
    for unfit in (tmp_path, tmp_path / "no" / "file"):
        with refused_naming(FileUnwritable, unfit):
            write_whole(unfit, "text")
    assert list(tmp_path.iterdir()) == []
    assert not (tmp_path.parent / f"{tmp_path.name}.partial").exists()


def test_whether_a_file_can_be_written_is_found_out_without_writing_it(tmp_path):
    path = tmp_path / "file.txt"
    require_writable(path)
    assert list(tmp_path.iterdir()) == []
    path.write_text("before")
    require_writable(path)
    assert path.read_text() == "before"
    for unfit in (tmp_path, path / "x"):
        with refused_naming(FileUnwritable, unfit):
            require_writable(unfit)
    os.mkfifo(tmp_path / "pipe")
    require_writable(tmp_path / "pipe")


NO_ITEM = CodedText("the row has no item", "no_item")
SPAN = CodedText("spans are not read yet", "spans")


def test_a_report_counts_all_rows_and_is_made_again_of_its_plain_form():
    report = drafts.ReadingReport(n_rows=5597, policies={"repeats": "refuse"})
    for line in range(2, 7):
        report.leave_out(NO_ITEM, f"line {line}")
    report.leave_out_part(SPAN, "record 3", n=12)
    report.note_missing("NULL", 33)
    report.note_missing("")
    for _ in range(2):
        report.note(CodedText("Yes/yes", "case"))
    assert report.n_used == 5592
    assert report.left_out["no_item"].places == ["line 2", "line 3", "line 4"]
    assert report.missing.total() == 34
    assert [note.code for note in report.notes] == ["case"]
    plain = json.loads(json.dumps(report.plain()))
    assert drafts.ReadingReport.from_plain(plain) == report
    left_out = {"code": "no_item", "reason": str(NO_ITEM), "n": 5}
    assert plain["left_out"] == [left_out | {"places": ["line 2", "line 3", "line 4"]}]
    assert plain["n_rows"] == plain["n_used"] + sum(each["n"] for each in plain["left_out"])

    text = " ".join(report.sentences())
    for part in ("5,597", "5,592", "5 rows", "12", "34", "'NULL'", "line 4, …", "Yes/yes"):
        assert part in text
