"""What pages keep from roles: comments that name workers, money, and a team's own notes."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team, set_study_role
from annotation.models import Submission
from annotation.study_jobs import PUBLISH, subject_of
from hits.models import Assignment, Batch, RejectionReason, WorkerNote
from tests.annotation.studies import rated_study
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
    """The browser of a member of the team, by role."""

    def browser_of(role):
        user = User.objects.create_user(f"the-{role}")
        set_role(team=study.team, user=user, role=role, actor=None)
        return signed_in(user)

    return browser_of


@pytest.fixture
def guest(study, signed_in):
    """The browser of a researcher of this study alone."""
    user = User.objects.create_user("guest")
    set_study_role(study=study, user=user, role=Role.RESEARCHER, actor=None)
    return signed_in(user)


def words(browser, name, *arguments):
    return browser.get(reverse(f"console:{name}", args=arguments)).content.decode()


def test_a_comment_is_for_those_who_may_see_workers(study, member):
    Submission.objects.update(comment="I am worker WID-77", justification="both fit")
    item = study.items.first()
    assert "WID-77" in words(member(Role.RESEARCHER), "item", study.slug, item.pk)
    for role in (Role.ANALYST, Role.ADJUDICATOR, Role.AUDITOR):
        page = words(member(role), "item", study.slug, item.pk)
        assert "WID-77" not in page
        assert "both fit" in page


def test_pay_and_costs_are_for_those_who_may_see_money(study, member):
    batch = add_batch(study, n_published=3)
    for hit in batch.hits.all():
        add_assignment(hit)
    now = timezone.now()
    Assignment.objects.update(submitted_at=now, accepted_at=now - timedelta(minutes=1))
    Batch.objects.update(publishing_started_at=now)
    job = Job.objects.create(
        kind=PUBLISH,
        arguments={"batch": batch.pk},
        queue="marketplace",
        subject=subject_of(study),
        state=Job.State.DONE,
        message="36 assignments published, for $7.20.",
        finished_at=now,
    )
    pages = (("batch", (study.slug, batch.pk), "0.10"), ("work", (study.slug, job.pk), "$7.20"))
    pages += (("launch", (study.slug,), "$7.20"),)
    for role, is_shown in ((Role.RESEARCHER, True), (Role.ANALYST, False)):
        browser = member(role)
        for name, arguments, amount in pages:
            assert (amount in words(browser, name, *arguments)) == is_shown, (role, name)
    assert "0.10" in words(member(Role.AUDITOR), "batch", study.slug, batch.pk)
    assert "0.10" not in words(member(Role.ADJUDICATOR), "batch", study.slug, batch.pk)


def test_notes_on_a_worker_are_for_the_teams_reviewers(study, member, guest):
    assignment = add_assignment(add_batch(study, n_published=3).hits.first())
    WorkerNote.objects.create(team=study.team, worker=assignment.worker, text="Copies reasons.")
    where = f"?assignment={assignment.pk}"
    desk = reverse("console:review", args=[study.slug])
    assert "Copies reasons." in member(Role.RESEARCHER).get(desk + where).content.decode()
    assert "Copies reasons." not in guest.get(desk + where).content.decode()
    mine = WorkerNote.objects.create(
        team=study.team,
        worker=assignment.worker,
        text="Writes to us.",
        author=User.objects.get(username="guest"),
    )
    assert mine.text in guest.get(desk + where).content.decode()


def test_a_teams_templates_are_deleted_by_its_own_reviewers(study, member, guest):
    reason = RejectionReason.objects.create(team=study.team, title="Copied", text="It is copied.")
    where = reverse("console:review-reason-delete", args=[study.slug, reason.pk])
    assert guest.post(where).status_code == 403
    assert "review/reasons/" in words(guest, "review-reasons", study.slug)
    assert where not in words(guest, "review-reasons", study.slug)
    assert where in words(member(Role.RESEARCHER), "review-reasons", study.slug)
    assert member(Role.MANAGER).post(where).status_code == 302
    assert AuditEntry.objects.filter(action="reason.delete", subject="Copied").count() == 1
