"""Writing to workers. What is written is read on the worker site, and where the site sends mail
and the worker has confirmed an address, there too."""

from collections.abc import Sequence
from functools import partial

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import InvalidParameter, RequestRefused, require
from marketplace.models import (
    Assignment,
    Hit,
    PaidBy,
    Requester,
    WorkerAccount,
    WorkerBlock,
    WorkerMessage,
)
from marketplace.people.enrolment import find_worker
from work.tasks import request_job

LONGEST_TEXT = 4096
UNKNOWN = "The Worker ID is not valid"


def send_message(*, requester: Requester, worker: WorkerAccount, subject: str, text: str) -> None:
    """Write to a worker, in the transaction of what it is about. Nobody reads an erased account's
    messages, and recruiters write to their participants (see marketplace.recruiting.intents)."""
    if worker.erased_at is not None or worker.paid_by == PaidBy.RECRUITER:
        return
    now = clock.now()
    is_mailed = settings.SENDS_MAIL and mail_address(worker) is not None
    WorkerMessage.objects.create(
        requester=requester,
        worker=worker,
        subject=subject,
        text=text,
        created_at=now,
        next_mail_at=now if is_mailed else None,
    )
    if is_mailed:
        transaction.on_commit(partial(request_job, kind="send_notifications"))


def write_to_requester(*, worker: WorkerAccount, hit: Hit, text: str) -> WorkerMessage:
    """Ask the requester of a HIT, who reads it over HTTP (`marketplace.api.endpoints.messages`).
    Participants write by way of their recruiter."""
    require(
        worker.paid_by == PaidBy.LEDGER and 0 < len(text.strip()) <= LONGEST_TEXT,
        RequestRefused(_("Write a message of at most %(n)s characters.") % {"n": LONGEST_TEXT}),
    )
    now = clock.now()
    return WorkerMessage.objects.create(
        requester=hit.requester,
        worker=worker,
        is_from_worker=True,
        hit=hit,
        subject=hit.hit_type.title,
        text=text.strip(),
        created_at=now,
        read_at=now,
    )


def mail_address(worker: WorkerAccount) -> str | None:
    # An unconfirmed address may be somebody else's.
    addresses = EmailAddress.objects.filter(user=worker.user_id, primary=True, verified=True)
    address: str | None = addresses.values_list("email", flat=True).first()
    return address


@transaction.atomic
def notify_workers(
    *, requester: Requester, subject: str, text: str, worker_ids: Sequence[str]
) -> dict[str, str]:
    """Write once to each of these workers whose work the requester has decided on or who wrote to
    the requester; return the reasons for the others, by Worker ID."""
    requested_ids = list(dict.fromkeys(worker_ids))
    decided = Assignment.objects.of(requester).filter(status__in=Assignment.DECIDED_STATUSES)
    workers = WorkerAccount.objects.filter(worker_id__in=requested_ids, erased_at=None)
    asked = Q(messages__requester=requester, messages__is_from_worker=True)
    known = workers.filter(Q(assignments__in=decided) | asked).distinct()
    acquainted = {worker.worker_id: worker for worker in known}
    mine = workers.filter(paid_by=PaidBy.RECRUITER, sessions__study__requester=requester)
    of_recruiters = set(mine.values_list("worker_id", flat=True))
    existing = set(workers.values_list("worker_id", flat=True))
    undelivered = {}
    for worker_id in requested_ids:
        if worker_id in of_recruiters:
            undelivered[worker_id] = (
                "The worker is a participant of a recruiter that is not called from here: write "
                "to them there"
            )
        elif worker_id in acquainted:
            send_message(
                requester=requester, worker=acquainted[worker_id], subject=subject, text=text
            )
        else:
            undelivered[worker_id] = (
                "Cannot send a notification to a worker who has not done any work for you"
                if worker_id in existing
                else UNKNOWN
            )
    return undelivered


# Keeping a worker from a requester's HITs.

MOST_BLOCKS = 100_000


@transaction.atomic
def block_worker(*, requester: Requester, worker_id: str, reason: str) -> None:
    """Accept no more work from this worker, who is informed once. Accepted work may be finished
    and is paid. The protocol promises that the worker does not read the reason."""
    worker = find_worker(worker_id)
    require(
        WorkerBlock.objects.filter(requester=requester).count() < MOST_BLOCKS,
        InvalidParameter(f"A requester can block at most {MOST_BLOCKS:,} workers."),
    )
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
    WorkerBlock.objects.filter(requester=requester, worker=find_worker(worker_id)).delete()
