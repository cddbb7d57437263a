"""What a study's Overview counts of work that somebody must look at, with links to decide."""

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
from tests.console.pages import words_of

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
    answer = browser.get(reverse("console:study", args=[study.slug]))
    return {one.message: one for one in answer.context["decisions"]}


def test_judgments_that_rejections_left_missing_are_offered_again(rosa, study, batch):
    rejected_assignment(Hit.objects.of(batch).first())
    one = decisions(rosa, study)[
        f"1 judgment of batch {batch.pk} is missing: its submission was rejected, and nobody is "
        "asked for another."
    ]
    assert one.url == reverse("console:batch-change", args=["mine", batch.pk, "repost"])
    assert "Offer what is missing again" in words_of(rosa.get(one.url).content.decode())


def test_what_is_offered_again_is_not_missing(rosa, study, batch):
    hit = Hit.objects.of(batch).first()
    rejected_assignment(hit)
    Hit.objects.filter(pk=hit.pk).update(max_assignments=3)
    assert not [message for message in decisions(rosa, study) if "is missing" in message]


def test_a_closed_batch_misses_nothing(rosa, study, batch):
    rejected_assignment(Hit.objects.of(batch).first())
    Batch.objects.update(closed_at=timezone.now())
    assert not [message for message in decisions(rosa, study) if "is missing" in message]


def test_expired_work_is_not_counted_as_rejected(rosa, study, batch):
    rejected_assignment(Hit.objects.of(batch).first())
    Batch.objects.update(expires_at=timezone.now())
    assert [message for message in decisions(rosa, study) if message.startswith("1 judgment of")]


def test_open_appeals_lead_to_the_rejected_work(rosa, study, batch):
    rejected = rejected_assignment(Hit.objects.of(batch).first())
    Appeal.objects.create(assignment=rejected, reason="I read it all.", appealed_at=timezone.now())
    one = decisions(rosa, study)["A worker asks you to look again at a rejection."]
    assert (one.tone, one.url) == (
        "error",
        reverse("console:review", args=["mine"]) + "?show=rejected",
    )
    page = rosa.get(reverse("console:batch", args=["mine", batch.pk])).content.decode()
    assert "1 appeal waits" in words_of(page)
    Appeal.objects.update(answer="We did.")
    assert not [message for message in decisions(rosa, study) if "look again" in message]
    page = rosa.get(reverse("console:batch", args=["mine", batch.pk])).content.decode()
    assert "See the rejected" in words_of(page)


def test_disputed_candidates_lead_to_adjudication(rosa, study):
    compute(study, AGREEMENT)
    AgreementVersion.objects.update(n_disputed=2)
    one = decisions(rosa, study)["2 candidates on which annotators disagree widely."]
    assert one.url == reverse("console:adjudication", args=["mine"])


def test_nobody_is_asked_for_what_they_may_not_decide(study, batch, signed_in, researcher):
    rejected = rejected_assignment(Hit.objects.of(batch).first())
    Appeal.objects.create(assignment=rejected, reason="I read it all.", appealed_at=timezone.now())
    carla = User.objects.create_user("carla")
    set_role(team=study.team, user=carla, role=Role.ANALYST, actor=researcher)
    messages = decisions(signed_in(carla), study)
    assert not [one for one in messages if "rejected" in one or "rejection" in one]
