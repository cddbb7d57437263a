import os
import signal
import threading
import time
from datetime import timedelta

import pytest
from django.core.exceptions import SuspiciousOperation
from django.db import connection
from django.utils import timezone
from django_tasks import task_backends
from django_tasks_db.models import DBTaskResult

from work import execution, models, registry, tasks, workers

pytestmark = pytest.mark.django_db(transaction=True)
State = models.Job.State
WAIT = 30.0


@pytest.fixture
def signals():
    """Puts back what a worker installed."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def working(backend):
    """A worker in a thread of its own."""
    worker = workers.Worker([registry.INTERACTIVE])

    def run():
        worker.run()
        connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield worker
    worker.is_stopping = True
    thread.join(WAIT)
    assert not thread.is_alive()


@pytest.mark.parametrize("backend", ["rq"], indirect=True)
def test_a_message_that_a_killed_worker_had_taken_is_deleted_in_time(backend):
    """Killed between taking it off the queue and deleting it, it is in no queue for ever. The
    database's own messages: test_periodic.py."""
    rq = task_backends["default"]
    jobs = [tasks.request_job(kind="clean_up"), tasks.request_job(kind="sweep_marketplace")]
    taken, waiting = (rq.queue(job.queue) for job in jobs)
    rq.connection.lrem(taken.key, 1, taken.get_job_ids()[0])
    assert rq.delete_taken(registry.QUEUES, before=timezone.now() - timedelta(minutes=1)) == 0
    assert rq.delete_taken(registry.QUEUES, before=timezone.now() + timedelta(minutes=1)) == 1
    assert rq.delete_taken(registry.QUEUES, before=timezone.now() + timedelta(minutes=1)) == 0
    assert [message.id for message in waiting.get_jobs()] == waiting.get_job_ids() != []


def wait_for_state(job, state):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        job.refresh_from_db()
        if job.state == state:
            return
        time.sleep(0.05)
    raise AssertionError(f"The job is {job.state}: {job.message}")


@pytest.mark.usefixtures("signals")
def test_a_worker_that_is_asked_to_end_gives_its_job_back(kind, backend):
    runs = []

    def run(running):
        runs.append(running)
        if len(runs) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(WAIT)
        return "Done."

    kind(run)
    job, waiting = tasks.request_job(kind="job"), tasks.request_job(kind="job", arguments={"n": 2})
    worker = workers.Worker([registry.INTERACTIVE])
    worker.install_signals()
    worker.run()
    job.refresh_from_db()
    assert (job.state, job.attempts, job.lease_token) == (State.QUEUED, 0, "")
    assert (len(runs), execution.current) == (1, [])
    assert tasks.waiting_ids(registry.INTERACTIVE) == {job.task_id, waiting.task_id}
    workers.Worker([registry.INTERACTIVE]).run(until_empty=True)
    job.refresh_from_db()
    assert (job.state, job.attempts, job.message) == (State.DONE, 1, "Done.")


@pytest.mark.slow
def test_a_worker_outlives_a_database_that_fails_for_a_while(kind, backend, working):
    kind(lambda running: "")
    wait_for_state(tasks.request_job(kind="job", arguments={"n": 1}), State.DONE)
    wait_for_state(tasks.request_job(kind="job", arguments={"n": 2}), State.DONE)
    tables = (models.Job._meta.db_table, DBTaskResult._meta.db_table)
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} RENAME TO away_{table}")
        time.sleep(1.5)
        for table in tables:
            cursor.execute(f"ALTER TABLE away_{table} RENAME TO {table}")
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
    wait_for_state(tasks.request_job(kind="job", arguments={"n": 3}), State.DONE)


@pytest.mark.parametrize("backend", ["rq"], indirect=True)
def test_a_message_that_names_no_task_is_not_run(kind, backend):
    """The library of the database's queue checks that itself."""
    task_backends["default"].queue(registry.INTERACTIVE).enqueue_call("os.getpid", result_ttl=0)
    with pytest.raises(SuspiciousOperation):
        workers.Worker([registry.INTERACTIVE]).run(until_empty=True)
