"""Exports of other tools as they were in public reports of bugs; contents are made up.

The folders of `field/` are named after the reports.
"""

from typing import Any

import pytest

from annotation.exceptions import AnnotationError, FileFaults, ImportRefused
from annotation.readers.drafts import StudyDraft
from annotation.readers.policies import Policies
from annotation.readers.tool_exports.entries import FieldNames
from tests.annotation.tool_export_drafts import (
    FIELD,
    answers_to,
    counts,
    note_codes,
    read_draft,
    written_file,
)
from tests.codes import refused, refused_with_faults

LABEL_STUDIO, ARGILLA, DOCCANO, MTURK = (
    *(FIELD / "18-label-studio", FIELD / "19-argilla"),
    *(FIELD / "20-doccano", FIELD / "23-mturk"),
)


def n_answers(draft: StudyDraft) -> int:
    return sum(len(submission.judgments) for submission in draft.submissions)


class TestLabelStudio:
    def test_an_answer_without_a_choice_is_no_error(self):
        with refused(ImportRefused, "no_answers") as caught:
            read_draft(LABEL_STUDIO / "empty_choices.json", "label-studio")
        assert "8" in caught.value.problem  # answers, which the message counts

    @pytest.mark.parametrize(
        ("repeats", "first_item"), [("first", "a"), ("last", "b"), ("majority", "a")]
    )
    def test_one_of_two_annotations_by_an_account_is_kept(self, repeats, first_item):
        path = LABEL_STUDIO / "twice.json"
        draft = read_draft(path, "label-studio", policies=Policies(repeats=repeats))
        found = answers_to(draft, "sentiment")
        assert found == {("1", "1"): first_item, ("2", "1"): "a", ("2", "2"): "a"}
        assert draft.report.policies["repeats"] == repeats
        assert counts(draft.report) == {
            f"repeats_{repeats}": 1, "skipped": 1, "drafts": 1, "empty_annotation": 1,
        }  # fmt: skip

    def test_two_annotations_by_an_account_are_refused_by_default_and_have_no_mean(self):
        with pytest.raises(FileFaults) as caught:
            read_draft(LABEL_STUDIO / "twice.json", "label-studio")
        [fault] = caught.value.faults
        assert (fault.code, fault.record) == ("repeated_answer", "1 (id 1)")
        assert fault.field == "annotations[1].result[0].value.choices"
        assert "--repeats" in fault.problem
        policies = Policies(repeats="mean")
        with refused_with_faults(FileFaults, "mean_of_categories"):
            read_draft(LABEL_STUDIO / "twice.json", "label-studio", policies=policies)

    def test_annotations_without_an_account_are_numbered_per_task(self):
        draft = read_draft(LABEL_STUDIO / "889_no_completed_by.json", "label-studio")
        found = answers_to(draft, "sentiment")
        assert len(found) == 12
        assert {annotator for _item, annotator in found} == {"unnamed-1", "unnamed-2"}
        assert [item for (item, _who), value in found.items() if value == "Positive"] == [
            "3", "3", "6", "6",
        ]  # fmt: skip
        assert note_codes(draft.report) == {"unnamed_annotators"}

    def test_json_min_is_read_by_its_columns(self):
        path = LABEL_STUDIO / "json_min.json"
        with refused(ImportRefused, "no_value"):  # nobody disagrees: any field may be the answer
            read_draft(path, "label-studio")
        draft = read_draft(path, "label-studio", FieldNames(values=("sentiment",)))
        assert set(answers_to(draft, "sentiment").values()) == {"pos"}
        assert len(draft.submissions) == 8
        # its times are years, which are no times
        assert counts(draft.report) == {"unread_time": 8}

    def test_spans_are_counted_next_to_answers(self):
        draft = read_draft(LABEL_STUDIO / "1601_span_without_label.json", "label-studio")
        assert n_answers(draft) == 12
        assert counts(draft.report) == {"spans": 12}

    def test_other_controls_are_read_or_counted(self):
        draft = read_draft(LABEL_STUDIO / "other_controls.json", "label-studio")
        assert answers_to(draft, "tax")["1", "1"] == ["Fluency", "Fluency / Grammar"]
        assert {(q.name, q.kind) for q in draft.questions} >= {
            ("rank", "preference"), ("pair", "preference"), ("stars", "line"), ("n", "line"),
        }  # fmt: skip
        assert {
            judgment.candidate: judgment.value
            for judgment in draft.submissions[0].judgments
            if judgment.question == "rank"
        } == {"A": 1, "B": 0}
        assert counts(draft.report) == {"unread": 8}

    def test_words_are_kept_and_missing_numbers_counted(self):
        draft = read_draft(LABEL_STUDIO / "textarea_list.json", "label-studio")
        assert {w.text for s in draft.submissions for w in s.written} == {"a\nb"}
        assert draft.report.missing == {"": 8}


def region(n: int, choice: str) -> dict[str, Any]:
    value = {"start": n, "end": n + 1, "choices": [choice]}
    about = {"id": f"r{n}", "from_name": "sev", "to_name": "text", "type": "choices"}
    return {**about, "value": value}


def task(n: int, *results: dict[str, Any], who: Any = 1) -> dict[str, Any]:
    annotation = {"id": n, "completed_by": who, "result": list(results)}
    return {"id": n, "data": {"text": "t"}, "annotations": [annotation]}


FIT = {"from_name": "fit", "to_name": "text", "type": "rating", "value": {"rating": 3}}


def test_regions_and_relations_are_left_out_and_counted(tmp_path):
    regions = region(0, "minor"), region(1, "major")
    relation = {"type": "relation", "from_id": "r0", "to_id": "r1", "direction": "right"}
    for parts, expected in ((regions, {"region": 2}), ([relation], {"relations": 1})):
        draft = read_draft(written_file(tmp_path, [task(1, *parts, FIT)]), "label-studio")
        assert [question.name for question in draft.questions] == ["fit"]
        assert counts(draft.report) == expected
    with refused(ImportRefused, "no_answers"):
        read_draft(written_file(tmp_path, [task(1, *regions)]), "label-studio")


def test_faults_name_the_record_and_the_path_once(tmp_path):
    wrong = {"from_name": "s", "to_name": "text", "type": "choices", "value": {"choices": [3]}}
    path = written_file(tmp_path, [task(7, wrong), task(8, wrong)])  # on one line
    with pytest.raises(FileFaults) as caught:
        read_draft(path, "label-studio")
    assert [(fault.code, fault.field) for fault in caught.value.faults] == [
        ("not_texts", "annotations[0].result[0].value.choices")
    ] * 2
    assert len({fault.record for fault in caught.value.faults} - {""}) == 2


@pytest.mark.parametrize("tool", ["label-studio", "argilla"])
def test_questions_can_be_left_out(tmp_path, tool):
    tone = FIT | {"from_name": "tone"}
    answers = {name: [{"value": 1, "user_id": "u"}] for name in ("fit", "tone")}
    records = {
        "label-studio": [task(1, FIT, tone)],
        "argilla": [{"id": "1", "fields": {"text": "t"}, "responses": answers}],
    }
    path = written_file(tmp_path, records[tool])
    draft = read_draft(path, tool, without=frozenset({"tone"}))
    assert [question.name for question in draft.questions] == ["fit"]
    assert counts(draft.report) == {"question_left_out": 1}
    with refused(AnnotationError, "unknown_question"):
        read_draft(path, tool, without=frozenset({"mood"}))


class TestArgilla:
    @pytest.mark.parametrize(
        ("name", "n_drafts"), [("api_items", 10), ("api_list", 10), ("api_list2", 5)]
    )
    def test_records_of_the_api_are_read(self, name, n_drafts):
        draft = read_draft(ARGILLA / f"{name}.json", "argilla")
        assert answers_to(draft, "label") == {(f"r{n}", "u1"): "pos" for n in range(5)}
        assert counts(draft.report) == {"drafts": n_drafts}

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("v2_span", {"spans": 6, "no_category": 6}),
            ("v2_span_one_empty", {"spans": 11, "no_category": 1}),
            ("v2_span_nonempty", {"spans": 12}),
        ],
    )
    def test_spans_are_counted_and_rankings_read(self, name, expected):
        draft = read_draft(ARGILLA / f"{name}.json", "argilla")
        [rank] = draft.questions
        assert (rank.name, rank.kind) == ("rank", "preference")
        assert counts(draft.report) == expected
        assert note_codes(draft.report) == {"ranking"}
        ranks = {j.candidate: j.value for j in draft.submissions[0].judgments}
        assert ranks == {"y": 1, "x": 0}  # the first is the best

    def test_an_empty_list_is_an_answer_without_a_category(self):
        found = answers_to(read_draft(ARGILLA / "v2_multi_empty.json", "argilla"), "label")
        assert (found["r0", "u1"], found["r0", "u2"]) == (["a", "b"], [])
        assert len(found) == 12

    def test_records_without_answers_are_counted_and_a_page_without_records_refused(self, tmp_path):
        draft = read_draft(ARGILLA / "v2_null.json", "argilla")
        assert (draft.report.n_rows, draft.report.n_used) == (6, 4)
        assert counts(draft.report) == {"no_answer": 2}
        assert len(draft.items) == 6
        with refused(ImportRefused, "no_rows"):
            read_draft(written_file(tmp_path, {"items": [], "total": 0}), "argilla")

    def test_texts_that_are_empty_are_no_numbers(self, tmp_path):
        answers = [{"value": None, "user_id": "u1"}, {"value": "", "user_id": "u2"}]
        records = [{"id": "r0", "fields": {"prompt": "p"}, "responses": {"t": answers}}]
        path = written_file(tmp_path, records)
        with refused(ImportRefused, "no_answers", naming=("--written",)):
            read_draft(path, "argilla")
        draft = read_draft(path, "argilla", written=frozenset({"t"}))
        assert [w.text for s in draft.submissions for w in s.written] == [""]
        assert draft.report.missing == {"": 1}


def test_examples_of_doccano_name_annotators_or_their_file_does():
    draft = read_draft(DOCCANO / "pr46_username.jsonl", "doccano")  # of 2018
    assert answers_to(draft, "label") == {("20", "admin"): "label1", ("20", "bob"): "label2"}
    draft = read_draft(DOCCANO / "v0_label_ids.jsonl", "doccano")
    assert answers_to(draft, "label") == {("2", "1"): "8", ("2", "2"): "8"}
    assert counts(draft.report) == {"spans": 1, "no_answer": 1}
    assert note_codes(draft.report) == {"label_numbers"}
    draft = read_draft(DOCCANO / "ann.jsonl", "doccano")
    assert answers_to(draft, "label") == {("1", "ann"): ["entities"], ("3", "ann"): ["a", "b"]}
    assert counts(draft.report) == {"unlabeled": 1, "no_answer": 1}


class TestMechanicalTurk:
    @pytest.mark.parametrize("name", ["crowd_classifier", "category_label"])
    def test_answers_of_a_classifier_are_categories(self, name):
        draft = read_draft(MTURK / f"{name}.csv", "mturk")
        found = answers_to(draft, "category")
        assert [q.categories for q in draft.questions] == [("neg", "pos")]
        assert len(found) == 18
        assert (found["3H0", "A0XX"], found["3H0", "A1XX"]) == ("pos", "neg")

    def test_check_boxes_are_split_and_empty_cells_are_answers(self):
        draft = read_draft(MTURK / "checkbox_pipe.csv", "mturk")
        found = answers_to(draft, "err")
        assert (len(found), len(draft.submissions)) == (18, 18)
        assert [found["3H0", f"A{n}XX"] for n in range(3)] == [
            ["fluency", "grammar"], ["fluency"], [],
        ]  # fmt: skip
        assert note_codes(draft.report) == {"check_boxes", "answers_without_category"}

    def test_every_part_of_a_form_is_read(self):
        draft = read_draft(MTURK / "taskanswers.csv", "mturk")
        assert {(q.name, q.level) for q in draft.questions} == {
            ("fluency", "interval"), ("why", "nominal"), ("flags", "nominal"), ("cat", "nominal"),
        }  # fmt: skip
        assert answers_to(draft, "cat")["3H0", "A0XX"] == "y"
        assert n_answers(draft) == 72


PLAIN = FieldNames(item=("item",), annotator="who", values=("label",))


@pytest.mark.parametrize(
    ("repeats", "value"), [("first", "no"), ("last", "yes"), ("majority", "yes")]
)
def test_repeated_rows_of_a_table_follow_the_policy(tmp_path, repeats, value):
    rows = "item,who,label\n0,A,no\n0,A,yes\n0,A,yes\n0,B,yes\n"
    path = written_file(tmp_path, rows, "repeat.csv")
    draft = read_draft(path, "csv", PLAIN, policies=Policies(repeats=repeats))
    assert answers_to(draft, "label") == {("0", "A"): value, ("0", "B"): "yes"}
    assert counts(draft.report) == {f"repeats_{repeats}": 2, "no_answer": 2}
    with pytest.raises(FileFaults):
        read_draft(path, "csv", PLAIN)


def test_words_for_no_label_are_missing_unless_they_are_wanted(tmp_path):
    rows = "item,who,label\n0,A,yes\n0,B,NULL\n1,A,no\n1,B,\n"
    path = written_file(tmp_path, rows, "null.csv")
    draft = read_draft(path, "csv", PLAIN)
    assert answers_to(draft, "label") == {("0", "A"): "yes", ("1", "A"): "no"}
    assert draft.report.missing == {"NULL": 1, "": 1}
    assert counts(draft.report) == {"no_answer": 2}
    kept = read_draft(path, "csv", PLAIN, policies=Policies(missing="empty"))
    assert answers_to(kept, "label")["0", "B"] == "NULL"


def test_items_that_look_alike_are_noted():
    policies = Policies(repeats="first")
    draft = read_draft(FIELD / "28-ids" / "ids.csv", "csv", PLAIN, policies=policies)
    assert "look_alike_items" in note_codes(draft.report)
    assert {"007", "7"} < {item.key for item in draft.items}
