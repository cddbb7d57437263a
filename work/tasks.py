import json
import logging
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone
from django_tasks import TaskResultStatus, task, task_backends
from django_tasks_db.models import DBTaskResult

from work.models import Job
from work.registry import INTERACTIVE, QUEUES, job_kind, run_message

if TYPE_CHECKING:
    from work.rq_backend import RQBackend


@task(queue_name=INTERACTIVE)
def do_job(job_id: int) -> str:
    return run_message(job_id)


# Queues, by either back end of the Tasks API: sending one a job, and what it still holds.

logger = logging.getLogger(__name__)


def announce(job: Job) -> None:
    """Enqueue a job that waits, as soon as it is committed.

    The database's own queue joins the transaction. Where the queue is elsewhere and cannot be
    reached, the job still waits in its row, and `work.periodic` enqueues it later.
    """
    if redis_queues():
        transaction.on_commit(lambda: _announce_elsewhere(job), robust=True)
    else:
        enqueue(job)


def _announce_elsewhere(job: Job) -> None:
    from redis.exceptions import RedisError

    try:
        enqueue(job)
    except (RedisError, OSError) as error:
        logger.warning("'%s' waits: the queue could not be reached: %s", job, error)


def enqueue(job: Job) -> None:
    message = do_job.using(queue_name=job.queue).enqueue(job.pk)
    Job.objects.queued().filter(pk=job.pk).update(task_id=message.id, enqueued_at=timezone.now())


def waiting_ids(queue: str) -> set[str]:
    if queues := redis_queues():
        return queues.waiting_ids(queue)
    return {
        str(key)
        for key in DBTaskResult.objects.ready()
        .filter(queue_name=queue)
        .values_list("pk", flat=True)
    }


def ping() -> str:
    if queues := redis_queues():
        queues.connection.ping()
    return "ok"


def delete_taken(*, before: datetime) -> int:
    # Those that workers which died had taken.
    if queues := redis_queues():
        return queues.delete_taken(QUEUES, before=before)
    # A message that is "running" for so long was taken by a worker that is gone, or its job has
    # a lease that says more.
    return (
        DBTaskResult.objects.exclude(status=TaskResultStatus.READY)
        .filter(enqueued_at__lt=before)
        .delete()[0]
    )


def redis_queues() -> "RQBackend | None":
    """The queues on Redis, whose libraries take a tenth of a second to import; None without."""
    backend = task_backends["default"]
    return cast("RQBackend", backend) if hasattr(backend, "waiting_ids") else None


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
    described_by = json.dumps([kind, subject, settled], sort_keys=True)
    described = job_kind(kind)
    stored, is_new = _store(
        Job(
            kind=kind,
            queue=described.queue,
            subject=subject,
            title=str(title or described.label)[:250],
            arguments=settled,
            basis=basis,
            dedupe_key=sha256(described_by.encode()).hexdigest(),
            max_attempts=described.max_attempts,
            requested_by_id=requested_by.pk if requested_by else None,
        )
    )
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
