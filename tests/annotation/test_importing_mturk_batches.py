import csv
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from annotation.exceptions import ImportRefused
from annotation.frames import candidate_frame, judgment_frame
from annotation.models import Annotator, Item, Judgment, Study, Submission
from annotation.readers.mturk_batch import read_mturk_batch
from tests.annotation import importing, studies
from tests.codes import refused, refused_naming

pytestmark = pytest.mark.django_db

WORKERS = ("A1WORKERONE", "A2WORKERTWO", "A3WORKERTHREE")
TIMES = {
    "AcceptTime": "Tue Jun 13 14:13:34 PDT 2023",
    "SubmitTime": "Tue Jun 13 23:59:59 PST 2023",
    "WorkTimeInSeconds": "174",
}


def assignment(hit: str, worker: str, status: str, *values: float, **fields: Any) -> dict[str, Any]:
    """A row as Amazon writes it, with a rating of fit and of style for two systems."""
    names = ("Answer.Fit_big", "Answer.Fit_small", "Answer.Style_big", "Answer.Style_small")
    return {
        "HITId": hit,
        "Title": "Rate the responses",
        "AssignmentId": f"ASSIGNMENT-{hit}-{worker}",
        "WorkerId": worker,
        "AssignmentStatus": status,
        **TIMES,
        "LifetimeApprovalRate": "89% (201/227)",
        "Input.Speaker": f"context of {hit}",
        "Input.big": f"big says {hit}",
        "Input.small": f"small says {hit}",
        **dict(zip(names, values or (10, 20, 30, 40), strict=True)),
        "Approve": "",
        **fields,
    }


BATCH = (
    assignment("H1", WORKERS[0], "Approved", 10, 20, 30, 40),
    assignment("H1", WORKERS[1], "Rejected", 0, 0, 0, 0),
    assignment("H2", WORKERS[0], "Submitted", 50, 60, 70, 80),
)

Writer = Callable[..., Path]
assert_batch_refused = partial(importing.assert_refused, "import_mturk_batch")


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def write(*rows: dict[str, Any], name: str = "Batch_1_batch_results.csv") -> Path:
        path = tmp_path / name
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


def test_a_batch_becomes_a_rating_study(write):
    importing.assert_imported_once("import_mturk_batch", write(*BATCH), [2, 3], study="styles")
    study = Study.objects.get()
    assert study.kind == "rating"
    contexts = study.items.values_list("key", "context")
    assert list(contexts) == [("H1", "context of H1"), ("H2", "context of H2")]
    rows = judgment_frame(study)[["question", "item", "system", "value"]].to_numpy().tolist()
    names = [
        [question, item, system]
        for question in ("Fit", "Style")
        for item in ("H1", "H2")
        for system in ("big", "small")
    ]
    values = [10, 20, 50, 60, 30, 40, 70, 80]
    assert rows == [[*name, value] for name, value in zip(names, values, strict=True)]
    assert candidate_frame(study)["response"].tolist()[:2] == ["big says H1", "small says H1"]
    # What Amazon decided is kept.
    submissions = Submission.objects.order_by("pk")
    assert [s.status for s in submissions] == ["approved", "rejected", "submitted"]
    assert Judgment.objects.count() == 12
    assert Judgment.objects.accepted().count() == 8


def test_amazons_local_times_become_utc_and_what_is_no_time_is_refused(write):
    times = ["yesterday", "Tue Jun 13 14:13:34 CEST 2023", "Tue Jun 31 14:13:34 PDT 2023"]
    times += ["Tue Jun 13 25:13:34 PDT 2023", "13/06/2023", "0001-01-01T00:00:00+23:59"]
    for text in (*times, "1686690814"):
        for field in ("AcceptTime", "SubmitTime"):
            path = write(BATCH[0], {**BATCH[2], field: text})
            assert_batch_refused(path, "not_time", line=3, field=field, value=text)
    rows = [
        BATCH[0],
        assignment("H2", WORKERS[0], "Approved", AcceptTime="2023-06-13T14:13:34+02:00"),
        assignment("H3", WORKERS[0], "Approved", AcceptTime="2023-06-13 14:13:34"),
        assignment("H4", WORKERS[0], "Approved", AcceptTime="", WorkTimeInSeconds=""),
    ]
    importing.command_output("import_mturk_batch", write(*rows), study="styles")
    h1, h2, h3, h4 = Submission.objects.order_by("pk")
    assert h1.accepted_at == datetime(2023, 6, 13, 21, 13, 34, tzinfo=UTC)
    assert h1.submitted_at == datetime(2023, 6, 14, 7, 59, 59, tzinfo=UTC)
    assert h1.seconds == 174
    assert h2.accepted_at == datetime(2023, 6, 13, 12, 13, 34, tzinfo=UTC)
    assert h3.accepted_at == datetime(2023, 6, 13, 14, 13, 34, tzinfo=UTC)
    assert (h4.accepted_at, h4.seconds) == (None, None)


@pytest.mark.parametrize(
    "layout", ["{question}_{system}", "{question}.{system}", "{system}_{question}"]
)
def test_answers_are_found_in_each_layout(write, layout):
    inputs = {"Input.text": "hi", "Input.2": "b", "Input.gpt": "c", "Input.gpt_2": "a"}
    columns = [
        layout.format(question=question, system=system)
        for question in ("Fit", "Style")
        for system in ("gpt_2", "2", "gpt")
    ]
    row = {
        **{"HITId": "H1", "WorkerId": "W", "AssignmentStatus": "Approved", **inputs},
        **{f"Answer.{column}": value for value, column in enumerate(columns)},
        "Answer.comment": "fine",
    }
    importing.command_output("import_mturk_batch", write(row), study="s")
    frame = judgment_frame(Study.objects.get())
    assert frame[["question", "system", "value"]].to_numpy().tolist() == [
        *(["Fit", "gpt_2", 0.0], ["Fit", "2", 1.0], ["Fit", "gpt", 2.0]),
        *(["Style", "gpt_2", 3.0], ["Style", "2", 4.0], ["Style", "gpt", 5.0]),
    ]


def test_a_worker_is_known_by_a_pseudonym_alone(write, tmp_path):
    rows = [{**row, "Answer.comment": "☃ naïve", "Input.note": "n"} for row in BATCH]
    output = importing.command_output(
        "import_mturk_batch", write(*rows), study="styles", context="Speaker"
    )
    study = Study.objects.get()
    # Of a row, only the answers are kept.
    assert json.loads(Submission.objects.order_by("pk")[0].raw) == {
        **{"Answer.Fit_big": "10", "Answer.Fit_small": "20"},
        **{"Answer.Style_big": "30", "Answer.Style_small": "40"},
        "Answer.comment": "☃ naïve",
    }
    csv_text = judgment_frame(study, accepted=False).to_csv() + candidate_frame(study).to_csv()
    for text in (output, csv_text, repr(importing.everything())):
        assert not [word for word in (*WORKERS, "ASSIGNMENT-", "201/227") if word in text]
    names = judgment_frame(study, accepted=False)["annotator"].unique()
    assert len(names) == 2
    assert all(len(name) == 11 and name[0] == "A" and int(name[1:], 16) >= 0 for name in names)
    # No refusal names a worker.
    path = write(assignment("H1", WORKERS[0], "Approved", 11, 20, 30, 40))
    error = assert_batch_refused(path, "other_submission", line=2, value="H1", study="styles")
    assert re.search("A[0-9a-f]{10}", str(error))
    assert WORKERS[0] not in str(error)


def test_answers_may_follow_the_items(write):
    path = write(*BATCH)
    output = importing.command_output("import_mturk_batch", path, study="styles", items_only=True)
    assert importing.numbers_in(output.splitlines()[0]) == [2]
    assert (Item.objects.count(), Submission.objects.count()) == (2, 0)
    assert not Annotator.objects.exists()
    assert Study.objects.get().questions.count() == 2
    imported = importing.command_output("import_mturk_batch", path, study="styles").splitlines()[0]
    assert importing.numbers_in(imported) == [0, 2, 3]
    # A worker has another pseudonym in another study.
    importing.command_output("import_mturk_batch", path, study="two")
    names = Annotator.objects.values_list("pseudonym", flat=True)
    assert len(set(names)) == len(names) == 4
    studies.alternatives_study("pools")
    for items_only in (True, False):
        assert_batch_refused(path, "other_kind", study="pools", items_only=items_only)


def test_columns_may_name_items_conditions_and_contexts(write):
    extra = {"Input.dataset": "BST", "Input.number": "7"}
    path = write({**BATCH[0], **extra}, {**BATCH[2], **extra, "Input.number": "8"})
    options = {"item": ["dataset", "number"], "condition": "dataset"}
    importing.command_output("import_mturk_batch", path, study="s", **options)
    items = Item.objects.values_list("key", "condition")
    assert list(items) == [("BST-7", "BST"), ("BST-8", "BST")]
    # A HIT that was published again is the same item.
    again = {**BATCH[0], "HITId": "H9", "WorkerId": WORKERS[1], **extra}
    path = write({**BATCH[0], **extra}, again)
    importing.command_output("import_mturk_batch", path, study="again", **options)
    study = Study.objects.named("again")
    assert (study.items.get().key, Submission.objects.of(study).count()) == ("BST-7", 2)
    path = write(*({**row, "Input.dataset": "BST"} for row in BATCH))
    assert_batch_refused(path, "no_context", value="Speaker, dataset")
    value = "Speaker, big, small"
    assert_batch_refused(write(*BATCH), "no_context", value=value, item=["Speaker"])
    path = write(*({**row, "Input.dataset": "BST"} for row in BATCH))
    importing.command_output("import_mturk_batch", path, study="s", context="Speaker")
    assert Item.objects.get(key="H1").context == "context of H1"


def test_a_rejected_submission_gives_way_to_the_workers_next(write):
    rows = [
        assignment("H1", WORKERS[0], "Rejected", 0, 0, 0, 0),
        assignment("H1", WORKERS[0], "Approved", 1, 1, 1, 1),
        assignment("H1", WORKERS[0], "Rejected", 2, 2, 2, 2),
        assignment("H1", WORKERS[0], "Approved", 3, 3, 3, 3),
    ]
    output = importing.command_output("import_mturk_batch", write(*rows), study="s")
    assert set(Judgment.objects.values_list("value", "submission__status")) == {(1, "approved")}
    _sentence, reading, left_out = output.splitlines()
    assert importing.numbers_in(reading) == [4, 1]
    # rows, and of each its line and the line that is kept
    assert importing.numbers_in(left_out) == [3, 2, 3, 4, 3, 5, 3]


def test_an_assignment_that_is_not_whole_or_in_another_layout_is_refused(write):
    cases: list[tuple[str, str, str]] = [
        ("AssignmentStatus", "Lost", "unknown_status"),
        ("AssignmentStatus", "", "empty"),
        ("WorkerId", " ", "empty"),
        ("HITId", "", "empty"),
        ("Answer.Fit_big", "", "not_number"),
        ("Answer.Fit_big", "good", "not_number"),
        ("Answer.Fit_big", "nan", "not_finite"),
        ("WorkTimeInSeconds", "long", "not_number"),
        ("Answer.Fit_big", "101", "off_scale"),
        ("Answer.Style_small", "-1", "off_scale"),
    ]
    for field, value, code in cases:
        path = write(BATCH[0], {**BATCH[2], field: value})
        assert_batch_refused(path, code, line=3, field=field, value=value.strip())

    def check(code: str, *rows: dict[str, Any], line: int = 1, **options: Any) -> None:
        assert_batch_refused(write(*rows), code, line=line, **options)

    check("differs", BATCH[0], {**BATCH[1], "Input.big": "something else"}, line=3, value="H1")
    for missing in ("HITId", "WorkerId", "AssignmentStatus"):
        row = {name: value for name, value in BATCH[0].items() if name != missing}
        check("missing_columns", row, value=missing)
    row = {name: value for name, value in BATCH[0].items() if not name.startswith("Answer.")}
    check("no_ratings", {**row, "Answer.note": "x"})
    check("missing_columns", *BATCH, value="Input.Dialogue", context="Dialogue")
    check("missing_columns", *BATCH, value="Input.Dialogue", condition="Dialogue")
    with refused(ImportRefused, "missing_columns"):
        read_mturk_batch(write(*BATCH), item=("Dialogue",))
    for name in ("q" * 65 + "_big", "_big", "Fit_" + "s" * 101):
        inputs = {f"Input.{'s' * 101}": "a"} if "s" * 101 in name else {}
        row = {**BATCH[0], f"Answer.{name}": "1", **inputs}
        check("unfit_name", row, value=name[:40], context="Speaker")
    row = {**BATCH[0], "Input.a": "x" * 150, "Input.b": "y" * 50}
    check("too_long", row, line=2, field="Input.b", value="201", item=["a", "b"])


def test_a_batch_reviewed_since_brings_its_decisions(write):
    importing.command_output("import_mturk_batch", write(*BATCH), study="styles")
    judged = list(Judgment.objects.order_by("pk").values_list("pk", "value"))
    path = write(*BATCH[:2], {**BATCH[2], "AssignmentStatus": "Rejected"})
    imported, reading = importing.command_output(
        "import_mturk_batch", path, study="styles"
    ).splitlines()
    assert (importing.numbers_in(imported), importing.numbers_in(reading)) == ([0, 2, 0, 3], [3, 3])
    statuses = Submission.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["approved", "rejected", "rejected"]
    assert list(Judgment.objects.order_by("pk").values_list("pk", "value")) == judged


def test_the_number_of_queries_does_not_grow(write):
    counts = []
    for slug, n_hits in (("few", 2), ("many", 24)):
        batch = [assignment(f"H{n}", WORKERS[n % 3], "Submitted") for n in range(n_hits)]
        counts.append(importing.queries_of("import_mturk_batch", write(*batch), study=slug))
    assert counts[0] == counts[1] <= 25
    counts = []
    for first, last in ((0, 1), (1, 24)):
        for row in batch[first:last]:
            row["AssignmentStatus"] = "Approved"
        counts.append(importing.queries_of("import_mturk_batch", write(*batch), study="many"))
        assert Submission.objects.filter(status="approved").count() == last
    assert counts[0] == counts[1]


HEADER = (
    "HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,WorkTimeInSeconds,"
    "Input.target1,Input.top1,Input.top2,Input.top3,Answer.reason,"
)
POOLED_TIMES = "Tue Jun 13 14:13:34 PDT 2023,Tue Jun 13 14:14:04 PDT 2023,30"
TICKS = HEADER + "Answer.top1.on,Answer.top2.on,Answer.top3.on\n"


def row(n: int, worker: str, pool: str, rest: str, status: str = "Approved") -> str:
    return f"H{n},A{n}{worker[1]},{worker},{status},{POOLED_TIMES},{pool},{rest}\n"


POOLED_BATCH = TICKS + (
    row(1, "W1", "boot,clog,pump,flat", "same heel,on,,")
    + row(1, "W2", "boot,clog,pump,flat", ",,,", status="Rejected")
    + row(2, "W1", "gown,coat,coat,gown", "colour,true,false,true")
)


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    return importing.write_file(tmp_path / "batch.csv", POOLED_BATCH)


def test_a_batch_of_pools_becomes_a_study_of_alternatives(batch):
    output = importing.command_output("import_mturk_batch", batch, study="shoes")
    assert [importing.numbers_in(line) for line in output.splitlines()] == [
        [2, 3],
        [3, 3],
        [1, 4],  # a picture that is in the pool twice, and its line
        [1, 4],  # the target among its candidates
    ]
    assert Study.objects.get().kind == "alternatives"
    values = Judgment.objects.accepted().order_by("submission__pk", "candidate__position")
    expected = [("clog", 1), ("pump", 0), ("flat", 0), ("coat", 1)]
    assert list(values.values_list("candidate__key", "value")) == expected


def test_reasons_times_and_statuses_come_with_it_and_workers_do_not(batch):
    importing.command_output("import_mturk_batch", batch, study="shoes", items_only=True)
    assert (Study.objects.get().items.count(), Submission.objects.count()) == (2, 0)
    importing.command_output("import_mturk_batch", batch, study="shoes")
    first, second, _ = Submission.objects.order_by("pk")
    assert (first.justification, first.seconds, first.status) == ("same heel", 30, "approved")
    assert first.submitted_at is not None
    assert first.submitted_at.isoformat() == "2023-06-13T21:14:04+00:00"
    assert (second.status, second.annotator.pseudonym[0]) == ("rejected", "A")
    assert not Submission.objects.filter(raw__contains="W1").exists()
    # Nothing ticked is a judgment: the form was sent.
    rejected = Judgment.objects.filter(submission__status="rejected")
    assert list(rejected.values_list("value", flat=True)) == [0, 0, 0]
    # Pools of several sizes end with empty cells.
    batch.write_text(TICKS + row(1, "W1", "boot,clog,,", ",on,,"))
    importing.command_output("import_mturk_batch", batch, study="short")
    assert Judgment.objects.filter(question__study__slug="short").count() == 1


def test_an_unknown_status_and_a_repeated_target_are_refused(batch):
    batch.write_text(TICKS + row(1, "W1", "boot,clog,pump,flat", ",on,,", status="Lost"))
    field = "AssignmentStatus"
    assert_batch_refused(batch, "unknown_status", line=2, field=field, value="Lost")
    for worker, pool, code in (
        ("W1", "boot,clog,pump,flat", "repeated_target"),
        ("W3", "boot,clog,pump,sole", "other_pool"),
    ):
        batch.write_text(POOLED_BATCH + row(3, worker, pool, ",on,,"))
        assert_batch_refused(batch, code, line=5, field="Input.target1")


def test_options_of_ratings_do_not_fit_pools(batch):
    with refused_naming(CommandError, "--context"):
        importing.command_output("import_mturk_batch", batch, study="shoes", context="target1")
    options = {"tool": "mturk-pools", "item": ["x"]}
    importing.assert_refused("import_annotations", batch, "other_options", **options)


@pytest.mark.parametrize("tool", ["mturk", "mturk-pools"])
def test_labels_of_another_tool_may_be_such_a_batch(batch, tool):
    importing.command_output("import_annotations", batch, study="again", tool=tool)
    assert Study.objects.get().kind == "alternatives"
    assert Judgment.objects.filter(question__name="acceptable").count() == 7
    importing.command_output("import_annotations", batch, study="s", tool=tool, keep_names=True)
    names = Annotator.objects.filter(study__slug="s").values_list("pseudonym", flat=True)
    assert set(names) == {"W1", "W2"}


RELEASE_HEADER = "Input.target1,Input.top1,Input.top2,Input.top3,HITId,top1,top2,top3\n"
RELEASED = (
    RELEASE_HEADER
    + "boot.jpg,clog.jpg,pump.jpg,flat.jpg,H1,True,False,false\n"  # as it should be
    + "gown.jpg,coat.jpg,coat.jpg,skirt.jpg,H2,False,TRUE,False\n"  # one picture twice
    + "sock.jpg,sock.jpg,clog.jpg,pump.jpg,H3,True,False,False\n"  # the target itself
    + "belt.jpg,clog.jpg,pump.jpg,flat.jpg,H4,,,\n"  # nobody judged
    + "hat.jpg,hat.jpg,hat.jpg,cap.jpg,H5,False,True,True\n"  # twice, and the target itself
    + "vest.jpg,coat.jpg,skirt.jpg,coat.jpg,H6,True,False,False\n"  # ticked, then not
)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return importing.write_file(tmp_path / "judged_targets_all.csv", RELEASED)


def test_released_judgments_become_a_study_of_assessors_and_repairs_are_said(release):
    output = importing.command_output("import_altereval", release, study="s")
    sentence, reading, unjudged, *_parts = output.splitlines()
    assert (importing.numbers_in(sentence), importing.numbers_in(reading)) == ([5, 5], [6, 5])
    assert importing.numbers_in(unjudged)[0] == 1
    Study.objects.all().delete()
    importing.assert_imported_once("import_altereval", release, [5, 5], study="shoes")
    values = Judgment.objects.order_by("candidate__item__position", "candidate__position")
    assert list(values.values_list("candidate__item__key", "candidate__key", "value")) == [
        ("boot.jpg", "clog.jpg", 1),
        ("boot.jpg", "pump.jpg", 0),
        ("boot.jpg", "flat.jpg", 0),
        ("gown.jpg", "coat.jpg", 1),
        ("gown.jpg", "skirt.jpg", 0),
        ("sock.jpg", "clog.jpg", 0),
        ("sock.jpg", "pump.jpg", 0),
        ("hat.jpg", "cap.jpg", 1),
        ("vest.jpg", "coat.jpg", 1),
        ("vest.jpg", "skirt.jpg", 0),
    ]
    assert Study.objects.get().kind == "alternatives"
    # Each HIT has an assessor, and its answer as it was.
    names = Submission.objects.order_by("item__position").values_list(
        "annotator__pseudonym", "status", "round"
    )
    assert list(names) == [(f"assessor-H{n}", "approved", 1) for n in (1, 2, 3, 5, 6)]
    raw = json.loads(Submission.objects.get(item__key="gown.jpg").raw)
    assert (raw["Input.top1"], raw["Input.top2"], raw["top1"]) == ("coat.jpg", "coat.jpg", "False")


TWICE = "b,c,d,e,H1,True,True,True\nb,c,d,e,H2,True,True,True\n"
REFUSALS = [
    ("neither true nor false", "b,c,d,e,H1,True,1,\n", 2, "top2", "not_tick"),
    ("judged in part", "b,c,d,e,H1,True,,False\n", 2, "top2", "not_tick"),
    ("a slot without picture", "b,c,,e,H1,True,False,False\n", 2, "Input.top2", "empty"),
    ("no target", ",c,d,e,H1,True,False,False\n", 2, "Input.target1", "empty"),
    ("no HIT", "b,c,d,e,,True,False,False\n", 2, "HITId", "empty"),
    ("a long HIT", f"b,c,d,e,{'H' * 81},True,False,False\n", 2, "HITId", "too_long"),
    ("only the target itself", "b,b,b,b,H1,True,False,False\n", 2, None, "only_target"),
    ("none judged", "b,c,d,e,H1,,,\n", None, None, "no_judgments"),
    ("a target twice", TWICE, 3, "Input.target1", "repeated_target"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case[0])
def test_rows_that_are_not_whole_are_refused(tmp_path, case):
    _name, rows, line, field, code = case
    path = importing.write_file(tmp_path / "judged.csv", RELEASE_HEADER + rows)
    importing.assert_refused("import_altereval", path, code, line=line, field=field)


def test_missing_columns_are_refused(tmp_path):
    path = tmp_path / "judged.csv"
    for header, missing in (
        ("Input.target1,HITId", "Input.top1 and top1"),
        ("Input.target1,HITId,Input.top1,Input.top2,top1", "top2"),
        ("Input.target1,Input.top1,top1", "HITId"),
        ("HITId,Input.top1,top1", "Input.target1"),
    ):
        path.write_text(f"{header}\n{','.join('x' * len(header.split(',')))}\n")
        importing.assert_refused("import_altereval", path, "missing_columns", line=1, value=missing)


def test_released_judgments_do_not_join_a_study_of_ratings(release):
    studies.rated_study("rated")
    importing.assert_refused("import_altereval", release, "other_kind", study="rated")
    importing.command_output("import_altereval", release, study="shoes")
    release.write_text(RELEASED.replace("H1,True,False", "H1,True,True"))
    options = {"value": "assessor-H1", "study": "shoes"}
    importing.assert_refused("import_altereval", release, "other_submission", line=2, **options)
    # Without defects, nothing is repaired.
    release.write_text("".join(RELEASED.splitlines(keepends=True)[:2]))
    output = importing.command_output("import_altereval", release, study="clean")
    assert [importing.numbers_in(line) for line in output.splitlines()] == [[1, 1], [1, 1]]
