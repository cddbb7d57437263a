from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce

from work.models import Job, JobQuerySet, PeriodicRun
from work.registry import QUEUES

# Workers look every second for what is due, also beside a job.
LATE_AFTER = timedelta(minutes=5)
FAILURES_SHOWN = 20


@dataclass(frozen=True)
class Backlog:
    queue: str
    n_waiting: int
    n_retrying: int
    n_running: int
    n_failed: int
    # Of the job that has waited longest since it could have begun; 0 where none waits.
    oldest_seconds: float


def backlogs(now: datetime) -> list[Backlog]:
    waiting = Q(pk__in=Job.objects.due(now).values("pk"))
    failed = Q(state=Job.State.FAILED, finished_at__gte=now - timedelta(days=1))
    relevant = Job.objects.filter(Q(state__in=Job.UNFINISHED) | failed).order_by()
    rows = relevant.values("queue").annotate(
        n_waiting=Count("pk", waiting),
        n_retrying=Count("pk", Q(state=Job.State.QUEUED) & ~waiting),
        n_running=Count("pk", Q(state=Job.State.RUNNING)),
        n_failed=Count("pk", failed),
        oldest_at=Min(Coalesce("run_after", "created_at"), filter=waiting),
    )
    by_queue: dict[str, dict[str, Any]] = {row["queue"]: dict(row) for row in rows}
    return [_backlog(queue, by_queue.get(queue), now) for queue in QUEUES]


def failed_lately(now: datetime) -> JobQuerySet:
    failed = Job.objects.filter(
        state=Job.State.FAILED, finished_at__gte=now - timedelta(days=1)
    ).order_by("-finished_at")
    return failed[:FAILURES_SHOWN]


def is_late(now: datetime) -> bool:
    """Whether something that happens by time should have happened long ago: no worker runs, none
    reaches the database, or none takes jobs of its queue.

    A worker that no message reaches, or of other queues, still requests what is due, so that the
    jobs are looked at as well.
    """
    then = now - LATE_AFTER
    if PeriodicRun.objects.filter(next_at__lt=then).exists():
        return True
    jobs = Job.objects.due(now).filter(kind__in=PeriodicRun.objects.values("name"))
    return jobs.alias(since=Coalesce("run_after", "created_at")).filter(since__lt=then).exists()


def _backlog(queue: str, row: dict[str, Any] | None, now: datetime) -> Backlog:
    if row is None:
        return Backlog(queue, 0, 0, 0, 0, 0.0)
    oldest_at: datetime | None = row.pop("oldest_at")
    waited = max((now - oldest_at).total_seconds(), 0.0) if oldest_at else 0.0
    return Backlog(oldest_seconds=waited, **row)
