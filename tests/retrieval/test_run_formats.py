import gzip
import json
from pathlib import Path

import pytest

from retrieval.exceptions import TrecFileFaults
from retrieval.trec_files import RelevanceGrades, kind_of_file, read_qrels, read_run
from tests.annotation.importing import command_output
from tests.codes import codes_of, refused
from tests.retrieval.collections import add_file
from tests.retrieval.conftest import record_of

FOREIGN = Path(__file__).parent / "foreign_files"
GRADES = {"q1": {"d1": 1, "d2": 2}, "q2": {"d9": 1}}
SCORES = {"q1": {"d1": 0.5, "d2": 0.25, "d3": 0.125}, "q2": {"d9": 3.0}}
QRELS = "q1 0 d1 1\nq1 0 d2 2\nq2 0 d9 1\n"


def dictionary(read):
    values = read.grade if isinstance(read, RelevanceGrades) else read.score
    found: dict[str, dict[str, float]] = {}
    for topic, document, value in zip(read.topic, read.document, values.tolist(), strict=True):
        found.setdefault(read.topics[topic], {})[read.documents[document]] = value
    return found


# ranx 0.3.21 and ir_datasets 0.6.3 wrote the files: Qrels.save, Run.save, and the exporters of
# `ir_datasets export`.
@pytest.mark.parametrize(
    ("of_tool", "notes"),
    [
        ("ranx_{}.json", []),
        ("ranx_{}.txt", []),
        ("ir_datasets_{}.jsonl", []),
        ("ir_datasets_{}.trec", []),
        ("ir_datasets_{}.tsv", ["columns_guessed"]),
    ],
)
def test_what_other_tools_wrote_is_read_as_the_same_grades_and_scores(of_tool, notes):
    for kind, read, values in (("qrels", read_qrels, GRADES), ("run", read_run, SCORES)):
        path = FOREIGN / of_tool.format(kind)
        content = read(path)
        assert dictionary(content) == values
        n_rows = sum(map(len, values.values()))
        assert (content.reading.n_rows, content.reading.n_used) == (n_rows, n_rows)
        assert codes_of(content.reading.notes) == notes
        assert kind_of_file(path) == kind


def test_ms_marcos_pairs_and_ranks_are_read_with_a_note(file):
    qrels = read_qrels(file("qrels.tsv", "1185869\t0\n1185868\t16\n597651\t49\n"))
    assert dictionary(qrels) == {"1185869": {"0": 1}, "1185868": {"16": 1}, "597651": {"49": 1}}
    assert codes_of(qrels.reading.notes) == ["columns_guessed", "pairs_without_grades"]
    run = read_run(file("run.tsv", "1185869\t0\t1\n1185868\t16\t2\n1185868\t7\t1\n"))
    scores = dictionary(run)
    assert {topic: sorted(scores[topic]) for topic in scores} == {
        "1185869": ["0"],
        "1185868": ["16", "7"],
    }
    assert scores["1185868"]["7"] > scores["1185868"]["16"]
    assert codes_of(run.reading.notes) == ["ranks_without_scores"]
    assert len(run.contradicting) == 0
    assert (kind_of_file(file("a", "1\t0\n2\t16\n")), kind_of_file(run.path)) == ("qrels", "run")
    # trec_eval's format of MS MARCO's qrels
    assert dictionary(read_qrels(file("q", "1185869\t0\t0\t1\n"))) == {"1185869": {"0": 1}}
    record = record_of("evaluate_runs", "--qrels", qrels.path, "--run", run.path, "--measure", "RR")
    assert record["results"][0]["per_topic"] == {"1185868": 0.5, "1185869": 1.0}
    with refused(TrecFileFaults, codes=["rank"], lines=[60]):
        lines = "".join(f"1\td{n}\t{n}\n" for n in range(1, 60))
        read_run(file("bad.tsv", f"{lines}1\tx\tlast\n"))


def test_whole_grades_with_decimals_are_read_with_a_note_and_fractions_refused(file):
    qrels = read_qrels(file("int_floats.txt", "q1 0 d1 1.0\nq1 0 d2 0.0\nq1 0 d3 2.0\n"))
    assert dictionary(qrels) == {"q1": {"d1": 1, "d2": 0, "d3": 2}}
    [note] = qrels.reading.notes
    assert (note.code, note[0]) == ("decimal_grades", "3")
    with refused(TrecFileFaults, lines=[1, 2], codes=["grade", "grade"]):
        read_qrels(file("floats.txt", "q1 0 d1 0.5\nq1 0 d2 0.25\nq1 0 d3 2\n"))
    with refused(TrecFileFaults, codes=["grade_range"]):
        read_qrels(file("q", "q1 0 d1 128.0\n"))
    assert dictionary(read_qrels(file("q.json", '{"q1": {"d1": 1.0}}'))) == {"q1": {"d1": 1}}
    with refused(TrecFileFaults, codes=["grade"]):
        read_qrels(file("q.json", '{"q1": {"d1": 0.5}}'))


@pytest.mark.parametrize(
    "header", ["query-id\tcorpus-id\tscore", "qid docid rel", "query_id\tdoc_id\trelevance"]
)
def test_a_table_with_a_header_is_read_and_the_header_named(file, header):
    gap = "\t" if "\t" in header else " "
    rows = [header.split(gap), ["q1", "d1", "1"], ["q1", "d2", "2"], ["q2", "d9", "1"]]
    qrels = read_qrels(file("test.tsv", "".join(f"{gap.join(row)}\n" for row in rows)))
    assert dictionary(qrels) == GRADES
    assert codes_of(qrels.reading.notes) == ["header_row"]
    assert qrels.reading.n_rows == 3
    assert kind_of_file(qrels.path) == "qrels"
    # a comment before the header, which is read line by line
    path = file("test.tsv", f"# of BEIR\n\n{qrels.path.read_text()}")
    assert dictionary(read_qrels(path)) == GRADES
    assert read_qrels(path).reading.n_used == 3


def test_a_run_with_a_header_has_its_columns_in_any_order(file):
    text = "run\tquery_id\trank\tscore\tdoc_id\nr\tq1\t1\t0.5\td1\nr\tq1\t2\t0.9\td2\n"
    run = read_run(file("a.run", text))
    assert (dictionary(run), run.tag) == ({"q1": {"d1": 0.5, "d2": 0.9}}, "r")
    assert run.contradicting.tolist() == [[1, 0]]
    assert kind_of_file(run.path) == "run"


def test_json_names_the_record_of_each_fault(file):
    qrels = read_qrels(file("qrels.json", '{"q1":{"d1":1,"d2":2},"q2":{"d9":1}}'))
    assert dictionary(qrels) == GRADES
    for text, codes in (
        ('{"q1": {"d1": 1, "d1": 0}}', ["twice"]),
        ('{"q1": {"d1": "one", "d2": true, "d3": null, "d4": [1]}}', ["grade"] * 4),
        ('{"q1": {"d1": 1}', ["not_json"]),
        ('{"q1": {"": 1}}', ["no_name"]),
        ('{"q1": {"\\ud800": 1}}', ["not_utf8"]),
        ('{"q1": {"a\\u0000": 1}}', ["nul"]),
        ('{"q1": 1}', ["fields"]),
        ('{"q1": {"d1": 1}, "q2": 1}', ["not_object"]),
        ('[{"query_id": "q1"}]', ["fields"]),
        ('[{"query_id": null, "doc_id": "d1", "score": 1}]', ["fields"]),
        ('{"q1": {"d1": 1}} {"q2": {"d1": 1}}', ["not_json"]),
        ('{"q1": ' + "[" * 100_000, ["too_deep"]),
        ('{"q1": ' + '{"a": ' * 100_000, ["too_deep"]),
        ("{}", ["no_lines"]),
        ("[]", ["no_lines"]),
    ):
        with refused(TrecFileFaults, codes=codes) as error:
            read_qrels(file("qrels.json", text))
        assert text[:20] != '{"q1": {"d1": "one",' or "document d2" in str(error.value)
    for text, code in (
        ('{"q1": {"d1": NaN}}', "score_nan"),
        ('{"q1": {"d1": 1e400}}', "score_range"),
        ('{"q1": {"d1": "1,5"}}', "score"),
    ):
        with refused(TrecFileFaults, code):
            read_run(file("run.json", text))
    records = [{"query_id": 1, "doc_id": 2, "score": 0.5}, {"qid": "1", "docno": "3", "score": 1}]
    for content in (json.dumps(records), "\n".join(map(json.dumps, records))):
        assert dictionary(read_run(file("run.jsonl", content))) == {"1": {"2": 0.5, "3": 1}}
    with refused(TrecFileFaults, "fields", lines=[2]):
        read_run(file("run.jsonl", '{"qid": 1, "docno": 2, "score": 1}\n{"qid": 1}\n'))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_encodings_ends_of_lines_and_blank_lines_make_no_difference(file, encoding, pack, end):
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    text = end + QRELS.replace("d9", "é9").replace("\n", end)
    qrels = read_qrels(file("q", pack((mark + text).encode(encoding))))
    assert dictionary(qrels) == {"q1": {"d1": 1, "d2": 2}, "q2": {"é9": 1}}
    text = json.dumps(GRADES).replace("d9", "é9")
    assert dictionary(read_qrels(file("q", pack((mark + text).encode(encoding))))) == {
        "q1": {"d1": 1, "d2": 2},
        "q2": {"é9": 1},
    }


def test_a_line_with_all_columns_is_data_though_its_topic_begins_with_a_hash(file):
    qrels = file("q.txt", "#1 0 d1 1\n#2 0 d2 1\nq3 0 d1 1\n")
    run = file("r.txt", "#1 Q0 d9 1 2 r\n#1 Q0 d1 2 1 r\n#2 Q0 d2 1 1 r\nq3 Q0 #1 1 1 r\n")
    assert dictionary(read_qrels(qrels)) == {"#1": {"d1": 1}, "#2": {"d2": 1}, "q3": {"d1": 1}}
    record = record_of("evaluate_runs", "--qrels", qrels, "--run", run, "--measure", "AP")
    # as pytrec_eval's
    assert record["results"][0]["per_topic"] == {"#1": 0.5, "#2": 1.0, "q3": 0.0}
    # comments before a line that begins so, which are counted
    comments = "# made by hand\n# qrels of 2024\n#! of four words\n"
    reading = read_qrels(file("q.txt", comments + qrels.read_text())).reading
    assert (reading.n_rows, reading.n_used) == (6, 3)
    left_out = reading.left_out["comment"]
    assert (left_out.n, left_out.places) == (3, ["line 1", "line 2", "line 3"])
    with refused(TrecFileFaults, lines=[1], codes=["score"]):
        read_run(file("r.txt", "#1 Q0 d9 1 2,5 r\n"))


def test_tabs_separate_columns_that_have_spaces(file):
    run = read_run(file("a.run", "q1\tQ0\td1\t1\t0.5\tmy run\nq1\tQ0\td 2\t2\t0.25\tmy run\n"))
    assert (dictionary(run), run.tag) == ({"q1": {"d1": 0.5, "d 2": 0.25}}, "my run")
    # other lines with other gaps, which are read one by one
    run = read_run(file("a.run", f"q0 Q0 d1 1 9 my\n{run.path.read_text()}"))
    assert dictionary(run)["q1"] == {"d1": 0.5, "d 2": 0.25}
    run = read_run(file("a.run", "q1\t\td 1\t1\t2\tr\nq1\tQ0\td2\t2\t1\t\n"))
    assert dictionary(run) == {"q1": {"d 1": 2, "d2": 1}}


def test_commands_say_what_was_read_and_what_takes_no_part(file):
    qrels = file("q.txt", "# made by hand\n1 0 a 1.0\n2 0 a -1\n3 0 a 1\n")
    run = file("a.run", "1 Q0 a 1 2 r\n1 Q0 b 2 1 r\n8 Q0 a 1 1 r\n9 Q0 a 1 1 r\n9 Q0 b 1 1 r\n")
    files = ("--qrels", qrels, "--run", run, "--measure", "RR")
    of_qrels, of_run = record_of("evaluate_runs", *files)["reading"]
    assert (of_qrels["file"], of_run["file"]) == ("q.txt", "a.run")
    assert (of_qrels["n_rows"], of_qrels["n_used"]) == (4, 3)
    assert [(each["code"], each["n"]) for each in of_qrels["left_out"]] == [("comment", 1)]
    codes = [note["code"] for note in of_qrels["notes"]]
    assert codes == ["decimal_grades", "grades_below_zero", "topics_in_no_run"]
    assert (of_run["n_rows"], of_run["n_used"]) == (5, 2)
    [foreign] = of_run["left_out"]
    assert (foreign["code"], foreign["n"], foreign["places"]) == ("foreign_topic", 3, ["2 topics"])
    notes = {note["code"]: note["text"].split()[0] for note in of_run["notes"]}
    assert notes == {"missing_topics": "2", "unjudged_documents": "1"}
    text = command_output("evaluate_runs", *map(str, files)).splitlines()
    assert [line.split(":")[0] for line in text[-2:]] == ["q.txt", "a.run"]
    second = file("second.txt", "1 0 a 1\n3 0 a 0\n")
    compared = record_of(
        *("compare_qrels", "--qrels", f"one={qrels}", "--qrels", f"two={second}", "--run", run),
        *("--run", file("b.run", "1 Q0 a 1 1 b\n"), "--resamples", "10", "--draws", "10"),
    )
    read = [(each["file"], each["n_rows"], each["n_used"]) for each in compared["reading"]]
    assert read == [("q.txt", 4, 3), ("second.txt", 2, 2), ("a.run", 5, 5), ("b.run", 1, 1)]
    assessors = file("jg.txt", "# by two\n1 Ann a 1\n1 Bob a 0\n")
    options = ("--rule", "any", "--output", file("merged", ""))
    [merged] = record_of("merge_assessors", assessors, *options)["reading"]
    assert (merged["n_rows"], merged["n_used"]) == (3, 2)
    [audited] = record_of("audit_collection", qrels)["files"]
    assert {"comment", "decimal_grades"} <= {finding["name"] for finding in audited["findings"]}


def test_a_collections_page_says_what_was_read_of_a_file(collection):
    file = add_file(collection, "q.txt", "# by hand\n1 0 a 1.0\n")
    assert file.kind == "qrels"
    assert (file.reading["n_rows"], file.reading["n_used"]) == (2, 1)
    assert [note["code"] for note in file.reading["notes"]] == ["decimal_grades"]
    assert len(file.reading_sentences) == 3
    for name, content, kind in (
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "qrels"),
        ("run.tsv", "q1\td1\t1\nq1\td2\t2\n", "run"),
        ("run.json", json.dumps(SCORES), "run"),
        ("wide.txt", QRELS.encode("utf-16"), "qrels"),
    ):
        file = add_file(collection, name, content)
        assert (file.kind, file.is_usable) == (kind, True)


@pytest.mark.parametrize("read", [read_run, read_qrels])
def test_a_topic_without_documents_is_counted(file, read):
    reading = read(file("f.json", '{"q1": {"d1": 1}, "q2": {}, "q3": {}}')).reading
    assert (reading.n_rows, reading.n_used) == (3, 1)
    left_out = reading.left_out["no_documents"]
    assert (left_out.n, left_out.places) == (2, ["topic q2", "topic q3"])
