"""Mechanical Turk batches of targets with their pools, as a requester downloads them."""

from pathlib import Path

import pytest
from django.core.management.base import CommandError

from annotation.models import Annotator, Judgment, Study, Submission
from tests.annotation.importing import assert_refused, command_output, numbers_in
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
    assert [numbers_in(line) for line in output.splitlines()] == [[2, 3], [1, 1], [1]]
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


def test_a_target_again_is_of_another_worker_with_the_same_pool(batch: Path) -> None:
    for worker, pool, code in (
        ("W1", "boot,clog,pump,flat", "repeated_target"),
        ("W3", "boot,clog,pump,sole", "other_pool"),
    ):
        batch.write_text(BATCH + row(3, worker, pool, ",on,,"))
        assert_refused("import_mturk_batch", batch, code, line=5, field="Input.target1")


def test_an_unknown_status_is_refused(batch: Path) -> None:
    batch.write_text(TICKS + row(1, "W1", "boot,clog,pump,flat", ",on,,", status="Lost"))
    options = {"field": "AssignmentStatus", "value": "Lost"}
    assert_refused("import_mturk_batch", batch, "unknown_status", line=2, **options)


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
