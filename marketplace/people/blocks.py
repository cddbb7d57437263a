"""Keeping a worker from a requester's HITs."""

from django.db import transaction

from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.models import Requester, WorkerBlock
from marketplace.people.enrolment import find_worker
from marketplace.people.messages import send_message

MOST_BLOCKS = 100_000


@transaction.atomic
def block_worker(*, requester: Requester, worker_id: str, reason: str) -> None:
    """Take no more work from this worker, who is written to at the first of several blocks. What
    is under way may be finished and is paid. The reason is the requester's note: the protocol
    promises that the worker does not read it."""
    worker = find_worker(worker_id)
    blocks = WorkerBlock.objects.filter(requester=requester)
    if blocks.count() >= MOST_BLOCKS:
        raise InvalidParameter(f"A requester can block at most {MOST_BLOCKS:,} workers.")
    _, is_new = WorkerBlock.objects.update_or_create(
        requester=requester,
        worker=worker,
        defaults={"reason": reason},
        create_defaults={"reason": reason, "created_at": clock.now()},
    )
    if is_new:
        send_message(
            requester=requester,
            worker=worker,
            subject=f"{requester.name} takes no more work from you",
            text=f"{requester.name} has blocked you: you cannot accept any more of its HITs. What "
            "you have accepted you can finish, and what you have submitted is reviewed and paid "
            "as before. Other requesters are not informed. The marketplace does not pass on "
            "the requester's note on why.",
        )


def unblock_worker(*, requester: Requester, worker_id: str) -> None:
    """Take work from this worker again; nothing happens where there was no block."""
    WorkerBlock.objects.filter(requester=requester, worker=find_worker(worker_id)).delete()
