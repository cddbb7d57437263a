from collections.abc import Callable
from datetime import timedelta

import pytest
from botocore.config import Config
from django.utils import timezone

from annotation.models import Submission
from annotation.study_facts import COLLECT_NEW, request_study_job
from hits import endpoints
from hits.changes import apply_changes, end_batch
from hits.collect import awaited_hits
from hits.models import Assignment, Batch, Connection, Hit
from tests.hits.work import hand_in, hit_on, published_batch
from work.execution import run_job
from work.models import Job
from work.tasks import request_job

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"alpha": 70, "beta": 20}


@pytest.mark.slow
def test_answers_are_collected_while_any_are_awaited(batch, look, ann, bob):
    for worker in (ann, bob):
        hand_in(worker, hit_on(batch, "d0"), VALUES)
    assert (look(), Submission.objects.count()) == (["done"], 2)
    # A marketplace is not asked again at once.
    run_job(request_job(kind="collect_all").pk)
    assert not Job.objects.of_kind(COLLECT_NEW).queued().exists()
    others = {hit_on(batch, "d1"), hit_on(batch, "d2")}
    assert set(awaited_hits(batch)) == others
    for worker in (ann, bob):
        for hit in others:
            hand_in(worker, hit, VALUES)
    assert (look(), Submission.objects.count()) == (["done"], 6)
    assert look() == []
    # What the marketplace approves by itself is noticed.
    delay = timedelta(seconds=batch.auto_approval_delay_seconds)
    Assignment.objects.update(submitted_at=timezone.now() - delay)
    assert awaited_hits(batch).count() == 3


@pytest.fixture
def batch(site, study, client):
    return published_batch(study, client, max_assignments=2)


@pytest.fixture
def look() -> Callable[[], list[str]]:
    def results() -> list[str]:
        Batch.objects.update(collected_at=timezone.now() - timedelta(hours=1))
        run_job(request_job(kind="collect_all").pk)
        queue = Job.objects.of_kind(COLLECT_NEW).queued().values_list("pk", flat=True)
        return [run_job(pk) for pk in list(queue)]

    return results


@pytest.mark.slow
def test_a_closed_batch_is_asked_for_once_more_and_then_never(batch, look, client, ann):
    hand_in(ann, hit_on(batch, "d0"), VALUES)
    end_batch(batch=batch, actor=None, is_closed=True)
    apply_changes(batch=Batch.objects.get(), client=client)
    assert look() == ["done"]
    assert Submission.objects.count() == 1
    assert list(Hit.objects.of(batch).values_list("n_answers", flat=True)) == [1, 0, 0]
    assert look() == []


def test_a_collection_that_failed_waits_before_it_is_tried_again(batch, look, settings):
    settings.MARKETPLACE_ACCESS_KEY_ID = ""
    assert look() == ["failed"]
    assert look() == []
    earlier = timezone.now() - timedelta(minutes=11)
    assert Connection.objects.get().problem
    Connection.objects.update(failed_at=earlier)
    Job.objects.of_kind(COLLECT_NEW).update(finished_at=earlier)
    assert look() == ["failed"]


def test_a_collection_outlasts_a_marketplace_that_is_away(batch, ann, settings, monkeypatch):
    monkeypatch.setattr(endpoints, "PATIENCE", Config(retries={"total_max_attempts": 1}))
    hand_in(ann, hit_on(batch, "d0"), VALUES)
    job = request_study_job(study=batch.study, kind=COLLECT_NEW)
    address = settings.MARKETPLACE_ENDPOINT_URL
    settings.MARKETPLACE_ENDPOINT_URL = "http://127.0.0.1:1/requester"
    assert run_job(job.pk) == "queued"
    settings.MARKETPLACE_ENDPOINT_URL = address
    assert run_job(job.pk) == "done"
    assert Submission.objects.count() == 1
