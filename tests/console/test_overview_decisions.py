"""What a study's Overview counts of work that somebody must look at, with links to decide."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team
from annotation.models import AgreementVersion
from console.results import AGREEMENT, compute
from hits.models import Appeal, Assignment, Batch, Hit
from tests.annotation.studies import rate, rated_study
from tests.console.filled import add_assignment, add_batch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher):
    study = rated_study("mine", owner=researcher)
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    return study


@pytest.fixture
def batch(study):
    batch = add_batch(study, n_published=2, max_assignments=2)
    Batch.objects.update(publishing_started_at=timezone.now())
    return batch


def rejected_assignment(hit, worker="A1WORKER"):
    assignment = add_assignment(hit, worker)
    submission = rate(hit.batch.study, worker, hit.item.key, {"alpha": 1, "beta": 2}, round=2)
    Assignment.objects.filter(pk=assignment.pk).update(
        status=Assignment.Status.REJECTED, submission=submission
    )
    return assignment


def decisions(browser, study):
    """What the overview asks for, by the page where it is decided."""
    answer = browser.get(reverse("console:study", args=[study.slug]))
    return {one.url: one for one in answer.context["decisions"]}


def repost_of(batch):
    return reverse("console:batch-change", args=["mine", batch.pk, "repost"])


APPEALS = "/studies/mine/review/?show=rejected"


def test_judgments_that_rejections_left_missing_are_offered_again(rosa, study, batch):
    hit = Hit.objects.of(batch).first()
    rejected_assignment(hit)
    message = decisions(rosa, study)[repost_of(batch)].message
    assert re.findall(r"\d+", message) == ["1", str(batch.pk)]
    assert rosa.get(repost_of(batch)).status_code == 200
    Hit.objects.filter(pk=hit.pk).update(max_assignments=3)  # it is offered again
    assert repost_of(batch) not in decisions(rosa, study)


def test_a_closed_batch_misses_nothing_and_expired_work_is_not_counted(rosa, study, batch):
    rejected_assignment(Hit.objects.of(batch).first())
    Batch.objects.update(expires_at=timezone.now())
    message = decisions(rosa, study)[repost_of(batch)].message
    assert re.findall(r"\d+", message) == ["1", str(batch.pk)]
    Batch.objects.update(closed_at=timezone.now())
    assert repost_of(batch) not in decisions(rosa, study)


def test_open_appeals_lead_to_the_rejected_work(rosa, study, batch):
    rejected = rejected_assignment(Hit.objects.of(batch).first())
    Appeal.objects.create(assignment=rejected, reason="I read it all.", appealed_at=timezone.now())
    assert decisions(rosa, study)[APPEALS].tone == "error"
    where = reverse("console:batch", args=["mine", batch.pk])
    assert rosa.get(where).content.decode().count(APPEALS) == 1
    Appeal.objects.update(answer="We did.")
    assert APPEALS not in decisions(rosa, study)
    assert APPEALS in rosa.get(where).content.decode()


def test_disputed_candidates_lead_to_adjudication(rosa, study):
    compute(study, AGREEMENT)
    AgreementVersion.objects.update(n_disputed=2)
    message = decisions(rosa, study)[reverse("console:adjudication", args=["mine"])].message
    assert re.findall(r"\d+", message) == ["2"]


def test_nobody_is_asked_for_what_they_may_not_decide(study, batch, signed_in, researcher):
    rejected = rejected_assignment(Hit.objects.of(batch).first())
    Appeal.objects.create(assignment=rejected, reason="I read it all.", appealed_at=timezone.now())
    carla = User.objects.create_user("carla")
    set_role(team=study.team, user=carla, role=Role.ANALYST, actor=researcher)
    assert not {APPEALS, repost_of(batch)} & {*decisions(signed_in(carla), study)}
