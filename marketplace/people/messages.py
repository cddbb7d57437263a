"""Writing to workers. What is written is read on the worker site."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from marketplace import clock
from marketplace.models import Assignment, Requester, WorkerAccount, WorkerMessage


@dataclass(frozen=True)
class Undelivered:
    """Whom a message was not delivered to, and why."""

    worker_id: str
    reason: str


def send_message(*, requester: Requester, worker: WorkerAccount, subject: str, text: str) -> None:
    """Put a message into a worker's inbox."""
    WorkerMessage.objects.create(
        requester=requester, worker=worker, subject=subject, text=text, created_at=clock.now()
    )


@transaction.atomic
def notify_workers(
    *, requester: Requester, subject: str, text: str, worker_ids: Sequence[str]
) -> list[Undelivered]:
    """Write to those of these workers whose work the requester has approved or rejected, and
    return the others. Who is named twice is written to once."""
    requested_ids = list(dict.fromkeys(worker_ids))
    decided = Assignment.objects.of(requester).filter(status__in=Assignment.DECIDED_STATUSES)
    workers = WorkerAccount.objects.filter(worker_id__in=requested_ids)
    acquainted = {
        worker.worker_id: worker for worker in workers.filter(assignments__in=decided).distinct()
    }
    existing = set(workers.values_list("worker_id", flat=True))
    undelivered = []
    for worker_id in requested_ids:
        if worker_id in acquainted:
            send_message(
                requester=requester, worker=acquainted[worker_id], subject=subject, text=text
            )
        else:
            undelivered.append(Undelivered(worker_id, _reason(worker_id in existing)))
    return undelivered


def _reason(is_known: bool) -> str:
    if not is_known:
        return "The Worker ID is not valid"
    return "Cannot send a notification to a worker who has not done any work for you"
