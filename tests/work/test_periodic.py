import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Q
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from tests.codes import refused_naming
from work import exceptions, execution, registry, tasks
from work.jobs import clean_up
from work.models import Job, PeriodicRun
from work.periodic import take_turn, tick

pytestmark = pytest.mark.django_db(transaction=True)


def test_fifty_ticks_at_once_request_a_periodic_job_once(kind, backend):
    kind(lambda running: "", every_seconds=60)
    start = timezone.now()
    barrier = threading.Barrier(5)

    def ticks(n):
        try:
            barrier.wait()
            for _ in range(10):
                tick(start + timedelta(seconds=1))
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(ticks, range(5)))
    [job] = Job.objects.all()
    assert execution.run_job(job.pk) == "done"
    tick(start + timedelta(seconds=59))
    assert Job.objects.count() == 1
    tick(start + timedelta(seconds=62))
    assert Job.objects.count() == 2


def test_a_turn_is_taken_by_one_process(db):
    now, every = timezone.now(), timedelta(seconds=60)
    PeriodicRun.objects.create(name="sweep", next_at=now)
    assert take_turn("sweep", every, now) == (None,)
    assert take_turn("sweep", every, now) is None
    assert take_turn("sweep", every, now + every) == (now,)


def test_what_is_due_by_time_goes_on_after_the_clock_was_set_back(kind, backend, work_off):
    kind(lambda running: "", every_seconds=60)
    now = timezone.now()
    tick(now + timedelta(days=1))
    work_off()
    tick(now)
    tick(now + timedelta(seconds=5))
    assert Job.objects.count() == 2


@pytest.mark.parametrize("attempt", ["taken by a process that is gone", "put off", "announced"])
def test_no_job_waits_for_a_clock_that_was_set_back(kind, backend, work_off, attempt):
    kind(lambda running: "")
    now = timezone.now()
    tomorrow = now + timedelta(days=1)
    job = tasks.request_job(kind="job")
    tick(tomorrow)
    work_off()
    lost = {"task_id": "lost", "enqueued_at": tomorrow, "created_at": tomorrow}
    changes = {
        "taken by a process that is gone": {"state": Job.State.RUNNING, "leased_until": tomorrow},
        "put off": {"state": Job.State.QUEUED, "enqueued_at": None, "run_after": tomorrow},
        "announced": {"state": Job.State.QUEUED, "attempts": 0},
    }
    Job.objects.filter(pk=job.pk).update(**{"max_attempts": 5} | lost | changes[attempt])
    for seconds in (0, 6, 12):
        tick(now + timedelta(seconds=seconds))
    work_off()
    job.refresh_from_db()
    assert job.state == Job.State.DONE


def test_a_lease_survives_that_the_clock_is_set_back(kind, backend):
    kind(lambda running: "")
    now = timezone.now()
    tick(now + timedelta(days=1))
    job = tasks.request_job(kind="job")
    running = execution.claim(job.pk)
    Job.objects.filter(pk=job.pk).update(leased_until=now + timedelta(days=1))
    tick(now)
    running.beat()
    tick(now + timedelta(seconds=6))
    assert not running.is_lost


def test_a_turn_of_which_nothing_came_is_not_used_up(kind, backend):
    """The process was killed between taking the turn and requesting the job."""
    kind(lambda running: "", every_seconds=60)
    tick()
    Job.objects.all().delete()
    before = PeriodicRun.objects.get(name="job").next_at
    # Without its handler, the request breaks off after the turn was taken.
    object.__setattr__(registry.job_kinds()["job"], "name", "nobody")
    PeriodicRun.objects.create(name="nobody", next_at=before)
    with refused_naming(exceptions.JobKindUnknown, "'nobody'"):
        tick(before + timedelta(seconds=1))
    assert PeriodicRun.objects.get(name="nobody").next_at == before


def test_jobs_that_are_the_only_record_of_what_they_did_stay(kind, settings):
    def handler(_running):
        return ""

    kind(handler, name="pay", kept=Q(arguments__action="bonus"))
    kind(handler, name="score")
    kind(clean_up, name="clean_up")
    old = timezone.now() - timedelta(days=settings.WORK_KEEP_DAYS + 1)

    def job(name, **arguments):
        n = Job.objects.count()
        facts = {"state": Job.State.DONE, "finished_at": old, "dedupe_key": str(n)}
        return Job.objects.create(kind=name, arguments=arguments, **facts)

    kept = job("pay", action="bonus")
    others = [job("pay", action="price"), job("pay"), job("score", action="bonus")]
    # A site may keep all records, for good.
    for keep_days, left in ((0, {kept, *others}), (settings.WORK_KEEP_DAYS, {kept})):
        settings.WORK_KEEP_DAYS = keep_days
        execution.run_job(tasks.request_job(kind="clean_up").pk)
        assert set(Job.objects.exclude(kind="clean_up")) == left


def test_old_jobs_messages_and_sessions_are_deleted(settings):
    now = timezone.now()
    old = now - timedelta(days=settings.WORK_KEEP_DAYS + 1)
    days = timedelta(days=2)

    def job(state, kind="score", **times):
        key = str(Job.objects.count())
        return Job.objects.create(kind=kind, state=state, dedupe_key=key, **times)

    recent = [job(Job.State.QUEUED), job(Job.State.RUNNING, leased_until=now)]
    recent += [job(Job.State.DONE, finished_at=now - days)]
    recent += [job(Job.State.FAILED, kind="clean_up", finished_at=now - days)]
    job(Job.State.DONE, finished_at=old)
    job(Job.State.STOPPED, finished_at=old)
    job(Job.State.DONE, kind="clean_up", finished_at=now - days)
    for status, key in (("READY", "a"), ("RUNNING", "b"), ("SUCCESSFUL", "c")):
        facts = {"args_kwargs": {}, "backend_name": "default", "run_after": now}
        DBTaskResult.objects.create(status=status, task_path=key, **facts)
    DBTaskResult.objects.update(enqueued_at=now - days)
    Session.objects.create(session_key="gone", session_data="", expire_date=now - days)
    Session.objects.create(session_key="here", session_data="", expire_date=now + days)
    cleaning = tasks.request_job(kind="clean_up")
    assert execution.run_job(cleaning.pk) == "done"
    cleaning.refresh_from_db()
    assert re.findall(r"\d+", cleaning.message) == ["3", "2"]
    assert set(Job.objects.all()) == {*recent, cleaning}
    assert DBTaskResult.objects.filter(task_path="a").exists()
    assert not DBTaskResult.objects.filter(task_path__in=["b", "c"]).exists()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["here"]
