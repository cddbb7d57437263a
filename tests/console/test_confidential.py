import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import models, roles
from accounts.teams import create_team, set_role
from annotation import flags, study_facts
from annotation.access import give_to_team, set_study_role
from annotation.models import AnnotatorFlag, Submission
from hits.models import (
    Assignment,
    Batch,
    DraftDecision,
    Hit,
    RejectionReason,
    SharedDevice,
    WorkerNote,
)
from stats.quality import FLAGS
from tests.annotation.studies import rated_study
from tests.codes import field_codes
from tests.console.filled import add_assignment, add_batch
from work.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(researcher):
    study = rated_study("mine", owner=researcher)
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    return study


@pytest.fixture
def member(study, signed_in):
    def browser_of(role):
        user, _ = models.User.objects.get_or_create(username=f"the-{role}")
        set_role(team=study.team, user=user, role=role, actor=None)
        return signed_in(user)

    return browser_of


@pytest.fixture
def guest(study, signed_in):
    user = models.User.objects.create_user("guest")
    set_study_role(study=study, user=user, role=roles.Role.RESEARCHER, actor=None)
    return signed_in(user)


def words(browser, name, *arguments):
    return browser.get(reverse(f"console:{name}", args=arguments)).content.decode()


def test_pay_comments_notes_and_templates_are_for_those_who_may_see_them(study, member, guest):
    batch = add_batch(study, n_published=3)
    for hit in batch.hits.all():
        add_assignment(hit)
    now = timezone.now()
    Assignment.objects.update(submitted_at=now, accepted_at=now - timedelta(minutes=1))
    Batch.objects.update(publishing_started_at=now)
    job = Job.objects.create(
        kind=study_facts.PUBLISH,
        arguments={"batch": batch.pk},
        queue="marketplace",
        subject=study_facts.subject_of(study),
        state=Job.State.DONE,
        message="36 assignments published, for $7.20.",
        finished_at=now,
    )
    pages = (("batch", (study.slug, batch.pk), "0.10"), ("work", (study.slug, job.pk), "$7.20"))
    pages += (("launch", (study.slug,), "$7.20"),)
    for role, is_shown in ((roles.Role.RESEARCHER, True), (roles.Role.ANALYST, False)):
        browser = member(role)
        for name, arguments, amount in pages:
            assert (amount in words(browser, name, *arguments)) == is_shown, (role, name)
    assert "0.10" in words(member(roles.Role.AUDITOR), "batch", study.slug, batch.pk)
    assert "0.10" not in words(member(roles.Role.ADJUDICATOR), "batch", study.slug, batch.pk)
    Submission.objects.update(comment="I am worker WID-77", justification="both fit")
    item = study.items.first()
    assert "WID-77" in words(member(roles.Role.RESEARCHER), "item", study.slug, item.pk)
    for role in (roles.Role.ANALYST, roles.Role.ADJUDICATOR, roles.Role.AUDITOR):
        page = words(member(role), "item", study.slug, item.pk)
        assert "WID-77" not in page
        assert "both fit" in page
    assignment = add_assignment(add_batch(study, n_published=3, round=2).hits.first())
    WorkerNote.objects.create(team=study.team, worker=assignment.worker, text="Copies reasons.")
    where = f"?assignment={assignment.pk}"
    desk = reverse("console:review", args=[study.slug])
    assert "Copies reasons." in member(roles.Role.RESEARCHER).get(desk + where).content.decode()
    assert "Copies reasons." not in guest.get(desk + where).content.decode()
    mine = WorkerNote.objects.create(
        team=study.team,
        worker=assignment.worker,
        text="Writes to us.",
        author=models.User.objects.get(username="guest"),
    )
    assert mine.text in guest.get(desk + where).content.decode()
    reason = RejectionReason.objects.create(team=study.team, title="Copied", text="It is copied.")
    where = reverse("console:review-reason-delete", args=[study.slug, reason.pk])
    assert guest.post(where).status_code == 403
    assert "review/reasons/" in words(guest, "review-reasons", study.slug)
    assert where not in words(guest, "review-reasons", study.slug)
    assert where in words(member(roles.Role.RESEARCHER), "review-reasons", study.slug)
    assert member(roles.Role.MANAGER).post(where).status_code == 302
    assert models.AuditEntry.objects.filter(action="reason.delete", subject="Copied").count() == 1


# Who opens the review desk sees who the workers are.


@pytest.fixture
def cookie_name(study):
    return f"desk-{study.pk}"


def n_openings():
    return models.AuditEntry.objects.filter(action="workers.view").count()


def n_statements(client):
    with CaptureQueriesContext(connection) as statements:
        assert client.get(reverse("console:review", args=["mine"])).status_code == 200
    return len(statements)


@pytest.mark.usefixtures("_immediate_tasks")
def test_the_opening_of_the_desk_is_in_the_audit_log_once(cookie_name, rosa):
    for _ in range(3):
        later = n_statements(rosa)
    assert n_openings() == 1
    cookie = rosa.cookies[cookie_name]
    assert cookie["path"] == reverse("console:review", args=["mine"])
    assert (cookie["max-age"], cookie["samesite"], bool(cookie["httponly"])) == (1800, "Lax", True)
    del rosa.cookies[cookie_name]
    first = n_statements(rosa)
    assert n_openings() == 2
    assert first - later == 3, "the end of the log, the entry, the new end"


@pytest.mark.usefixtures("_immediate_tasks")
def test_an_opening_is_of_one_session_and_half_an_hour(cookie_name, rosa, monkeypatch):
    n_statements(rosa)
    elsewhere = Client()
    elsewhere.force_login(models.User.objects.get(username="rosa"))
    elsewhere.cookies[cookie_name] = rosa.cookies[cookie_name].value
    n_statements(elsewhere)
    assert n_openings() == 2
    late = time.time() + 1801
    monkeypatch.setattr("django.core.signing.time.time", lambda: late)
    n_statements(rosa)
    assert n_openings() == 3


# The review desk's rules: what they take, what they leave and why.


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
    flags.store_evidence(study)
    return study


def preview(browser, study):
    query = {"rule": "approve-unflagged", "hours": "0"}
    return browser.get(reverse("console:review-rules", args=[study.slug]), query).context


def test_the_desk_and_its_rule_show_flags_that_hold_nothing_back_and_what_it_leaves(rosa, waiting):
    answer = rosa.get(reverse("console:review", args=[waiting.slug]))
    assert answer.content.decode().count("⚑") == 2
    held = {row.assignment.worker.worker_id for row in answer.context["queue"] if row.is_held_back}
    assert held == {"A1", "A3"}
    [shared] = [row for row in answer.context["queue"] if row.assignment.worker.worker_id == "A2"]
    assert [note.holds_back for note in shared.flags] == [False]
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
    shown = preview(rosa, waiting)
    assert len(shown["rows"]) == 2
    [taken] = [row for row in shown["rows"] if row["flags"]]
    assert [note.holds_back for note in taken["flags"]] == [False]
    assert [n for _reason, n in shown["left"]] == [1, 1]
    flags.list_evidence(waiting).delete()  # of what was not measured it takes nothing
    shown = preview(rosa, waiting)
    assert (len(shown["rows"]), sorted(n for _reason, n in shown["left"])) == (0, [1, 1, 2])


def test_what_could_not_be_read_is_decided_too_and_every_flag_has_a_note(rosa, waiting, researcher):
    assignment = Assignment.objects.exclude(submission=None).first()
    version, annotator = flags.list_evidence(waiting).get(), assignment.submission.annotator
    AnnotatorFlag.objects.bulk_create(
        AnnotatorFlag(
            version=version, annotator=annotator, name=name, n=9, n_hits=5, expected=0.5, p_value=0
        )
        for name in FLAGS
    )
    page = rosa.get(reverse("console:review", args=["mine"]), {"assignment": assignment.pk})
    assert len({note.short for note in page.context["row"].flags}) >= len(FLAGS)
    give_to_team(study=waiting, team=create_team(name="Lab", owner=researcher), actor=researcher)
    unread = Assignment.objects.exclude(problem="").get()
    desk = reverse("console:review", args=["mine"])
    page = rosa.get(desk, {"assignment": unread.pk}).content.decode()
    assert "It was cut short." in page
    decision = {"action": "approve", "text": "", "show": "waiting"}
    rosa.post(reverse("console:review-draft", args=["mine", unread.pk]), decision)
    assert DraftDecision.objects.get().assignment == unread
    where = reverse("console:review-rules", args=["mine"])
    bonus = {"rule": "bonus-workers", "amount_usd": "1", "text": "x"}
    for query, field in (
        ({"rule": "approve-unflagged", "hours": "99999999999999999999"}, "hours"),
        ({"rule": "reject-fast", "divisor": "1e300", "text": "Too fast."}, "divisor"),
        (bonus | {"least_approved": "9" * 20}, "least_approved"),
    ):
        answer = rosa.get(where, query)
        assert answer.status_code == 200
        assert field_codes(answer.context["form"]) == {field: ["max_value"]}


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
    flags.store_evidence(waiting)
    page = rosa.get(reverse("console:review", args=["mine"]), {"assignment": assignment.pk})
    assert page.context["effort"].level == level
    assert page.content.decode().count(f'data-effort="{level}"') == 1
    is_held = any(note.holds_back for note in page.context["row"].flags)
    assert is_held is (level == "contradictory")
    taken = {row["assignment"].pk for row in preview(rosa, waiting)["rows"]}
    assert (assignment.pk in taken) is not is_held
