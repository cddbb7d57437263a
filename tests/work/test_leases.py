import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from work.exceptions import LeaseLost
from work.execution import claim, heartbeat, run_job
from work.models import Job
from work.periodic import recover
from work.tasks import request_job, stop_job

pytestmark = pytest.mark.django_db(transaction=True)
State = Job.State


def look(*, last_seconds_ago=0.1):
    now = timezone.now()
    recover(now=now, last_at=now - timedelta(seconds=last_seconds_ago))


def lapse(job):
    Job.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(seconds=1))


@pytest.fixture
def running(kind):
    kind(lambda running: "", max_attempts=2)
    return claim(request_job(kind="job").pk)


@pytest.mark.slow
def test_a_job_that_is_silent_for_longer_than_its_lease_is_not_doubled(kind, settings):
    settings.WORK_LEASE_SECONDS = 0.6
    runs = []

    def silent(running):
        runs.append(running.token)
        for _ in range(6):
            time.sleep(0.3)
            look()
            assert run_job(running.job.pk) == "not queued"
        return "Done."

    kind(silent)
    assert run_job(request_job(kind="job").pk) == State.DONE
    assert len(runs) == 1


def test_without_its_heartbeat_the_same_job_would_be_taken_over(running, settings):
    lapse(running.job)
    look()
    job = Job.objects.get()
    assert (job.state, job.lease_token, job.leased_until) == (State.QUEUED, "", None)
    assert claim(job.pk).token != running.token


def test_a_worker_that_lost_its_lease_writes_nothing_more(running):
    lapse(running.job)
    look()
    second = claim(running.job.pk)
    with pytest.raises(LeaseLost), transaction.atomic():
        running.hold()
    running.finish(State.DONE, "by the first")
    running.requeue()
    with transaction.atomic():
        second.hold()
    second.finish(State.DONE, "by the second")
    assert Job.objects.get().message == "by the second"


def test_a_worker_learns_of_its_loss_at_its_next_step(running, settings):
    settings.WORK_LEASE_SECONDS = 0.6
    steps = running.progress("things")(range(100), 100)
    with heartbeat(running):
        next(steps)
        Job.objects.update(lease_token="another")
        time.sleep(0.5)
        with pytest.raises(LeaseLost):
            next(steps)


def test_holding_belongs_in_a_transaction(running):
    with pytest.raises(transaction.TransactionManagementError):
        running.hold()


def test_nobody_takes_over_a_job_whose_holder_is_writing(running):
    """Whatever its lease says: what is being written would come on top of the other's."""
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite nobody else writes meanwhile")
    lapse(running.job)

    def elsewhere():
        look()
        connection.close()

    with transaction.atomic():
        running.hold()
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join(20)
        assert not other.is_alive()
    assert Job.objects.get().state == State.RUNNING
    look()
    assert Job.objects.get().state == State.QUEUED


@pytest.mark.slow
def test_the_heart_beats_while_its_job_writes(running, settings):
    """A transaction longer than the lease does not hold up the heartbeat that keeps it."""
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite nobody else writes meanwhile")
    settings.WORK_LEASE_SECONDS = 0.6
    with heartbeat(running), transaction.atomic():
        running.hold()
        time.sleep(1)
        assert Job.objects.get().leased_until > timezone.now()


def test_a_look_that_comes_late_takes_nothing_over(running, settings):
    """Whatever held it up may have held up the heartbeats."""
    lapse(running.job)
    look(last_seconds_ago=settings.WORK_LEASE_SECONDS)
    recover(now=timezone.now(), last_at=None)
    assert Job.objects.get().state == State.RUNNING


def test_a_job_whose_process_ends_again_and_again_fails_with_a_reason(running):
    for _ in range(2):
        lapse(running.job)
        look()
        claim(running.job.pk)
    job = Job.objects.get()
    assert job.state == State.FAILED
    assert " 2 " in job.message


def test_a_stopped_job_whose_process_is_gone_is_stopped(running):
    stop_job(job=running.job)
    lapse(running.job)
    look()
    assert Job.objects.get().state == State.STOPPED
