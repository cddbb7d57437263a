import gzip
import re

import numpy as np
import pytest

from retrieval import stored_files, trec_blocks
from retrieval.exceptions import TrecFileFaults
from retrieval.trec_files import kind_of_file, read_assessors, read_qrels, read_run
from retrieval.trec_layouts import RUN_COLUMNS, Layout
from tests.codes import refused

RUN = "1 Q0 b 1 2.5 t\n1 Q0 a 2 -1e-3 t\n"


def test_columns_names_and_infinite_scores_are_read_as_trec_eval_reads_them(file):
    run = read_run(file("run", "1\tQ0  b 1   2.5 t\r\n  1 Q0 a\t2 -1e-3 t \n"))
    assert (run.topics, run.documents, run.tag) == (["1"], ["a", "b"], "t")
    assert run.document.tolist() == [1, 0]
    assert run.score.tolist() == [2.5, -0.001]
    qrels = read_qrels(file("qrels", "07 0 NA 1\n7 0 1e3 0\n07 0 #3 -1\n"))
    assert qrels.topics == ["07", "7"]
    assert qrels.documents == ["#3", "1e3", "NA"]
    assert qrels.grade.tolist() == [1, 0, -1]
    run = read_run(file("run", "".join(f"1 Q0 {d} 1 1 t\n" for d in ("é", "a", "B", "d9", "d10"))))
    assert run.documents == ["B", "a", "d10", "d9", "é"]
    assert read_run(file("run", "1 Q0 a 1 inf t\n1 Q0 b 1 -Infinity t\n")).n_infinite == 2
    # trec_eval's scores are of single precision
    assert read_run(file("run", "1 Q0 a 1 1e39 t\n1 Q0 b 1 1e38 t\n")).n_infinite == 1
    assert read_run(file("run", "1 Q0 a 1 1 t\n1 Q0 b 1 1 u\n")).tag == ""


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(RUN.encode(), mtime=0),
        b"\xef\xbb\xbf" + RUN.encode(),
        b"# made by hand\n" + RUN.encode() + b"\n\n# the end",
        RUN.encode().rstrip(),
    ],
    ids=["gzip", "byte order mark", "comments", "no newline at the end"],
)
def test_the_same_run_is_read_from_other_kinds_of_files(file, content):
    run, plain = read_run(file("run", content)), read_run(file("plain", RUN))
    assert (run.topics, run.documents, run.tag) == (plain.topics, plain.documents, plain.tag)
    np.testing.assert_array_equal(run.score, plain.score)
    np.testing.assert_array_equal(run.document, plain.document)


PIECES = ["1", "07", "d1", "é", "#", "2.5", "-1e-3", "1_0", "+1", "inf", "nan", "", "a\x01", '"q']
GAPS = [" ", " ", " ", " ", "\t", "  ", "\r", "\x0b"]


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_tables_with_a_header_are_read_as_lines_are(file, delimiter, encoding):
    run_rows = ["", "query_id,doc_id,score,rank,note", "1,b,2.5,1,x", "1,a,-1e-3,2,", ",,,,"]
    grade_rows = ['"query-id","corpus-id","score"', "1,a,1.0", '"#2","b c",0']

    def table(name, rows):
        return file(name, "\r\n".join(rows).strip().replace(",", delimiter).encode(encoding))

    path = table("run.csv", run_rows)
    run, plain = read_run(path), read_run(file("plain", RUN))
    assert kind_of_file(path) == "run"
    assert (run.topics, run.documents) == (plain.topics, plain.documents)
    np.testing.assert_array_equal(run.score, plain.score)
    assert (run.reading.n_rows, run.reading.n_used) == (3, 2)
    assert [*run.reading.left_out] == ["blank_row"]
    path = table("qrels.csv", grade_rows)
    qrels = read_qrels(path)
    assert kind_of_file(path) == "qrels"
    assert (qrels.topics, qrels.documents) == (["#2", "1"], ["a", "b c"])
    assert qrels.grade[qrels.topic].tolist() == [0, 1]
    assert "decimal_grades" in [note.code for note in qrels.reading.notes]


def test_faults_of_tables_name_the_line(file):
    content = "query_id;doc_id;score\n1;a;1,5\n1;b;2\n1;b;3\n"
    with refused(TrecFileFaults) as caught:
        read_run(file("run.csv", content))
    assert [problem.code for _line, problem in caught.value.faults] == ["score", "twice"]
    assert "line 2" in str(caught.value)
    with refused(TrecFileFaults) as caught:
        read_run(file("run.csv", "query_id;doc_id;score\n1;a;1;2\n"))
    [(line, problem)] = caught.value.faults
    assert (line, problem.code) == (2, "field_count")


def odd_run(rng):
    """Mostly lines as they should be, with white space and cells that may not be."""
    lines = []
    for number in range(int(rng.integers(1, 6))):
        cells = [str(rng.integers(3)), "Q0", f"d{number}", "1", str(rng.normal()), "t"]
        if rng.random() < 0.4:
            cells[int(rng.integers(6))] = str(rng.choice(PIECES))
        gap = str(rng.choice(GAPS)) if rng.random() < 0.4 else " "
        lines.append(gap.join(cells) + str(rng.choice(["\n", "\n", "\r\n", " \n", "\n\n"])))
    return "".join(lines)


@pytest.mark.parametrize("seed", range(40))
def test_blocks_hold_what_lines_hold_or_nothing(seed):
    for number in range(10):
        check_blocks(odd_run(np.random.default_rng(10 * seed + number)))


def check_blocks(text):
    columns = trec_blocks.read_in_blocks([text.encode()], Layout("run", RUN_COLUMNS))
    rows = [line.split() for line in text.encode().split(b"\n") if line.split()]
    if columns is None:
        return
    assert {len(cells) for cells in rows} == {6}
    names = [(cells[0].decode(), cells[2].decode(), float(cells[4])) for cells in rows]
    topics = [columns.topics[at] for at in columns.topic]
    documents = [columns.documents[at] for at in columns.document]
    assert list(zip(topics, documents, columns.value.tolist(), strict=True)) == names
    assert columns.tags == {cells[5].decode() for cells in rows}


def test_blocks_are_read_without_looking_at_lines_where_all_is_usual():
    for gap in (b" ", b"\t", b"  "):
        block = RUN.encode().replace(b" ", gap)
        other = block.replace(b"1" + gap + b"Q0", b"2" + gap + b"Q0")
        columns = trec_blocks.read_in_blocks([block, other], Layout("run", RUN_COLUMNS))
        assert columns is not None
        assert columns.topics == ["1", "2"]


def test_a_million_blank_lines_or_spaces_are_read_at_once(file):
    """Each was looked through again from all before it, for hours."""
    run = read_run(file("run", "1 Q0 a#\t1 2.5 t\n" + "\n" * 1_000_000 + "1 Q0 b 2 1.5 t\n"))
    assert (run.documents, run.reading.n_rows) == (["a#", "b"], 2)
    assert kind_of_file(file("a.json", " " * 60_000 + '[{"a": {')) is None


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ("1 Q0 a 1 2.5\n", {1: "columns"}),
        ("1 Q0 a 1 2.5 t\n1 Q0 b 1 2.5 my run\n", {2: "columns"}),
        ("1 Q0 a 1 2,5 t\n", {1: "score"}),
        ("1 Q0 a 1 1_0 t\n", {1: "score"}),
        ("1 Q0 a 1 nan t\n", {1: "score_nan"}),
        ("1 Q0 a 1 1e400 t\n", {1: "score_range"}),
        (
            "1 Q0 a 1 2 t\n2 Q0 a 1 2 t\n\n1 Q0 a 2 1 t\n1 Q0 b 1 NaN t\n",
            {4: "twice", 5: "score_nan"},
        ),
        ("", {None: "no_lines"}),
        ("# nothing\n", {None: "no_lines"}),
        (b"1 Q0 \xff 1 2 t\n", {1: "not_utf8"}),
        (b"1 Q0 a\x00 1 2 t\n", {1: "nul"}),
        ("1 Q0 a 1 2 t\n\ufeff1 Q0 b 1 1 t\n", {2: "byte_order_mark"}),
        (b"\x1f\x8bnot gzip", {None: "unreadable"}),
        (gzip.compress(RUN.encode(), mtime=0)[:-9], {None: "unreadable"}),
    ],
)
def test_a_run_that_would_be_misread_is_refused_with_each_line(file, content, faults):
    with refused(TrecFileFaults, lines=list(faults), codes=list(faults.values())) as error:
        read_run(file("f", content))
    assert len(str(error.value).splitlines()) == len(faults) + 1


@pytest.mark.parametrize(
    ("content", "code", "value"),
    [
        ("1 0 a 1.5\n", "grade", "1.5"),
        ("1 0 a 128\n", "grade_range", "127"),
        ("1 0 a 99999999999999999999\n", "grade_range", "99999999999999999999"),
        ("1 0 a\n", "columns", "topic iteration docno grade"),
        ("1 0 a 1\n1 1 a 0\n", "twice", "a"),
    ],
)
def test_qrels_that_would_be_misread_are_refused(file, content, code, value):
    with refused(TrecFileFaults, code) as error:
        read_qrels(file("f", content))
    assert value in error.value.faults[0][1]


def test_of_many_faults_the_first_are_listed_and_of_a_cell_the_start(file):
    path = file("f", "x\n" * 30)
    with refused(TrecFileFaults, "columns", lines=list(range(1, 31))) as error:
        read_run(path)
    [equal, _end] = str(error.value).splitlines()
    assert re.findall(r"\d+", equal)[:4] == ["1", "2", "3", "27"]
    with refused(TrecFileFaults, "grade") as error:
        read_qrels(file("q", "".join(f"1 0 a{n} x{n}\n" for n in range(30))))
    assert len(str(error.value).splitlines()) == TrecFileFaults.MOST_LISTED + 2
    assert "10" in str(error.value).splitlines()[-2]
    with refused(TrecFileFaults, "unreadable", lines=[None]):
        read_run(path.with_name("missing"))
    with refused(TrecFileFaults, "grade") as error:
        read_qrels(file("q.txt", f"t1 0 a \x01{'9' * 99}x\n"))
    assert f" \ufffd{'9' * 39}… " in str(error.value)


def test_ranks_that_contradict_scores_are_named_by_line(file):
    text = (
        "# of two systems\nt1 Q0 a 1 0.9 x\nt1 Q0 b 2 0.95 x\nt1 Q0 c 3 0.1 x\n"
        "t2 Q0 a 2 0.5 x\nt2 Q0 b 1 0.4 x\n"
    )
    run = read_run(file("a.run", text))
    found = list(stored_files.contradicting_lines(run, 20))
    assert [line for line, _text in found] == [3, 5]
    named = [re.findall(r"\bt\d\b|[\d.]*\d", text) for _line, text in found]
    assert named == [["t1", "2", "0.95", "0.9", "1"], ["t2", "2", "0.5", "0.4", "1"]]
    assert list(stored_files.contradicting_lines(run, 1)) == found[:1]


@pytest.mark.parametrize(
    ("lines", "n"),
    [
        ("t1 Q0 a 1 3 x\nt1 Q0 b 2 2 x\n", 0),
        ("t1 Q0 a 1 2 x\nt1 Q0 b 2 2 x\n", 0),  # a tie has no order
        ("t1 Q0 a 0 2 x\nt1 Q0 b 0 3 x\n", 0),  # nor have ranks that are all the same
        ("t1 Q0 a - 2 x\nt1 Q0 b - 3 x\n", 0),  # nor those that are not numbers
        ("t1 Q0 a 2 2 x\nt2 Q0 b 1 1 x\n", 0),  # nor two topics
        ("t1 Q0 a 1 2 x\nt1 Q0 b 2 3 x\nt1 Q0 c 3 4 x\n", 2),  # distances
        ("t1 Q0 b 2 3 x\nt2 Q0 b 1 3 x\nt1 Q0 a 1 2 x\n", 1),  # wherever the lines are
        ("t1 Q0 a 1 9 x\nt1 Q0 c 2 5 x\nt1 Q0 b 1 4 x\n", 1),  # one of two at a rank
    ],
)
def test_contradictions_are_counted_alike_in_blocks_and_by_line(file, lines, n):
    for name, before in (("blocks.run", ""), ("lines.run", "# read line by line\n")):
        assert len(read_run(file(name, before + lines)).contradicting) == n


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
        b"PK\x03\x04" + b"\0" * 26 + b"xl/workbook.xml" + b"\0" * 99,
        bytes(range(256)) * 20,
    ],
)
@pytest.mark.parametrize("read", [read_run, read_qrels, read_assessors])
def test_binary_files_are_refused_in_a_sentence_without_their_content(file, read, content):
    with refused(TrecFileFaults, "not_text", lines=[None]) as error:
        read(file("a.run", content))
    [(_line, text)] = error.value.faults
    assert text.isprintable()
