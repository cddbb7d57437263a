from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from work.execution import job_in_turn, run_in_turn, run_job
from work.models import Job
from work.periodic import recover
from work.registry import INTERACTIVE, SCORING
from work.tasks import request_job, stop_job, waiting_ids

pytestmark = pytest.mark.django_db(transaction=True)


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
    now = timezone.now() + timedelta(minutes=1)
    recover(now=now, last_at=now - timedelta(seconds=1))
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
    assert run_in_turn(job.pk) == "not queued"
    assert done == []
    Job.objects.update(run_after=timezone.now())
    assert run_in_turn(job.pk) == "done"


def test_a_message_of_a_job_that_is_done_or_stopped_does_what_waits(done, people, backend):
    ada, bob, _ = people
    over, stopped, waits = request("over", ada), request("stopped", bob), request("waits", ada)
    run_job(over.pk)
    stop_job(job=stopped)
    assert run_in_turn(over.pk) == "done"
    assert done == ["over", "waits"]
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
        with CaptureQueriesContext(connection) as queries:
            run_in_turn(job.pk)
        return len(queries)

    few = n_statements(request("alone", people[0]))
    jobs = [request(f"{person}{n}", person) for n in range(30) for person in people]
    assert n_statements(jobs[0]) <= few + 1
