"""Targets with their pools: batches of Mechanical Turk, and released judgments of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from annotation.models import Annotator, Judgment, Study, Submission
from tests.annotation.importing import (
    assert_imported_once,
    assert_refused,
    command_output,
    numbers_in,
)
from tests.annotation.studies import rated_study
from tests.codes import refused_naming

pytestmark = pytest.mark.django_db

HEADER = (
    "HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,WorkTimeInSeconds,"
    "Input.target1,Input.top1,Input.top2,Input.top3,Answer.reason,"
)
TIMES = "Tue Jun 13 14:13:34 PDT 2023,Tue Jun 13 14:14:04 PDT 2023,30"
TICKS = HEADER + "Answer.top1.on,Answer.top2.on,Answer.top3.on\n"


def row(n: int, worker: str, pool: str, rest: str, status: str = "Approved") -> str:
    return f"H{n},A{n}{worker[1]},{worker},{status},{TIMES},{pool},{rest}\n"


BATCH = TICKS + (
    row(1, "W1", "boot,clog,pump,flat", "same heel,on,,")
    + row(1, "W2", "boot,clog,pump,flat", ",,,", status="Rejected")
    + row(2, "W1", "gown,coat,coat,gown", "colour,true,false,true")
)


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    path = tmp_path / "batch.csv"
    path.write_text(BATCH)
    return path


def test_a_batch_of_pools_becomes_a_study_of_alternatives(batch: Path) -> None:
    output = command_output("import_mturk_batch", batch, study="shoes")
    assert [numbers_in(line) for line in output.splitlines()] == [
        [2, 3],
        [3, 3],
        [1, 4],  # a picture that is in the pool twice, and its line
        [1, 4],  # the target among its candidates
    ]
    assert Study.objects.get().kind == "alternatives"
    values = Judgment.objects.accepted().order_by("submission__pk", "candidate__position")
    assert list(values.values_list("candidate__key", "value")) == [
        ("clog", 1),
        ("pump", 0),
        ("flat", 0),
        ("coat", 1),
    ]


def test_reasons_times_and_statuses_come_with_it_and_workers_do_not(batch: Path) -> None:
    command_output("import_mturk_batch", batch, study="shoes", items_only=True)
    assert (Study.objects.get().items.count(), Submission.objects.count()) == (2, 0)
    command_output("import_mturk_batch", batch, study="shoes")
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
    command_output("import_mturk_batch", batch, study="short")
    assert Judgment.objects.filter(question__study__slug="short").count() == 1


def test_an_unknown_status_and_a_repeated_target_are_refused(
    batch: Path,
) -> None:
    batch.write_text(TICKS + row(1, "W1", "boot,clog,pump,flat", ",on,,", status="Lost"))
    options = {"field": "AssignmentStatus", "value": "Lost"}
    assert_refused("import_mturk_batch", batch, "unknown_status", line=2, **options)
    for worker, pool, code in (
        ("W1", "boot,clog,pump,flat", "repeated_target"),
        ("W3", "boot,clog,pump,sole", "other_pool"),
    ):
        batch.write_text(BATCH + row(3, worker, pool, ",on,,"))
        assert_refused("import_mturk_batch", batch, code, line=5, field="Input.target1")


def test_options_of_ratings_do_not_fit_pools(batch: Path) -> None:
    with refused_naming(CommandError, "--context"):
        command_output("import_mturk_batch", batch, study="shoes", context="target1")
    options = {"tool": "mturk-pools", "item": ["x"]}
    assert_refused("import_annotations", batch, "other_options", **options)


@pytest.mark.parametrize("tool", ["mturk", "mturk-pools"])
def test_labels_of_another_tool_may_be_such_a_batch(batch: Path, tool: str) -> None:
    command_output("import_annotations", batch, study="again", tool=tool)
    assert Study.objects.get().kind == "alternatives"
    assert Judgment.objects.filter(question__name="acceptable").count() == 7
    command_output("import_annotations", batch, study="s", tool=tool, keep_names=True)
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
    path = tmp_path / "judged_targets_all.csv"
    path.write_text(RELEASED)
    return path


def test_released_judgments_become_a_study_of_assessors_and_repairs_are_said(release: Path) -> None:
    output = command_output("import_altereval", release, study="s")
    sentence, reading, unjudged, *_parts = output.splitlines()
    assert (numbers_in(sentence), numbers_in(reading)) == ([5, 5], [6, 5])
    assert numbers_in(unjudged)[0] == 1
    Study.objects.all().delete()
    assert_imported_once("import_altereval", release, [5, 5], study="shoes")
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
def test_rows_that_are_not_whole_are_refused(tmp_path: Path, case: Any) -> None:
    _name, rows, line, field, code = case
    path = tmp_path / "judged.csv"
    path.write_text(RELEASE_HEADER + rows)
    assert_refused("import_altereval", path, code, line=line, field=field)


def test_missing_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    for header, missing in (
        ("Input.target1,HITId", "Input.top1 and top1"),
        ("Input.target1,HITId,Input.top1,Input.top2,top1", "top2"),
        ("Input.target1,Input.top1,top1", "HITId"),
        ("HITId,Input.top1,top1", "Input.target1"),
    ):
        path.write_text(f"{header}\n{','.join('x' * len(header.split(',')))}\n")
        assert_refused("import_altereval", path, "missing_columns", line=1, value=missing)


def test_released_judgments_do_not_join_a_study_of_ratings(release: Path) -> None:
    rated_study("rated")
    assert_refused("import_altereval", release, "other_kind", study="rated")
    command_output("import_altereval", release, study="shoes")
    release.write_text(RELEASED.replace("H1,True,False", "H1,True,True"))
    options = {"value": "assessor-H1", "study": "shoes"}
    assert_refused("import_altereval", release, "other_submission", line=2, **options)
    # Without defects, nothing is repaired.
    release.write_text("".join(RELEASED.splitlines(keepends=True)[:2]))
    output = command_output("import_altereval", release, study="clean")
    assert [numbers_in(line) for line in output.splitlines()] == [[1, 1], [1, 1]]
