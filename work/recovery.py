"""Mending what killed processes and lost messages left behind. Any process may do it, often."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from work.exceptions import JobStopped
from work.leases import lock
from work.models import CLOCK_SLACK, Job
from work.queues import enqueue, waiting_ids
from work.registry import QUEUES

logger = logging.getLogger(__name__)


def recover(*, now: datetime, last_at: datetime | None) -> None:
    """Take over jobs whose process is gone, and enqueue what waits and no queue holds.

    A look that comes late says nothing of silence: whatever held it up (the database was away,
    one long transaction on SQLite) held up the heartbeats too, so they get another turn first.
    So it is where the clock was set back.
    """
    prompt = timedelta(seconds=settings.WORK_LEASE_SECONDS / 2)
    if last_at is not None and timedelta() <= now - last_at < prompt:
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
        message = f"Its process ended in the middle, {job.attempts} times."
        _end(job, Job.State.FAILED, message, now)
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
