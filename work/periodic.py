import logging
import threading
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from redis.exceptions import RedisError

from work.exceptions import JobStopped
from work.execution import lock
from work.models import CLOCK_SLACK, Job, JobQuerySet, PeriodicRun
from work.registry import QUEUES, job_kinds
from work.tasks import enqueue, request_job, waiting_ids

# Mending what killed processes and lost messages left behind. Any process may do it, often.

logger = logging.getLogger(__name__)


def recover(*, now: datetime, last_at: datetime | None) -> None:
    """Take over jobs whose process is gone, and enqueue what waits and no queue holds.

    A look that comes late says nothing of silence: whatever held it up (the database was away,
    one long transaction on SQLite) held up the heartbeats too, so they get another turn first.
    So it is where the clock was set back.
    """
    if last_at is not None and timedelta() <= now - last_at < timedelta(
        seconds=settings.WORK_LEASE_SECONDS / 2
    ):
        for job_id in Job.objects.lapsed(now).values_list("pk", flat=True):
            _take_over(job_id, now)
    for queue in QUEUES:
        _enqueue_strays(queue, now)


@transaction.atomic
def _take_over(job_id: int, now: datetime) -> None:
    job = lock(Job.objects.lapsed(now).filter(pk=job_id))
    if job is None:
        return
    job.lease_token, job.leased_until = "", None
    job.task_id, job.enqueued_at, job.run_after = "", None, None
    if job.stop_requested:
        _end(job, Job.State.STOPPED, str(JobStopped()), now)
    elif job.attempts >= job.max_attempts:
        _end(job, Job.State.FAILED, f"Its process ended in the middle, {job.attempts} times.", now)
    else:
        job.state = Job.State.QUEUED
    logger.warning("The process of '%s' (job %s) is gone: %s.", job, job.pk, job.state)
    job.save()


def _end(job: Job, state: Job.State, message: str, now: datetime) -> None:
    job.state, job.message, job.finished_at = state, message, now


def _enqueue_strays(queue: str, now: datetime) -> None:
    """Enqueue the due jobs of a queue whose message was never sent, was lost or was wasted.

    A message that has just come may be in a worker's hands; one too many does no harm.
    """
    grace = now - timedelta(seconds=settings.WORK_GRACE_SECONDS)
    ahead = now + CLOCK_SLACK
    late = Q(enqueued_at=None, created_at__lte=grace) | Q(enqueued_at__lte=grace)
    late |= Q(enqueued_at=None, created_at__gt=ahead) | Q(enqueued_at__gt=ahead)
    # One that ran before was announced by nobody since.
    again = Q(enqueued_at=None, attempts__gt=0)
    jobs = list(Job.objects.due(now).filter(late | again, queue=queue).order_by("pk"))
    if not jobs:
        return
    waiting = waiting_ids(queue)
    for job in jobs:
        if job.task_id not in waiting:
            enqueue(job)


RECOVERY = "recovery"
TICK_SECONDS = 1.0


def tick(now: datetime | None = None) -> None:
    at = now or timezone.now()
    intervals = _intervals()
    due = _due_names(intervals, at)
    if RECOVERY in due and (turn := take_turn(RECOVERY, intervals[RECOVERY], at)):
        recover(now=at, last_at=turn[0])
    for name in sorted(due - {RECOVERY}):
        _request_if_due(name, intervals[name], at)


def _intervals() -> dict[str, timedelta]:
    seconds = {kind.name: kind.every_seconds for kind in job_kinds().values()}
    seconds[RECOVERY] = settings.WORK_LEASE_SECONDS / 6
    return {name: timedelta(seconds=every) for name, every in seconds.items() if every}


def _due_names(intervals: dict[str, timedelta], now: datetime) -> set[str]:
    rows = dict(PeriodicRun.objects.values_list("name", "next_at"))
    PeriodicRun.objects.bulk_create(
        [PeriodicRun(name=name, next_at=now) for name in sorted(intervals.keys() - rows.keys())],
        ignore_conflicts=True,
    )
    return {
        name
        for name, every in intervals.items()
        if name not in rows or _is_due(rows[name], every, now)
    }


def _is_due(next_at: datetime, every: timedelta, now: datetime) -> bool:
    return next_at <= now or next_at > now + every + CLOCK_SLACK


@transaction.atomic
def _request_if_due(name: str, every: timedelta, now: datetime) -> None:
    # In one transaction: a process that is killed in between has not used up the turn.
    if take_turn(name, every, now):
        request_job(kind=name)


def take_turn(name: str, every: timedelta, now: datetime) -> tuple[datetime | None] | None:
    """The time of the turn before, in a tuple; None where another process has this turn."""
    row = PeriodicRun.objects.get(name=name)
    if not _is_due(row.next_at, every, now):
        return None
    turn = PeriodicRun.objects.filter(name=name, next_at=row.next_at)
    return (row.last_at,) if turn.update(next_at=now + every, last_at=now) else None


class Ticker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="periodic", daemon=True)
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(TICK_SECONDS):
            try:
                tick()
            except (DatabaseError, RedisError, OSError) as error:
                logger.warning("What is due by time waits: %s", error)
                connection.close()
            except Exception:
                logger.exception("What is due by time broke off")
        connection.close()


# Workers look every second for what is due, also beside a job.
LATE_AFTER = timedelta(minutes=5)
FAILURES_SHOWN = 20


def backlogs(now: datetime) -> list[dict[str, Any]]:
    """By queue the numbers of jobs, and how long the job has waited that waits longest since it
    could have begun (0 if none waits)."""
    waiting = Q(pk__in=Job.objects.due(now).values("pk"))
    failed = Q(state=Job.State.FAILED, finished_at__gte=now - timedelta(days=1))
    relevant = Job.objects.filter(Q(state__in=Job.UNFINISHED) | failed).order_by()
    by_queue: dict[str, dict[str, Any]] = {
        row["queue"]: dict(row)
        for row in relevant.values("queue").annotate(
            n_waiting=Count("pk", waiting),
            n_retrying=Count("pk", Q(state=Job.State.QUEUED) & ~waiting),
            n_running=Count("pk", Q(state=Job.State.RUNNING)),
            n_failed=Count("pk", failed),
            oldest_at=Min(Coalesce("run_after", "created_at"), filter=waiting),
        )
    }
    return [_backlog(queue, by_queue.get(queue), now) for queue in QUEUES]


def failed_lately(now: datetime) -> JobQuerySet:
    return Job.objects.filter(
        state=Job.State.FAILED, finished_at__gte=now - timedelta(days=1)
    ).order_by("-finished_at")[:FAILURES_SHOWN]


def is_late(now: datetime) -> bool:
    """Whether something that happens by time should have happened long ago: no worker runs, none
    reaches the database, or none takes jobs of its queue.

    A worker that no message reaches, or of other queues, still requests what is due, so that the
    jobs are looked at as well.
    """
    then = now - LATE_AFTER
    if PeriodicRun.objects.filter(next_at__lt=then).exists():
        return True
    return (
        Job.objects.due(now)
        .filter(kind__in=PeriodicRun.objects.values("name"))
        .alias(since=Coalesce("run_after", "created_at"))
        .filter(since__lt=then)
        .exists()
    )


def _backlog(queue: str, row: dict[str, Any] | None, now: datetime) -> dict[str, Any]:
    if row is None:
        counts = dict.fromkeys(("n_waiting", "n_retrying", "n_running", "n_failed"), 0)
        return {"queue": queue, **counts, "oldest_seconds": 0.0}
    oldest_at: datetime | None = row.pop("oldest_at")
    seconds = max((now - oldest_at).total_seconds(), 0.0) if oldest_at else 0.0
    return row | {"oldest_seconds": seconds}
