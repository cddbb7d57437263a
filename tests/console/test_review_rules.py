"""The review desk's rules: what they take, what they leave and why, whatever somebody types."""

import pytest
from django.urls import reverse

from annotation.evidence_versions import store_evidence
from annotation.models import Submission
from hits.models import Assignment, Hit, SharedDevice
from tests.annotation.studies import rated_study
from tests.console.filled import add_assignment, add_batch
from tests.console.pages import words_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "query",
    [
        {"rule": "approve-unflagged", "hours": "99999999999999999999"},
        {"rule": "reject-fast", "divisor": "1e300", "text": "Too fast."},
        {"rule": "bonus-workers", "least_approved": "9" * 20, "amount_usd": "1", "text": "x"},
    ],
)
def test_numbers_beyond_reason_are_refused_at_their_field(rosa, researcher, query):
    study = rated_study("mine", owner=researcher)
    answer = rosa.get(reverse("console:review-rules", args=[study.slug]), query)
    assert answer.status_code == 200
    assert "less than or equal to" in answer.content.decode()


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
    page = answer.content.decode()
    assert f"In batch {shared.batch_id} the other is annotator {name}" in words_of(page)
    assert f'href="?show=waiting&amp;assignment={other.pk}"' in page


def test_the_rule_says_which_flags_hold_back_and_what_it_leaves(rosa, waiting):
    query = {"rule": "approve-unflagged", "hours": "0"}
    answer = rosa.get(reverse("console:review-rules", args=[waiting.slug]), query)
    text = words_of(answer.content.decode())
    assert "It takes 2 submissions" in text
    assert "“Same device” and “amended” hold nothing back" in text
    [taken] = [row for row in answer.context["rows"] if row["flags"]]
    assert [note.short for note in taken["flags"]] == ["same device"]
    assert taken["flags"][0].text.endswith("It holds no work back.")
    assert "It leaves 2 that wait as long: " in text
    assert sorted(answer.context["left"]) == [("flagged", 1), ("not read", 1)]


def test_what_was_not_measured_is_left_and_said_so(rosa, waiting):
    waiting.evidence_versions.all().delete()
    query = {"rule": "approve-unflagged", "hours": "0"}
    answer = rosa.get(reverse("console:review-rules", args=[waiting.slug]), query)
    text = words_of(answer.content.decode())
    assert "It takes 0 submissions" in text
    assert dict(answer.context["left"])["not measured yet"] == 2


def test_the_queue_marks_what_the_rule_would_leave(rosa, waiting):
    answer = rosa.get(reverse("console:review", args=[waiting.slug]))
    assert answer.content.decode().count("⚑") == 2
    held = {row.summary for row in answer.context["queue"] if row.is_held_back}
    assert held == {"flagged", "not read"}
    assert "same device" in {row.summary for row in answer.context["queue"]}
