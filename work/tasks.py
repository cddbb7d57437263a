from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django_tasks import TaskResultStatus, task, task_backends
from django_tasks_db.models import DBTaskResult
from redis.exceptions import RedisError

from work.models import Job
from work.registry import INTERACTIVE, QUEUES, run_message
from work.rq_backend import RQBackend


@task(queue_name=INTERACTIVE)
def do_job(job_id: int) -> str:
    """Do the job whose turn it is: the one of that key, or another of its queue that waits."""
    return run_message(job_id)


# Queues, by either back end of the Tasks API: sending one a job, and what it still holds.

logger = logging.getLogger(__name__)


def announce(job: Job) -> None:
    """Enqueue a job that waits, as soon as it is committed.

    The database's own queue joins the transaction. Where the queue is elsewhere and cannot be
    reached, the job still waits in its row, and `work.periodic` enqueues it later.
    """
    if isinstance(_backend(), RQBackend):
        transaction.on_commit(lambda: _announce_elsewhere(job), robust=True)
    else:
        enqueue(job)


def _announce_elsewhere(job: Job) -> None:
    try:
        enqueue(job)
    except (RedisError, OSError) as error:
        logger.warning("'%s' waits: the queue could not be reached: %s", job, error)


def enqueue(job: Job) -> None:
    message = do_job.using(queue_name=job.queue).enqueue(job.pk)
    Job.objects.queued().filter(pk=job.pk).update(task_id=message.id, enqueued_at=timezone.now())


def waiting_ids(queue: str) -> set[str]:
    backend = _backend()
    if isinstance(backend, RQBackend):
        return backend.waiting_ids(queue)
    ready = DBTaskResult.objects.ready().filter(queue_name=queue)
    return {str(key) for key in ready.values_list("pk", flat=True)}


def ping() -> str:
    backend = _backend()
    if isinstance(backend, RQBackend):
        backend.connection.ping()
    return "ok"


def delete_taken(*, before: datetime) -> int:
    """Delete messages, older than that, which workers that died had taken; return how many."""
    backend = _backend()
    if isinstance(backend, RQBackend):
        return backend.delete_taken(QUEUES, before=before)
    # A message that is "running" for so long was taken by a worker that is gone, or its job has
    # a lease that says more.
    messages = DBTaskResult.objects.exclude(status=TaskResultStatus.READY)
    return messages.filter(enqueued_at__lt=before).delete()[0]


def _backend() -> object:
    return task_backends["default"]
