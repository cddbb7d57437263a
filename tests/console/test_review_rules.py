"""The review desk's rules: what they take, what they leave and why, whatever somebody types."""

import pytest
from django.urls import reverse

from annotation.evidence_versions import store_evidence
from annotation.models import AnnotatorFlag, Submission
from hits.models import Assignment, Hit, SharedDevice
from stats.quality import FLAGS
from tests.annotation.studies import rated_study
from tests.codes import field_codes
from tests.console.filled import add_assignment, add_batch

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"rule": "approve-unflagged", "hours": "99999999999999999999"}, "hours"),
        ({"rule": "reject-fast", "divisor": "1e300", "text": "Too fast."}, "divisor"),
        (
            {"rule": "bonus-workers", "least_approved": "9" * 20, "amount_usd": "1", "text": "x"},
            "least_approved",
        ),
    ],
)
def test_numbers_beyond_reason_are_refused_at_their_field(rosa, researcher, query, field):
    study = rated_study("mine", owner=researcher)
    answer = rosa.get(reverse("console:review-rules", args=[study.slug]), query)
    assert answer.status_code == 200
    assert field_codes(answer.context["form"]) == {field: ["max_value"]}


@pytest.fixture
def waiting(researcher):
    """Submissions that wait: one plain, one whose worker shares a device, one flagged by hand, and
    an answer that could not be read."""
    study = rated_study("mine", owner=researcher)
    first, second = Hit.objects.of(add_batch(study))[:2]
    submissions = list(Submission.objects.of(study).order_by("pk")[:3])
    rows = [
        add_assignment(hit, worker)
        for hit, worker in ((first, "A1"), (first, "A2"), (second, "A1"), (second, "A3"))
    ]
    for row, submission in zip(rows, submissions, strict=False):
        Assignment.objects.filter(pk=row.pk).update(submission=submission)
    Assignment.objects.filter(pk=rows[3].pk).update(problem="It was cut short.")
    Submission.objects.filter(pk=submissions[2].pk).update(flag_reason="Copied from a colleague.")
    worker = rows[1].worker
    SharedDevice.objects.create(batch=first.batch, worker=worker, n_shared=1, n=1, n_others=1)
    store_evidence(study)
    return study


def test_who_shared_a_device_is_named_with_the_batch_and_a_way_to_their_work(rosa, waiting):
    shared = SharedDevice.objects.get()
    other = Assignment.objects.get(
        worker__worker_id="A1",
        hit__batch=shared.batch,
        hit__pk=(Hit.objects.of(shared.batch).first().pk),
    )
    name = other.submission.annotator.pseudonym
    SharedDevice.objects.update(others=[name])
    [opened] = Assignment.objects.filter(worker=shared.worker)
    answer = rosa.get(reverse("console:review", args=["mine"]), {"assignment": opened.pk})
    [note] = [one for one in answer.context["row"].flags if one.annotators]
    assert [*note.annotators] == [name]
    assert all(part in note.text for part in (str(shared.batch_id), name))
    assert f'href="?show=waiting&amp;assignment={other.pk}"' in answer.content.decode()


def preview(browser, study):
    query = {"rule": "approve-unflagged", "hours": "0"}
    return browser.get(reverse("console:review-rules", args=[study.slug]), query).context


def test_the_rule_shows_flags_that_hold_nothing_back_and_counts_what_it_leaves(rosa, waiting):
    shown = preview(rosa, waiting)
    assert len(shown["rows"]) == 2
    [taken] = [row for row in shown["rows"] if row["flags"]]
    assert [note.holds_back for note in taken["flags"]] == [False]
    assert [n for _reason, n in shown["left"]] == [1, 1]
    waiting.evidence_versions.all().delete()  # of what was not measured it takes nothing
    shown = preview(rosa, waiting)
    assert (len(shown["rows"]), sorted(n for _reason, n in shown["left"])) == (0, [1, 1, 2])


def test_the_queue_marks_what_the_rule_would_leave(rosa, waiting):
    answer = rosa.get(reverse("console:review", args=[waiting.slug]))
    assert answer.content.decode().count("⚑") == 2
    held = {row.assignment.worker.worker_id for row in answer.context["queue"] if row.is_held_back}
    assert held == {"A1", "A3"}
    [shared] = [row for row in answer.context["queue"] if row.assignment.worker.worker_id == "A2"]
    assert [note.holds_back for note in shared.flags] == [False]


def test_every_flag_of_a_worker_has_a_note(rosa, waiting):
    assignment = Assignment.objects.exclude(submission=None).first()
    version, annotator = waiting.evidence_versions.get(), assignment.submission.annotator
    AnnotatorFlag.objects.bulk_create(
        AnnotatorFlag(
            version=version, annotator=annotator, name=name, n=9, n_hits=5, expected=0.5, p_value=0
        )
        for name in FLAGS
    )
    page = rosa.get(reverse("console:review", args=["mine"]), {"assignment": assignment.pk})
    assert len({note.short for note in page.context["row"].flags}) >= len(FLAGS)


TIMES = {"seconds": 60, "active_seconds": 55}


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        (TIMES | {"events": [[2.0, "input"], [9.0, "seen", 2, 2]]}, "consistent"),
        (TIMES | {"events": [[9.0, "seen", 1, 2]]}, "unusual"),
        (TIMES, "unrecorded"),
        (TIMES | {"active_seconds": 95}, "contradictory"),
        (TIMES | {"active_seconds": 95, "is_simulated": True}, "simulated"),
        (TIMES | {"is_simulated": True, "has_unproved_mark": True}, "contradictory"),
    ],
)
def test_the_desk_shows_one_summary_of_the_effort(rosa, waiting, fields, level):
    assignment = Assignment.objects.exclude(submission=None).first()
    Submission.objects.filter(pk=assignment.submission_id).update(**fields)
    store_evidence(waiting)
    page = rosa.get(reverse("console:review", args=["mine"]), {"assignment": assignment.pk})
    assert page.context["effort"].level == level
    assert page.content.decode().count(f'data-effort="{level}"') == 1
    is_held = any(note.holds_back for note in page.context["row"].flags)
    assert is_held is (level == "contradictory")
    taken = {row["assignment"].pk for row in preview(rosa, waiting)["rows"]}
    assert (assignment.pk in taken) is not is_held
