"""Layouts of tools' exports: what is read of each, and what is counted.

Files in `tool_exports/` that the tools wrote from made-up answers:

- label_studio_regions.json, label_studio_min.json, label_studio.csv: label-studio-sdk 2.1.2,
  `Converter.convert` to JSON, JSON_MIN and CSV
- argilla_2.json, argilla_2_dataset.jsonl: argilla 2.8.0, `records.to_json` and `to_datasets`
- argilla_1_feedback.jsonl, argilla_1_text.jsonl, argilla_1_multi.jsonl, argilla_1_tokens.jsonl:
  argilla 1.29.1, `format_as("datasets")` and `to_datasets` with `Dataset.to_json`
- argilla_1_records.json: argilla 1.29.1, `FeedbackRecord.json`
- doccano_labels.csv, .json, .jsonl, doccano_spans.jsonl, doccano_entities.jsonl,
  doccano_intents.jsonl: doccano 1.8.4, the formatters and writers of `data_export.pipeline`
- potato/*/user_state.json, potato_annotations.csv, .tsv, .jsonl: potato-annotation 2.12.1, the
  state of users and its exporters

Others follow the tools' documentation, which their modules name.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from annotation.exceptions import FileFaults, ImportRefused
from annotation.readers.tool_exports.entries import FieldNames
from tests.annotation.importing import as_zip, write_file
from tests.annotation.tool_export_drafts import (
    FOLDER,
    answers_to,
    counts,
    note_codes,
    read_draft,
    words_to,
    written_file,
)
from tests.codes import refused, refused_with_faults


class TestLabelStudio:
    @pytest.mark.parametrize("name", ["regions.json", "min.json", ".csv"])
    def test_three_exports_of_a_project_agree(self, name):
        path = FOLDER / f"label_studio{'' if name.startswith('.') else '_'}{name}"
        draft = read_draft(
            path, "label-studio", FieldNames(system="system"), written=frozenset({"why"})
        )
        assert answers_to(draft, "tone") == {
            ("11", "7"): "warm", ("11", "8"): "cold", ("12", "7"): "cold", ("12", "8"): "cold",
        }  # fmt: skip
        assert answers_to(draft, "traits") == {
            ("11", "7"): ["polite"], ("11", "8"): ["polite", "short"], ("12", "7"): [],
            ("12", "8"): ["short"],
        }  # fmt: skip
        assert answers_to(draft, "fit") == {
            ("11", "7"): 4, ("11", "8"): 3, ("12", "7"): 2, ("12", "8"): 1,
        }  # fmt: skip
        assert answers_to(draft, "n_errors")["12", "8"] == 2
        assert answers_to(draft, "kind") == {("11", "7"): ["A", "A / B"]}
        assert words_to(draft, "why") == {("11", "7"): "It helps.", ("12", "8"): "Rude."}
        assert [(item.key, item.candidates[0].text) for item in draft.items][2:] == [
            ("13", "You are welcome.")
        ]
        assert {item.candidates[0].system for item in draft.items} == {"alpha", "beta"}
        found = counts(draft.report)
        assert (found["spans"], found["region"], found["no_answer"]) == (1, 2, 1)
        # JSON alone has what an annotator skipped; a row of JSON-MIN or CSV is an annotation
        whole = name == "regions.json"
        assert found.get("skipped", 0) == (4 if whole else 0)
        assert draft.report.n_rows == (3 if whole else 5)

    def test_columns_of_answers_can_be_named(self):
        draft = read_draft(FOLDER / "label_studio.csv", "label-studio", FieldNames(values=("fit",)))
        assert [question.name for question in draft.questions] == ["fit"]
        assert draft.report.n_used == 4

    def test_rows_without_an_account_are_numbered_per_task(self, tmp_path):
        row = {"text": "t", "id": 1, "tone": "warm", "annotator": None, "annotation_id": 1}
        rows = [row, row | {"annotation_id": 2}, row | {"id": 2, "annotation_id": 3}]
        draft = read_draft(written_file(tmp_path, rows), "label-studio")
        assert set(answers_to(draft, "tone")) == {
            ("1", "unnamed-1"), ("1", "unnamed-2"), ("2", "unnamed-1"),
        }  # fmt: skip

    def test_levels_make_numbers_of_categories_that_are_numbers(self, tmp_path):
        choice = {"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": ["3"]}}
        task = {"id": 1, "data": {"text": "t"}, "annotations": [
            {"completed_by": 1, "result": [choice]}]}  # fmt: skip
        path = written_file(tmp_path, [task])
        draft = read_draft(path, "label-studio", levels={"q": "ordinal"})
        assert answers_to(draft, "q") == {("1", "1"): 3}
        assert answers_to(read_draft(path, "label-studio"), "q") == {("1", "1"): "3"}


USERS = ("5e0c3f0a-0000-4000-8000-000000000001", "5e0c3f0a-0000-4000-8000-000000000002")


def by_user(found: dict[tuple[str, str], Any]) -> dict[tuple[str, int], Any]:
    return {(item, USERS.index(who) + 1): value for (item, who), value in found.items()}


class TestArgilla:
    @pytest.mark.parametrize("name", ["argilla_2.json", "argilla_2_dataset.jsonl"])
    def test_records_of_version_2(self, name):
        fields = FieldNames(system="model", response="reply", context="prompt")
        draft = read_draft(FOLDER / name, "argilla", fields, written=frozenset({"why"}))
        # to_json does not say which responses are drafts
        has_status = name.endswith(".jsonl")
        drafts = {} if has_status else {("r2", 2): 4}
        assert by_user(answers_to(draft, "fit")) == {
            ("r0", 1): 1, ("r0", 2): 2, ("r1", 1): 2, ("r2", 1): 3, **drafts,
        }  # fmt: skip
        traits = by_user(answers_to(draft, "traits"))
        assert (traits["r0", 2], traits["r1", 1]) == (["polite", "short"], ["short"])
        assert traits["r2", 1] == []
        placed = {
            (submission.item, judgment.candidate): judgment.value
            for submission in draft.submissions
            for judgment in submission.judgments
            if judgment.question == "order" and submission.annotator == USERS[0]
        }
        assert (placed["r0", "a"], placed["r0", "b"], placed["r1", "a"]) == (1, 0, 0)
        assert by_user(words_to(draft, "why"))["r0", 1] == "It helps."
        assert draft.items[0].context == "Where is the station?"
        assert draft.items[0].candidates[0].system == "alpha"
        assert counts(draft.report) == {
            "spans": 1, "no_answer": 1, **({"drafts": 4} if has_status else {}),
        }  # fmt: skip
        assert (draft.report.n_rows, draft.report.n_used) == (4, 3)

    @pytest.mark.parametrize("name", ["argilla_1_feedback.jsonl", "argilla_1_records.json"])
    def test_feedback_of_version_1(self, name):
        fields = FieldNames(item=("prompt",), response="reply")
        draft = read_draft(FOLDER / name, "argilla", fields, written=frozenset({"why"}))
        station, opened = "Where is the station?", "Is it open?"
        assert by_user(answers_to(draft, "fit")) == {
            (station, 1): 4, (station, 2): 5, (opened, 1): 2,
        }  # fmt: skip
        assert by_user(answers_to(draft, "tone"))[opened, 1] == "cold"
        assert by_user(answers_to(draft, "traits"))[station, 2] == ["polite", "short"]
        assert {(q.name, q.kind) for q in draft.questions} >= {("order", "preference")}
        assert by_user(words_to(draft, "why")) == {(station, 1): "It helps."}
        found = counts(draft.report)
        assert (found["drafts"], found["no_answer"]) == (4, 1)

    def test_records_of_version_1_with_one_annotation(self):
        draft = read_draft(FOLDER / "argilla_1_text.jsonl", "argilla")
        assert answers_to(draft, "annotation") == {("t0", "ann"): "pos", ("t1", "bob"): "neg"}
        assert counts(draft.report) == {"no_answer": 2}
        draft = read_draft(FOLDER / "argilla_1_multi.jsonl", "argilla")
        assert answers_to(draft, "annotation") == {
            ("m0", "ann"): ["a", "b"], ("m1", "ann"): [], ("m2", "ann"): ["a"],
        }  # fmt: skip
        with refused(ImportRefused, "no_answers", naming=("spans",)):
            read_draft(FOLDER / "argilla_1_tokens.jsonl", "argilla")

    def test_columns_of_a_question_belong_together(self, tmp_path):
        record = {"id": "r0", "text": "t", "q.responses": [1, 2], "q.responses.users": ["u1"]}
        with refused_with_faults(FileFaults, "other_length"):
            read_draft(written_file(tmp_path, [record]), "argilla")


class TestDoccano:
    def test_rows_of_labels_before_version_1_3(self, tmp_path):
        rows = "id,text,label,user\n1,Hi,3,1\n1,Hi,4,1\n1,Hi,3,2\n2,Bye,4,1\n"
        draft = read_draft(written_file(tmp_path, rows, "old.csv"), "doccano")
        assert answers_to(draft, "label") == {
            ("1", "1"): ["3", "4"], ("1", "2"): ["3"], ("2", "1"): ["4"],
        }  # fmt: skip
        assert (draft.report.n_rows, draft.report.n_used) == (4, 4)

    @pytest.mark.parametrize("suffix", ["csv", "json", "jsonl"])
    def test_labels_of_version_1_8(self, suffix):
        draft = read_draft(FOLDER / f"doccano_labels.{suffix}", "doccano")
        who = "doccano_labels"
        assert answers_to(draft, "label") == {("1", who): ["spam"], ("2", who): ["ham", "short"]}
        assert counts(draft.report) == {"comments": 1, "unlabeled": 1, "no_answer": 1}
        assert draft.items[0].candidates[0].text == "Win a prize"

    def test_spans_of_version_1_8(self):
        draft = read_draft(FOLDER / "doccano_intents.jsonl", "doccano")
        assert answers_to(draft, "label") == {("1", "doccano_intents"): "travel"}
        assert counts(draft.report) == {"spans": 1}
        for name in ("doccano_spans", "doccano_entities"):
            with refused(ImportRefused, "no_answers") as caught:
                read_draft(FOLDER / f"{name}.jsonl", "doccano")
            assert "2" in caught.value.problem

    def test_labels_of_a_cell_are_joined(self, tmp_path):
        rows = "id,data,label\n1,Hi,a#b\n2,Bye,\n3,Oh,a\n"
        draft = read_draft(written_file(tmp_path, rows, "ann.csv"), "doccano")
        assert answers_to(draft, "label") == {("1", "ann"): ["a", "b"], ("3", "ann"): ["a"]}
        assert counts(draft.report) == {"unlabeled": 1, "no_answer": 1}
        assert draft.items[0].candidates[0].text == "Hi"

    def test_spans_relations_and_comments_are_counted(self, tmp_path):
        span = {"id": 1, "label": "x", "start_offset": 0, "end_offset": 1}
        records = [
            {"id": 1, "text": "t", "cats": ["a"], "entities": [[0, 1, "x"]]},
            {"id": 2, "text": "t", "entities": [span], "relations": [{"id": 1}], "Comments": ["?"]},
            {"id": 3, "text": "t", "label": [[0, 1, "x"], [1, 2, "y"]]},
            {"id": 4, "filename": "a.png", "bbox": [{"x": 1}]},
        ]
        draft = read_draft(written_file(tmp_path, records, "ann.json"), "doccano")
        assert answers_to(draft, "label") == {("1", "ann"): "a"}
        assert counts(draft.report) == {
            "spans": 5, "relations": 1, "comments": 1, "no_answer": 3,
        }  # fmt: skip

    def test_texts_of_annotators_are_words(self, tmp_path):
        records = [{"id": 1, "text": "t", "annotations": [{"text": "T", "user": 4}]},
                   {"id": 2, "text": "t", "annotations": []}]  # fmt: skip
        draft = read_draft(written_file(tmp_path, records), "doccano")
        assert words_to(draft, "label") == {("1", "4"): "T"}
        assert counts(draft.report) == {"unlabeled": 1, "no_answer": 1}

    def test_a_zip_has_a_file_per_annotator(self, tmp_path):
        files = {"ann.jsonl": '{"id": 1, "text": "t", "label": ["a"]}\n'}
        files |= {"all.csv": "id,text,label\n1,t,b\n", "__MACOSX/._ann.jsonl": "\x00"}
        draft = read_draft(write_file(tmp_path / "export.zip", as_zip(files)), "doccano")
        assert answers_to(draft, "label") == {("1", "ann"): "a", ("1", "all"): "b"}
        assert draft.report.n_rows == 2
        assert note_codes(draft.report) == {"merged_labels"}


class TestPotato:
    @pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "zip"])
    def test_exports_and_states_agree(self, tmp_path, suffix):
        path = FOLDER / f"potato_annotations.{suffix}"
        if suffix == "zip":
            root, names = "annotation_output", [f"{who}/user_state.json" for who in ("ann", "bob")]
            files = {f"{root}/{name}": (FOLDER / "potato" / name).read_bytes() for name in names}
            files[f"{root}/ann/annotation_history.jsonl"] = b"{}\n"
            path = write_file(tmp_path / "annotation_output.zip", as_zip(files))
        draft = read_draft(path, "potato")
        assert answers_to(draft, "tone") == {
            ("i1", "ann"): "warm", ("i2", "ann"): "cold", ("i1", "bob"): "cold",
            ("i2", "bob"): "cold",
        }  # fmt: skip
        assert answers_to(draft, "traits") == {
            ("i1", "ann"): ["polite", "short"], ("i2", "ann"): ["short"], ("i1", "bob"): [],
            ("i2", "bob"): ["polite"],
        }  # fmt: skip
        assert answers_to(draft, "fit")["i1", "bob"] == 5
        assert answers_to(draft, "effort") == {
            ("i1", "ann"): 70, ("i2", "ann"): 30, ("i1", "bob"): 1, ("i2", "bob"): 55,
        }  # fmt: skip
        assert words_to(draft, "why") == {("i1", "ann"): "It helps."}
        assert words_to(draft, "tone:free_response") == {("i1", "bob"): "dry"}
        found = counts(draft.report)
        assert (found["spans"], found.get("survey", 0)) == (1, 2 if suffix == "zip" else 0)
        assert (draft.report.n_rows, draft.report.n_used) == (4, 4)
        assert "check_boxes" in note_codes(draft.report)
        assert ("other_files" in note_codes(draft.report)) == (suffix == "zip")

    def test_the_state_of_one_annotator(self):
        draft = read_draft(FOLDER / "potato" / "ann" / "user_state.json", "potato")
        assert {who for _item, who in answers_to(draft, "tone")} == {"ann"}
        assert (draft.report.n_rows, draft.report.n_used) == (2, 2)

    def test_the_output_of_version_1(self, tmp_path):
        records = [
            {"id": "1", "displayed_text": "Hi", "span_annotations": [{"start": 0}],
             "label_annotations": {"tone": {"warm": "1"}, "fit": {"scale_3": "3"},
                                   "note": {"text_box": "ok"}}},
            {"id": "2", "displayed_text": "Bye", "span_annotations": [],
             "label_annotations": {"tone": {"cold": "2"}, "fit": {"scale_5": "5"}}},
        ]  # fmt: skip
        lines = "\n".join(map(json.dumps, records))
        draft = read_draft(written_file(tmp_path, lines, "annotated_instances.jsonl"), "potato")
        assert answers_to(draft, "tone") == {
            ("1", "annotator"): "warm", ("2", "annotator"): "cold",
        }  # fmt: skip
        assert answers_to(draft, "fit") == {("1", "annotator"): 3, ("2", "annotator"): 5}
        assert words_to(draft, "note") == {("1", "annotator"): "ok"}
        assert draft.items[0].candidates[0].text == "Hi"
        assert counts(draft.report) == {"spans": 1}
        assert note_codes(draft.report) == {"unnamed_annotator"}

    def test_the_table_of_version_1(self, tmp_path):
        rows = (
            "user,instance_id,displayed_text,tone:::warm,tone:::cold,rows:::a,rows:::b\n"
            "ann,1,Hi,true,,3,1\nbob,1,Hi,,true,2,2\n"
        )
        draft = read_draft(written_file(tmp_path, rows, "annotated_instances.csv"), "potato")
        assert answers_to(draft, "tone") == {("1", "ann"): "warm", ("1", "bob"): "cold"}
        assert answers_to(draft, "rows:a") == {("1", "ann"): 3, ("1", "bob"): 2}
        assert answers_to(draft, "rows:b") == {("1", "ann"): 1, ("1", "bob"): 2}


BATCH = "HITId,WorkerId,AssignmentStatus,Input.text,"


def batch_of(folder: Path, column: str, *cells: str) -> Path:
    """A batch with a column of answers, of which each cell is a worker's."""
    rows = [
        f"H1,W{n},Approved,t,{cell if cell.isalnum() else quoted(cell)}"
        for n, cell in enumerate(cells, start=1)
    ]
    return written_file(folder, "\n".join([BATCH + column, *rows]) + "\n", "batch.csv")


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


class TestMechanicalTurk:
    """The output of each crowd element is in the reference that `mturk.py` names."""

    @pytest.mark.parametrize(
        ("forms", "answers"),
        [
            (('{"label": "a"}', '{"label": "b"}'), ["a", "b"]),  # crowd-classifier
            (('{"labels": ["a", "b"]}', '{"labels": []}'), [["a", "b"], []]),  # multi-select
            (('{"a": true, "b": false}', '{"a": false, "b": true}'), ["a", "b"]),  # radio group
            (('{"a": true, "b": true}', '{"a": false, "b": false}'), [["a", "b"], []]),  # boxes
            (('{"on": true}', '{"on": false}'), [["on"], []]),  # crowd-checkbox
            (("4", "7"), [4, 7]),  # crowd-slider
            (('"3"', '"5"'), [3, 5]),  # crowd-input
            (("true", "false"), ["yes", "no"]),
            (('["a", "b"]', '["a"]'), [["a", "b"], ["a"]]),  # a list with several choices
        ],
    )
    def test_elements_of_a_form(self, tmp_path, forms, answers):
        cells = [f'[{{"q": {form}}}]' for form in forms]
        draft = read_draft(batch_of(tmp_path, "Answer.taskAnswers", *cells), "mturk")
        assert list(answers_to(draft, "q").values()) == answers
        assert draft.report.n_used == 2

    @pytest.mark.parametrize(
        ("value", "code", "n"),
        [
            (
                '{"boundingBoxes": [{"left": 1}, {"left": 2}], "inputImageProperties": {}}',
                "spans",
                2,
            ),
            ('{"entities": [{"label": "x", "startOffset": 0, "endOffset": 1}]}', "spans", 1),
            ('{"polygons": []}', "spans", 1),
            ('[{"x": 1}]', "unread", 1),
            ('{"a": 1, "b": "c"}', "unread", 1),
        ],
    )
    def test_regions_and_other_objects_are_counted(self, tmp_path, value, code, n):
        cells = (f'[{{"q": {value}, "fit": 3}}]', '[{"q": null, "fit": 4}]')
        draft = read_draft(batch_of(tmp_path, "Answer.taskAnswers", *cells), "mturk")
        assert list(answers_to(draft, "fit").values()) == [3, 4]
        assert counts(draft.report) == {code: n}
        assert draft.report.missing == {"": 1}

    def test_flat_forms_have_a_column_per_leaf(self, tmp_path):
        draft = read_draft(batch_of(tmp_path, "Answer.kind.labels", '["a","b"]', "[]", ""), "mturk")
        assert answers_to(draft, "kind") == {("H1", "W1"): ["a", "b"], ("H1", "W2"): []}
        assert draft.report.missing == {"": 1}

    def test_words_with_a_bar_are_not_split(self, tmp_path):
        path = batch_of(tmp_path, "Answer.why", "good | bad", "fine")
        assert set(answers_to(read_draft(path, "mturk"), "why").values()) == {"good | bad", "fine"}
        path = batch_of(tmp_path, "Answer.why", "good|bad", "fine")
        draft = read_draft(path, "mturk", written=frozenset({"why"}))
        assert set(words_to(draft, "why").values()) == {"good|bad", "fine"}

    def test_braces_next_to_ticks_mean_that_nothing_is_ticked(self, tmp_path):
        draft = read_draft(batch_of(tmp_path, "Answer.err", "a|b", "{}", "a"), "mturk")
        assert list(answers_to(draft, "err").values()) == [["a", "b"], [], ["a"]]
        draft = read_draft(batch_of(tmp_path, "Answer.err", "a", "{}", "b"), "mturk")
        assert list(answers_to(draft, "err").values()) == [["a"], [], ["b"]]

    def test_an_empty_cell_of_radio_buttons_is_missing(self, tmp_path):
        draft = read_draft(batch_of(tmp_path, "Answer.tone", "warm", "", "cold"), "mturk")
        assert list(answers_to(draft, "tone")) == [("H1", "W1"), ("H1", "W3")]
        assert draft.report.missing == {"": 1}
        assert counts(draft.report) == {"no_answer": 1}
