import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import structlog
from django.db import (
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from tests.codes import refused_naming
from work.exceptions import JobKindUnknown, JobPostponed, JobStopped, JobWaiting
from work.execution import claim, run_job
from work.models import Job
from work.periodic import recover
from work.registry import INTERACTIVE, SCORING
from work.tasks import request_job, resume_job, stop_job, waiting_ids
from work.workers import Worker

pytestmark = pytest.mark.django_db(transaction=True)
State = Job.State


def look(later=timedelta()):
    """What the periodic recovery does, that much later."""
    now = timezone.now() + later
    recover(now=now, last_at=now - timedelta(seconds=1))


def state_of(job):
    job.refresh_from_db()
    return job.state


def test_a_requested_job_is_done_by_a_worker(kind, work_off):
    kind(lambda running: f"{running.arguments['n']} done.")
    job = request_job(kind="job", subject="study:1", arguments={"n": 3}, title="Three things")
    assert (job.state, job.title, waiting_ids(INTERACTIVE)) == (
        State.QUEUED,
        "Three things",
        {job.task_id},
    )
    work_off()
    assert state_of(job) == State.DONE
    assert (job.message, job.attempts, job.lease_token) == ("3 done.", 1, "")
    assert waiting_ids(INTERACTIVE) == set()


def test_a_job_that_waits_for_another_lets_it_go_first(kind, work_off):
    done = []

    def wait(running):
        if not done:
            raise JobWaiting
        return "It was there."

    kind(wait, max_attempts=1)
    kind(lambda running: done.append(1) or "Done.", name="other")
    job = request_job(kind="job")
    request_job(kind="other")
    work_off()
    assert (state_of(job), job.message, job.attempts) == (State.DONE, "It was there.", 1)


def test_a_job_that_waits_for_one_of_another_queue_lets_it_go_first(kind, work_off):
    """One worker does the jobs of all queues, of which the waiting job's comes first."""
    done, n_looks = [], []

    def wait(running):
        n_looks.append(1)
        if not done and len(n_looks) < 10:
            raise JobWaiting
        return "It was there." if done else "It was waited for in vain."

    kind(wait, max_attempts=1)
    kind(lambda running: done.append(1) or "Done.", name="other", queue=SCORING)
    job = request_job(kind="job")
    request_job(kind="other")
    work_off()
    assert (state_of(job), job.message) == (State.DONE, "It was there.")


def test_a_kind_that_no_app_does_is_refused(kind):
    kind(lambda running: "")
    with refused_naming(JobKindUnknown, "'dance'", "job"):
        request_job(kind="dance")


def test_the_same_job_is_not_doubled_while_it_is_unfinished(kind, work_off):
    kind(lambda running: "")
    first = request_job(kind="job", subject="a", arguments={"names": ["x"]})
    assert request_job(kind="job", subject="a", arguments={"names": ["x"]}) == first
    others = [
        request_job(kind="job", subject="b", arguments={"names": ["x"]}),
        request_job(kind="job", subject="a", arguments={"names": ["y"]}),
    ]
    assert len({first, *others}) == 3
    work_off()
    assert request_job(kind="job", subject="a", arguments={"names": ["x"]}) != first


def test_many_who_request_the_same_at_once_get_one_job(kind, backend):
    kind(lambda running: "")
    barrier = threading.Barrier(6)

    def request(n):
        try:
            barrier.wait()
            return request_job(kind="job", arguments={"same": True}).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(request, range(6)))) == 1
    assert len(waiting_ids(INTERACTIVE)) == Job.objects.count() == 1


def test_who_requests_a_job_that_is_being_stopped_gets_a_new_one(kind, work_off):
    kind(lambda running: "")
    stopping = request_job(kind="job")
    running = claim(stopping.pk)
    stop_job(job=stopping)
    anew = request_job(kind="job")
    assert anew != stopping
    assert request_job(kind="job") == anew
    running.finish(State.STOPPED, "")
    work_off()
    assert (state_of(stopping), state_of(anew)) == (State.STOPPED, State.DONE)


def test_a_job_of_a_transaction_that_is_rolled_back_never_was(kind, backend):
    kind(lambda running: "")

    def request():
        with transaction.atomic():
            request_job(kind="job")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        request()
    assert not Job.objects.exists()
    assert waiting_ids(INTERACTIVE) == set()


def test_a_job_whose_message_was_lost_is_enqueued_again(kind, backend, work_off, settings):
    """The row was committed, and the process died before the queue had it."""
    kind(lambda running: "")
    reachable = settings.REDIS_URL
    with transaction.atomic():
        job = request_job(kind="job")
        if backend == "rq":
            # The queue is asked at the commit, and does not answer.
            settings.REDIS_URL = "redis://127.0.0.1:1/0"
            settings.TASKS = dict(settings.TASKS)
    settings.REDIS_URL = reachable
    settings.TASKS = dict(settings.TASKS)
    DBTaskResult.objects.all().delete()
    work_off()
    assert state_of(job) == State.QUEUED
    assert request_job(kind="job") == job
    look()
    assert waiting_ids(INTERACTIVE) == set()
    for _ in range(2):
        look(later=timedelta(seconds=settings.WORK_GRACE_SECONDS + 1))
        assert len(waiting_ids(INTERACTIVE)) == 1
    work_off()
    assert (state_of(job), job.attempts) == (State.DONE, 1)


def test_a_message_too_many_does_no_harm(kind, work_off):
    runs = []
    kind(lambda running: runs.append(1) or "")
    job = request_job(kind="job")
    look(later=timedelta(minutes=1))
    Job.objects.update(task_id="lost", enqueued_at=timezone.now() - timedelta(minutes=1))
    look()
    assert len(waiting_ids(INTERACTIVE)) == 2
    work_off()
    assert (state_of(job), runs) == (State.DONE, [1])


def test_a_refusal_fails_at_once_in_its_own_words(kind, work_off):
    reason = "There are no candidates; import some first."

    def refuse(running):
        raise ValueError(reason)

    kind(refuse, refusals=(ValueError,))
    job = request_job(kind="job")
    work_off()
    assert (state_of(job), job.message, job.attempts) == (State.FAILED, reason, 1)


def test_an_unexpected_error_is_tried_again_later_and_later_and_then_given_up(
    kind, work_off, settings
):
    settings.WORK_RETRY_SECONDS = 10

    def fail(running):
        raise OSError("secret")

    kind(fail, max_attempts=3)
    job = request_job(kind="job")
    waits = []
    for _ in range(2):
        work_off()
        assert state_of(job) == State.QUEUED
        assert job.is_retrying
        waits.append(round((job.run_after - timezone.now()).total_seconds()))
        look(later=timedelta(seconds=waits[-1] - 2))
        assert waiting_ids(INTERACTIVE) == set()
        Job.objects.update(run_after=timezone.now())
        look()
    assert waits == [10, 20]
    work_off()
    assert state_of(job) == State.FAILED
    assert "OSError" in job.message
    assert "secret" not in job.message
    assert " 3 " in job.message


def test_a_job_whose_needs_are_in_use_is_postponed(kind, work_off):
    def wait(running):
        if running.job.attempts == 1:
            raise JobPostponed("In use.")
        return "Scored."

    kind(wait)
    job = request_job(kind="job")
    work_off()
    assert (state_of(job), job.message) == (State.QUEUED, "In use.")
    Job.objects.update(run_after=timezone.now())
    look()
    work_off()
    assert (state_of(job), job.message) == (State.DONE, "Scored.")


def test_a_job_that_waits_is_stopped_and_never_begins(kind, work_off):
    kind(lambda running: "")
    job = request_job(kind="job")
    stop_job(job=job)
    work_off()
    assert (state_of(job), job.attempts) == (State.STOPPED, 0)
    assert run_job(job.pk) == "not queued"


def test_a_running_job_that_is_stopped_ends_at_its_next_step_and_is_resumed(
    kind, work_off, settings
):
    done = []

    def steps(running):
        left = [n for n in range(400) if n not in done]
        for n in running.progress("things")(left, len(left)):
            done.append(n)
            if len(done) == 3:
                stop_job(job=running.job)
            # The heartbeat brings the request; each step is short beside it.
            threading.Event().wait(0.02 if len(done) >= 3 and not resumed else 0)
        return "All done."

    resumed = False
    kind(steps)
    settings.WORK_LEASE_SECONDS = 3
    job = request_job(kind="job")
    work_off()
    assert (state_of(job), job.message) == (State.STOPPED, str(JobStopped()))
    assert 3 <= len(done) < 400
    resumed = True
    assert resume_job(job=job) == job
    work_off()
    assert (state_of(job), job.message) == (State.DONE, "All done.")
    assert done == list(range(400))


@pytest.mark.parametrize("error", [DataError, ProgrammingError, NotSupportedError])
def test_what_the_database_cannot_take_fails_at_once(kind, work_off, error):
    def store(running):
        raise error("value too long")

    kind(store, max_attempts=3)
    job = request_job(kind="job")
    work_off()
    assert state_of(job) == State.FAILED
    assert job.attempts == 1
    assert error.__name__ in job.message
    assert "too long" not in job.message


@pytest.mark.parametrize("error", [OperationalError, IntegrityError])
def test_a_database_that_is_away_is_asked_again(kind, work_off, error):
    def store(running):
        raise error("away")

    kind(store, max_attempts=3)
    job = request_job(kind="job")
    work_off()
    assert state_of(job) == State.QUEUED
    assert "away" not in job.message


def test_a_job_that_breaks_off_after_it_was_stopped_is_not_tried_again(kind, work_off):
    def break_off(running):
        stop_job(job=running.job)
        raise OSError("the line was cut")

    kind(break_off)
    job = request_job(kind="job")
    work_off()
    assert (state_of(job), job.message) == (State.STOPPED, str(JobStopped()))


def test_a_job_that_is_given_back_while_it_is_stopped_stays_stopped(kind, work_off):
    """A request to stop that met the job running, and a worker that gave it back just then."""
    kind(lambda running: "Done.")
    job = request_job(kind="job")
    running = claim(job.pk)
    Job.objects.filter(pk=job.pk).unfinished().update(stop_requested=True)
    running.requeue()
    stop_job(job=job)
    work_off()
    assert (state_of(job), job.attempts) == (State.STOPPED, 1)


def test_resuming_what_was_requested_anew_joins_that(kind, work_off):
    kind(lambda running: "")
    old = request_job(kind="job")
    stop_job(job=old)
    new = request_job(kind="job")
    assert resume_job(job=old) == new
    assert state_of(old) == State.STOPPED
    work_off()
    assert resume_job(job=new).state in (State.QUEUED, State.DONE)


@pytest.mark.slow
def test_progress_is_followed_from_elsewhere(kind, work_off, settings):
    settings.WORK_LEASE_SECONDS = 3
    seen = []

    def steps(running):
        for n in running.progress("rouge1")(range(4), 8):
            if n == 2:
                threading.Event().wait(1.2)
                seen.append(Job.objects.get())
        return ""

    kind(steps)
    request_job(kind="job")
    work_off()
    [job] = seen
    assert (job.phase, job.n_done, job.n_total, job.state) == ("rouge1", 2, 8, State.RUNNING)
    assert job.seconds_left == pytest.approx(3 * (job.progress_at - job.started_at).total_seconds())


def test_a_job_that_completes_in_its_transaction_is_done_with_it_or_not_at_all(kind, work_off):
    def complete(running):
        with transaction.atomic():
            running.complete("Paid.")
            if running.job.attempts == 1:
                raise OSError
        return "Nothing more."

    kind(complete)
    job = request_job(kind="job")
    work_off()
    assert state_of(job) == State.QUEUED
    Job.objects.update(run_after=timezone.now())
    look()
    work_off()
    assert (state_of(job), job.message, job.attempts) == (State.DONE, "Paid.", 2)


def test_a_night_of_scoring_holds_up_no_page(kind, backend):
    kind(lambda running: "", name="score", queue=SCORING)
    kind(lambda running: "", name="page")
    waiting, page = request_job(kind="score"), request_job(kind="page")
    Worker([INTERACTIVE]).run(until_empty=True)
    assert (state_of(waiting), state_of(page)) == (State.QUEUED, State.DONE)
    Worker([SCORING]).run(until_empty=True)
    assert state_of(waiting) == State.DONE


def test_lines_of_a_job_lead_from_the_request_to_its_end(kind, work_off, caplog):
    def handler(running):
        logging.getLogger("annotation").info("halfway")
        context.update(structlog.contextvars.get_contextvars())
        return ""

    context = {}
    structlog.contextvars.clear_contextvars()
    kind(handler)
    with caplog.at_level(logging.INFO):
        job = request_job(kind="job", subject="study:7")
        work_off()
    requested, *_, ended = [line for line in caplog.records if line.name.startswith("work.")]
    assert (requested.message, requested.job, requested.subject) == (
        "job requested",
        job.pk,
        "study:7",
    )
    assert context == {"job": job.pk, "kind": "job", "subject": "study:7"}
    assert (ended.message, ended.state, ended.attempt) == ("job", "done", 1)
    assert ended.duration_seconds >= 0
