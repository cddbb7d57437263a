from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from work.models import Job
from work.registry import job_kind
from work.tasks import announce

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

logger = logging.getLogger(__name__)
# Each time the job that was in the way may have ended before it could be read.
MOST_TRIES = 20


def request_job(
    *,
    kind: str,
    subject: str = "",
    arguments: Mapping[str, Any] | None = None,
    title: str = "",
    basis: str = "",
    requested_by: AbstractBaseUser | None = None,
) -> Job:
    """Commit a job, then enqueue it; the same job that is unfinished is returned instead."""
    settled = dict(arguments or {})
    described = job_kind(kind)
    job = Job(
        kind=kind,
        queue=described.queue,
        subject=subject,
        title=str(title or described.label)[:250],
        arguments=settled,
        basis=basis,
        dedupe_key=_dedupe_key(kind, subject, settled),
        max_attempts=described.max_attempts,
        requested_by_id=requested_by.pk if requested_by else None,
    )
    stored, is_new = _store(job)
    if is_new:
        # With the request's id, which leads from here to the lines of the job.
        logger.info("job requested", extra={"job": stored.pk, "kind": kind, "subject": subject})
        announce(stored)
        stored.refresh_from_db()
    return stored


def stop_job(*, job: Job) -> None:
    """End a job that waits, and ask one that runs to end at its next step."""
    rows = Job.objects.filter(pk=job.pk)
    # First of all, so that it holds whether the job is claimed or given back at this moment.
    rows.unfinished().update(stop_requested=True)
    rows.queued().update(
        state=Job.State.STOPPED, finished_at=timezone.now(), message="Stopped before it began."
    )


def resume_job(*, job: Job) -> Job:
    """Queue a job again that failed or was stopped: it goes on from what it did before.

    Where the same was requested anew in the meantime, that job is returned.
    """
    try:
        with transaction.atomic():
            resumed = (
                Job.objects.finished()
                .filter(pk=job.pk)
                .update(
                    state=Job.State.QUEUED,
                    stop_requested=False,
                    attempts=0,
                    run_after=None,
                    task_id="",
                    enqueued_at=None,
                    created_at=timezone.now(),
                    finished_at=None,
                    message="",
                )
            )
    except IntegrityError:
        return Job.objects.joinable().filter(dedupe_key=job.dedupe_key).first() or job
    stored = Job.objects.get(pk=job.pk)
    if resumed:
        announce(stored)
        stored.refresh_from_db()
    return stored


def _store(job: Job) -> tuple[Job, bool]:
    for _ in range(MOST_TRIES):
        if same := Job.objects.joinable().filter(dedupe_key=job.dedupe_key).first():
            return same, False
        try:
            with transaction.atomic():
                job.save(force_insert=True)
        except IntegrityError:
            continue
        return job, True
    raise RuntimeError(f"The same job as '{job}' begins and ends too often to be requested.")


def _dedupe_key(kind: str, subject: str, arguments: Mapping[str, Any]) -> str:
    return sha256(json.dumps([kind, subject, arguments], sort_keys=True).encode()).hexdigest()
