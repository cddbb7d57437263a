"""Keeping a worker from a requester's HITs."""

from django.db import transaction

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import Requester, WorkerBlock
from marketplace.people.enrolment import find_worker

MOST_BLOCKS = 100_000


@transaction.atomic
def block_worker(*, requester: Requester, worker_id: str, reason: str) -> None:
    """Take no more work from this worker. What is under way may be finished and is paid."""
    worker = find_worker(worker_id)
    blocks = WorkerBlock.objects.filter(requester=requester)
    if blocks.count() >= MOST_BLOCKS:
        raise InvalidParameter(f"A requester can block at most {MOST_BLOCKS:,} workers.")
    WorkerBlock.objects.update_or_create(
        requester=requester,
        worker=worker,
        defaults={"reason": reason},
        create_defaults={"reason": reason, "created_at": clock.now()},
    )


def unblock_worker(*, requester: Requester, worker_id: str) -> None:
    """Take work from this worker again; nothing happens where there was no block."""
    WorkerBlock.objects.filter(requester=requester, worker=find_worker(worker_id)).delete()
