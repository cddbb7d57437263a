import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import structlog
from django import db
from django.contrib.auth import get_user_model
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from work import exceptions, periodic, workers
from work.execution import claim, heartbeat, job_in_turn, run_in_turn, run_job
from work.models import Job
from work.registry import INTERACTIVE, SCORING
from work.tasks import request_job, resume_job, stop_job, waiting_ids

pytestmark = pytest.mark.django_db(transaction=True)

State = Job.State


def look(later=timedelta(), *, last_seconds_ago=0.1):
    """What the periodic recovery does, that much later."""
    now = timezone.now() + later
    periodic.recover(now=now, last_at=now - timedelta(seconds=last_seconds_ago))


def state_of(job):
    job.refresh_from_db()
    return job.state


@pytest.mark.parametrize("queue", [INTERACTIVE, SCORING])
def test_a_job_that_waits_for_another_lets_it_go_first(kind, work_off, queue):
    """One worker does the jobs of all queues, of which the waiting job's comes first."""
    done, n_looks = [], []

    def wait(running):
        n_looks.append(1)
        if not done and len(n_looks) < 10:
            raise exceptions.JobWaiting
        return "It was there." if done else "It was waited for in vain."

    kind(wait, max_attempts=1)
    kind(lambda running: done.append(1) or "Done.", name="other", queue=queue)
    job = request_job(kind="job")
    request_job(kind="other")
    work_off()
    assert (state_of(job), job.message, job.attempts) == (State.DONE, "It was there.", 1)


def test_the_same_job_is_not_doubled_while_it_is_unfinished(kind, work_off):
    kind(lambda running: "")

    def request(subject, name):
        return request_job(kind="job", subject=subject, arguments={"names": [name]})

    first = request("a", "x")
    assert request("a", "x") == first
    assert len({first, request("b", "x"), request("a", "y")}) == 3
    work_off()
    assert request("a", "x") != first


def test_many_who_request_the_same_at_once_get_one_job(kind, backend):
    kind(lambda running: "")
    barrier = threading.Barrier(6)

    def request(n):
        try:
            barrier.wait()
            return request_job(kind="job", arguments={"same": True}).pk
        finally:
            db.connection.close()

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
        with db.transaction.atomic():
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
    with db.transaction.atomic():
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


def test_an_unexpected_error_is_tried_again_later_and_then_given_up(kind, work_off, settings):
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
            raise exceptions.JobPostponed("In use.")
        return "Scored."

    kind(wait)
    job = request_job(kind="job")
    work_off()
    assert (state_of(job), job.message) == (State.QUEUED, "In use.")
    Job.objects.update(run_after=timezone.now())
    look()
    work_off()
    assert (state_of(job), job.message) == (State.DONE, "Scored.")


def test_a_running_job_that_is_stopped_ends_at_a_step_and_is_resumed(kind, work_off, settings):
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
    assert (state_of(job), job.message) == (State.STOPPED, str(exceptions.JobStopped()))
    assert 3 <= len(done) < 400
    resumed = True
    assert resume_job(job=job) == job
    work_off()
    assert ((state_of(job), job.message), done) == ((State.DONE, "All done."), list(range(400)))


LASTING = (db.DataError, db.ProgrammingError, db.NotSupportedError)


@pytest.mark.parametrize("error", [*LASTING, db.OperationalError, db.IntegrityError])
def test_what_the_database_cannot_take_fails_at_once_and_one_away_is_asked(kind, work_off, error):
    def store(running):
        raise error("value too long")

    kind(store, max_attempts=3)
    job = request_job(kind="job")
    work_off()
    assert state_of(job) == (State.FAILED if error in LASTING else State.QUEUED)
    assert (job.attempts, "too long" in job.message) == (1, False)
    assert error not in LASTING or error.__name__ in job.message


def test_a_job_that_breaks_off_after_it_was_stopped_is_not_tried_again(kind, work_off):
    def break_off(running):
        stop_job(job=running.job)
        raise OSError("the line was cut")

    kind(break_off)
    job = request_job(kind="job")
    work_off()
    assert (state_of(job), job.message) == (State.STOPPED, str(exceptions.JobStopped()))


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


def test_what_is_stopped_before_it_began_never_begins_and_is_resumed_as_a_new_one(kind, work_off):
    kind(lambda running: "")
    old = request_job(kind="job")
    stop_job(job=old)
    work_off()
    assert ((state_of(old), old.attempts), run_job(old.pk)) == ((State.STOPPED, 0), "not queued")
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
        with db.transaction.atomic():
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
    workers.Worker([INTERACTIVE]).run(until_empty=True)
    assert (state_of(waiting), state_of(page)) == (State.QUEUED, State.DONE)
    workers.Worker([SCORING]).run(until_empty=True)
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
    assert (requested.message, requested.subject) == ("job requested", "study:7")
    assert requested.job == job.pk
    assert context == {"job": job.pk, "kind": "job", "subject": "study:7"}
    assert (ended.message, ended.state, ended.attempt) == ("job", "done", 1)
    assert ended.duration_seconds >= 0


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


def test_a_worker_without_heartbeat_loses_its_lease_and_writes_nothing_more(running):
    with pytest.raises(db.transaction.TransactionManagementError):
        running.hold()
    lapse(running.job)
    look()
    job = Job.objects.get()
    assert (job.state, job.lease_token, job.leased_until) == (State.QUEUED, "", None)
    second = claim(job.pk)
    assert second.token != running.token
    with pytest.raises(exceptions.LeaseLost), db.transaction.atomic():
        running.hold()
    running.finish(State.DONE, "by the first")
    running.requeue()
    with db.transaction.atomic():
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
        with pytest.raises(exceptions.LeaseLost):
            next(steps)


def test_nobody_takes_over_a_job_whose_holder_is_writing(running):
    """Whatever its lease says: what is being written would come on top of the other's."""
    if db.connection.vendor != "postgresql":
        pytest.skip("on SQLite nobody else writes meanwhile")
    lapse(running.job)

    def elsewhere():
        look()
        db.connection.close()

    with db.transaction.atomic():
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
    if db.connection.vendor != "postgresql":
        pytest.skip("on SQLite nobody else writes meanwhile")
    settings.WORK_LEASE_SECONDS = 0.6
    with heartbeat(running), db.transaction.atomic():
        running.hold()
        time.sleep(1)
        assert Job.objects.get().leased_until > timezone.now()


def test_a_look_that_comes_late_takes_nothing_over(running, settings):
    """Whatever held it up may have held up the heartbeats."""
    lapse(running.job)
    look(last_seconds_ago=settings.WORK_LEASE_SECONDS)
    periodic.recover(now=timezone.now(), last_at=None)
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


@pytest.fixture
def people():
    users = get_user_model().objects
    return [users.create_user(username=name, password="") for name in ("ada", "bob", "cy")]


@pytest.fixture
def done(kind):
    """What was done, in its order."""
    order = []
    kind(lambda running: order.append(running.arguments["name"]) or "Done.")
    return order


def request(name, person=None):
    return request_job(kind="job", arguments={"name": name}, requested_by=person)


def test_one_persons_many_jobs_hold_up_no_other(done, people, work_off):
    ada, bob, cy = people
    for n in range(1, 6):
        request(f"a{n}", ada)
    for name, person in (("b1", bob), ("b2", bob), ("c1", cy), ("site", None)):
        request(name, person)
    work_off()
    assert done == ["a1", "b1", "c1", "site", "a2", "b2", "a3", "a4", "a5"]
    assert set(Job.objects.values_list("state", flat=True)) == {Job.State.DONE}
    assert waiting_ids(INTERACTIVE) == set()


def test_who_comes_later_has_the_next_turn_but_one(done, people, work_off):
    """Also where whoever was begun last has the greatest key."""
    ada, bob, _ = people
    for n in range(5):
        request(f"b{n}", bob)
    run_in_turn(Job.objects.order_by("pk").first().pk)
    request("a", ada)
    work_off()
    assert done == ["b0", "a", "b1", "b2", "b3", "b4"]


def test_each_job_that_waits_keeps_a_message(done, people, backend):
    """Recovery would send another one for a job whose message was taken for someone else's."""
    ada, bob, _ = people
    jobs = [request(f"a{n}", ada) for n in range(3)] + [request("b0", bob)]
    run_job(request("earlier", ada).pk)
    # a worker takes the first message, of a0, off the queue and does b0
    run_in_turn(jobs[0].pk)
    assert done == ["earlier", "b0"]
    waiting = Job.objects.queued().order_by("pk")
    assert [job.task_id for job in waiting] == [jobs[3].task_id, jobs[1].task_id, jobs[2].task_id]
    n_messages = len(waiting_ids(INTERACTIVE))
    look(later=timedelta(minutes=1))
    assert len(waiting_ids(INTERACTIVE)) == n_messages


def test_of_two_peoples_messages_each_is_waited_for_by_one_job(done, people, backend):
    """Also once the messages come whose jobs were done for earlier ones."""
    ada, bob, _ = people
    jobs = [request(f"a{n}", ada) for n in range(8)] + [request(f"b{n}", bob) for n in range(4)]
    messages = [job.task_id for job in jobs]
    for n_taken, job in enumerate(jobs, start=1):
        assert run_in_turn(job.pk) == "done"
        waited_for = Job.objects.queued().values_list("task_id", flat=True)
        assert sorted(waited_for) == sorted(messages[n_taken:])
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "a4", "a5", "a6", "a7"]


def test_a_message_begins_no_attempt_before_its_time(done, people, backend):
    """It is of a job that was done for another message, failed, and waits for another attempt."""
    job = request("late", people[0])
    Job.objects.update(run_after=timezone.now() + timedelta(minutes=2))
    assert (run_in_turn(job.pk), done) == ("not queued", [])
    Job.objects.update(run_after=timezone.now())
    assert run_in_turn(job.pk) == "done"


def test_a_message_of_a_job_that_is_done_or_stopped_does_what_waits(done, people, backend):
    ada, bob, _ = people
    over, stopped, waits = request("over", ada), request("stopped", bob), request("waits", ada)
    run_job(over.pk)
    stop_job(job=stopped)
    assert (run_in_turn(over.pk), done) == ("done", ["over", "waits"])
    assert run_in_turn(stopped.pk) == run_in_turn(waits.pk) == run_in_turn(0) == "not queued"


def test_turns_are_of_one_queue_and_of_jobs_that_are_due(done, kind, people, backend):
    ada, bob, cy = people
    kind(lambda running: done.append("scored") or "Done.", name="score", queue=SCORING)
    scored = request_job(kind="score", requested_by=ada)
    late, due = request("late", bob), request("due", cy)
    Job.objects.filter(pk=late.pk).update(run_after=timezone.now() + timedelta(minutes=2))
    assert job_in_turn(late.pk) == job_in_turn(due.pk) == due.pk
    run_in_turn(late.pk)
    assert done == ["due"]
    run_in_turn(scored.pk)
    assert done == ["due", "scored"]


def test_a_turn_takes_as_many_statements_whoever_waits(done, people, backend):
    def n_statements(job):
        with CaptureQueriesContext(db.connection) as queries:
            run_in_turn(job.pk)
        return len(queries)

    few = n_statements(request("alone", people[0]))
    jobs = [request(f"{person}{n}", person) for n in range(30) for person in people]
    assert n_statements(jobs[0]) <= few + 1
