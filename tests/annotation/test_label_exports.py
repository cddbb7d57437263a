"""Exports of Langfuse, Phoenix, LangSmith, Prodigy, INCEpTION, Pearmut and AltTest as studies.

Written by the tools' own packages: `langfuse.json` (the score models of langfuse 5.0.4),
`phoenix.*` (`get_span_annotations` and `get_span_annotations_dataframe` of arize-phoenix-client
3.5.0), `langsmith.jsonl` (`Feedback` of langsmith 0.15.1), `inception_cas.*` (dkpro-cassis 0.12.0,
which writes INCEpTION's UIMA CAS JSON) and `pearmut.json` (`/log-response` and
`/download-annotations` of pearmut 1.1.6). The others follow the documentation: Prodigy
(https://prodi.gy/docs/api-interfaces), WebAnno TSV 3.3
(https://inception-project.github.io/releases/36.0/docs/user-guide.html) and the alternative
annotator test (https://github.com/nitaytech/AltTest).
"""

import json

import pytest

from annotation.readers import drafts, formats
from annotation.readers.tool_exports.entries import Export, FieldNames
from annotation.readers.tool_exports.questions import QuestionSettings
from annotation.readers.tool_exports.recognition import TABLE, opened_export
from annotation.readers.tool_exports.studies import read_entries, read_export
from tests.annotation.importing import command_output, write_file
from tests.annotation.tool_export_drafts import (
    FOLDER,
    answers_of,
    assert_counts,
    counts_of,
    read_fixture,
    ticks,
    wordings_of,
)

RUNS = [f"00000000-0000-0000-0000-00000000000{n}" for n in range(4)]
ANN, BEN = (f"00000000-0000-0000-0000-00000000000{n}" for n in "bc")


def test_langsmith_feedback_of_people_and_not_of_programs():
    draft = read_fixture("langsmith.jsonl", "langsmith")
    assert answers_of(draft) == {
        (RUNS[1], ANN): {"correctness": 1, "tone": "friendly"},
        (RUNS[1], BEN): {"correctness": 1},
        (RUNS[2], ANN): {"correctness": 1},
        (RUNS[2], BEN): {"correctness": 0, "tone": "formal"},
        (RUNS[2], "api"): {"thumbs": 1},
        (RUNS[3], ANN): {"correctness": 0},
        (RUNS[3], BEN): {"correctness": 0},
    }
    left_out, notes = {"program_score": 3, "no_answer": 1}, {"no_annotator"}
    assert_counts(draft, (13, 9), left_out, {"comments": 2}, {"": 1}, notes)


def test_langfuse_scores_of_traces_and_observations():
    draft = read_fixture("langfuse.json", "langfuse")
    assert answers_of(draft) == {
        ("t1", "u1"): {"helpfulness": 1},
        ("t1", "u2"): {"helpfulness": 1, "correct": "True"},
        ("t2", "u1"): {"helpfulness": 2},
        ("t2", "u2"): {"helpfulness": 3},
        ("t2", "API"): {"thumbs": 1},
        ("t3", "u1"): {"helpfulness": 3},
        ("t3", "u2"): {"helpfulness": 3},
        ("o1", "u1"): {"tone": "formal"},
        ("o2", "u1"): {"tone": "friendly"},
        ("o3", "u1"): {"tone": "friendly"},
    }
    assert_counts(draft, (14, 11), {"program_score": 3}, notes={"json_page", "no_annotator"})
    by_trace = read_fixture("langfuse.json", "langfuse", item=("traceId",))
    assert {item for item, _who in answers_of(by_trace)} == {"t1", "t2", "t3"}


def test_langfuse_columns_of_its_files_are_those_of_its_api(tmp_path):
    snake = {
        **{"traceId": "trace_id", "observationId": "observation_id", "stringValue": "string_value"},
        **{"authorUserId": "author_user_id", "dataType": "data_type"},
    }
    page = json.loads((FOLDER / "langfuse.json").read_text())
    lines = [
        json.dumps({snake.get(name, name): value for name, value in record.items()})
        for record in page["data"]
    ]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    found = read_fixture(str(tmp_path / "scores.jsonl"), "langfuse")
    assert answers_of(found) == answers_of(read_fixture("langfuse.json", "langfuse"))


@pytest.mark.parametrize("name", ["phoenix.csv", "phoenix.json"])
def test_phoenix_annotations_of_spans(name):
    draft = read_fixture(name, "phoenix")
    ann, ben = "VXNlcjox", "VXNlcjoy"
    assert answers_of(draft) == {
        ("aa01", ann): {"quality": "good", "fluency": 4},
        ("aa01", ben): {"quality": "good"},
        ("aa02", ann): {"quality": "good"},
        ("aa02", ben): {"quality": "bad"},
        ("aa03", ann): {"quality": "bad"},
        ("aa03", ben): {"quality": "bad"},
    }
    assert_counts(draft, (11, 7), {"program_score": 3, "no_answer": 1}, {"comments": 1}, {"": 1})


def test_prodigy_choices_of_named_annotators():
    draft = read_fixture("prodigy_choice.jsonl", "prodigy")
    assert answers_of(draft) == {
        ("11", "tone-ann"): {"choice:POS": "yes", "choice:NEG": "no"},
        ("11", "tone-ben"): {"choice:POS": "yes", "choice:NEG": "yes", "user_input": "hard"},
        ("12", "tone-ann"): {"choice:POS": "no", "choice:NEG": "no"},
    }
    assert [item.candidates[0].text for item in draft.items] == ["Good.", "Hm.", "Bad."]
    assert_counts(draft, (5, 3), {"ignored": 1, "rejected": 1}, notes={"answers_without_category"})
    by_document = read_fixture("prodigy_choice.jsonl", "prodigy", item=("doc",))
    assert {item for item, _who in answers_of(by_document)} == {"d1", "d2"}


def test_prodigy_binary_labels_and_spans():
    draft = read_fixture("prodigy_textcat.jsonl", "prodigy")
    assert answers_of(draft) == {
        ("21", "prodigy"): {"ECONOMY": "yes", "SPORT": "no"},
        ("22", "prodigy"): {"SPORT": "yes"},
    }
    assert_counts(draft, (4, 3), {"no_answer": 1}, {"spans": 2}, notes={"no_annotator"})


def test_inception_labels_of_documents_in_a_project_and_in_one_file():
    project = read_fixture("inception_cas.zip", "inception")
    assert answers_of(project) == {
        ("a.txt", "ann"): {"Sentiment.label": "positive", "Sentiment.strength": 4},
        ("a.txt", "ben"): {"Sentiment.label": "positive", "Sentiment.strength": 5},
        ("b.txt", "ann"): {"Sentiment.label": "negative", "Sentiment.strength": 2},
        ("b.txt", "ben"): {"Sentiment.label": "neutral", "Sentiment.strength": 2},
    }
    assert_counts(project, (24, 4), {"structure": 16, "spans": 4}, notes={"json_page"})
    expected = ["Anna likes Bonn.", "Bob does not."]
    assert [item.candidates[0].text for item in project.items] == expected
    one = read_fixture("inception_cas.json", "inception")
    assert answers_of(one) == {("a.txt", "ann"): answers_of(project)["a.txt", "ann"]}


def test_webanno_labels_of_sentences():
    draft = read_fixture("inception.tsv", "inception")
    options = "for against for_ever"
    assert answers_of(draft) == {
        ("document#1", "inception"): ticks("Stance.stance", options, "for"),
        ("document#2", "inception"): ticks("Stance.stance", options, "against for_ever"),
    }
    expected = ["Bonn is nice.", "Rain_ again.", "Who knows."]
    assert [item.candidates[0].text for item in draft.items] == expected
    assert_counts(draft, (3, 2), {"no_answer": 1}, {"spans": 1})


def test_pearmut_scores_of_segments_by_system():
    draft = read_fixture("pearmut.json", "pearmut")
    assert answers_of(draft) == {
        ("news_1", "amy"): {"score@sys_a": 90, "score@sys_b": 60},
        ("news_2", "amy"): {"score@sys_a": 80, "score@sys_b": 80},
        # Sent a second time.
        ("talk_1", "amy"): {"score@sys_a": 72, "score@sys_b": 35},
        ("news_1", "bo"): {"score@sys_a": 95, "score@sys_b": 50},
        ("news_2", "bo"): {"score@sys_a": 75, "score@sys_b": 85},
        ("talk_1", "bo"): {"score@sys_a": 65},
    }
    assert [item.context for item in draft.items] == ["Hello.", "Good night.", "Thank you."]
    assert_counts(draft, (5, 4), {"changed": 1}, {"spans": 2}, {"": 1}, {"json_page"})


def test_pearmut_annotations_that_were_reset_or_are_of_a_tutorial(tmp_path):
    records = json.loads((FOLDER / "pearmut.json").read_text())["demo"]
    records.insert(3, {"annotation": "__RESET__", "user_id": "amy", "item_i": None})
    records.append({**records[0], "user_id": "bo", "item_i": "welcome_0"})
    path = write_file(tmp_path / "two.json", json.dumps({"demo": records, "again": records[:1]}))
    draft = read_fixture(str(path), "pearmut")
    assert ("talk_1", "amy") in answers_of(draft)
    left_out = {"reset": 3, "not_campaign": 1}
    assert_counts(draft, (8, 4), left_out, {"spans": 2}, {"": 1}, {"json_page"})


def test_labels_of_the_alternative_annotator_test():
    people = read_fixture("alt_test_human.json", "alt-test")
    assert answers_of(people) == {
        ("11__stars", "a1"): {"value": 3},
        ("12__stars", "a1"): {"value": 2},
        ("13__stars", "a1"): {"value": 5},
        ("11__stars", "a2"): {"value": 3},
        ("12__stars", "a2"): {"value": 1},
        ("11__stars", "a3"): {"value": 4},
        ("13__stars", "a3"): {"value": 5},
    }
    assert_counts(people, (8, 7), {"no_answer": 1}, missing={"": 1}, notes={"labels_by_annotator"})
    assert len(answers_of(read_fixture("alt_test_llm.json", "alt-test"))) == 6


RECOGNIZED = {
    "qualtrics.csv": "qualtrics",
    "qualtrics_split.csv": "qualtrics",
    "surveymonkey.csv": "surveymonkey",
    "google_forms.csv": "google-forms",
    "google_forms_sheet.csv": "google-forms",
    "otree_wide.csv": "otree",
    "otree_app.csv": "otree",
    "prolific_submissions.csv": "prolific",
    "prolific_task_builder.json": "prolific",
    "langfuse.json": "langfuse",
    "phoenix.csv": "phoenix",
    "phoenix.json": "phoenix",
    "langsmith.jsonl": "langsmith",
    "prodigy_choice.jsonl": "prodigy",
    "prodigy_textcat.jsonl": "prodigy",
    "inception_cas.json": "inception",
    "inception_cas.zip": "inception",
    "inception.tsv": "inception",
    "pearmut.json": "pearmut",
    "alt_test_human.json": "alt-test",
    "alt_test_llm.json": "alt-test",
    "wide.csv": "csv",
}


@pytest.mark.parametrize("name", RECOGNIZED)
def test_uploads_are_recognized_and_read_like_files_of_commands(name):
    path, faults = FOLDER / name, drafts.Faults()
    with opened_export(path, "", formats.FileFormat(), faults.add, most_bytes=10**6) as opened:
        assert opened.tool == RECOGNIZED[name]
        if opened.tool != TABLE:
            export = Export(opened.path, FieldNames(), rows=opened.rows, report=opened.report)
            entries = read_entries(export, opened.tool)
            uploaded = read_export(export, entries, QuestionSettings()).draft(keep_names=False)
            from_command = read_fixture(name, opened.tool)
            assert answers_of(uploaded) == answers_of(from_command)
            assert wordings_of(uploaded) == wordings_of(from_command)
            assert counts_of(uploaded)["rows"] == counts_of(from_command)["rows"]
    assert faults.n == 0


@pytest.mark.django_db
def test_the_command_imports_each_and_reports_the_reading():
    for name, tool in RECOGNIZED.items():
        if tool != TABLE:
            study = f"--study={name.replace('.', '-').replace('_', '-')}"
            output = command_output(
                "import_annotations", FOLDER / name, study, f"--from={tool}", "--json"
            )
            found = json.loads(output)
            draft = read_fixture(name, tool)
            assert found["reading"]["n_rows"] == counts_of(draft)["rows"][0], name
            assert found["n_submissions"] == len(draft.submissions), name
            assert found["n_items"] == len(draft.items), name


def test_a_table_of_labels_with_a_time_is_no_form(tmp_path):
    path, faults = tmp_path / "labels.csv", drafts.Faults()
    path.write_text("Timestamp,annotator,item,value\n2026-01-05,ann,i1,3\n")
    with opened_export(path, "", formats.FileFormat(), faults.add, most_bytes=10**6) as opened:
        assert opened.tool == TABLE
