"""Worker accounts whose work came from one device: kept as hashes, and given out as counts.

An address and what a browser says of itself are hashed as they come in, with the site's key and
a salt for each requester. Neither is stored, nor is the hash ever given out.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.crypto import salted_hmac

from marketplace import clock
from marketplace.models import Assignment, DevicePrint, Requester

KEPT_FOR = timedelta(days=90)
MOST_OTHERS = 10
MOST_PRINTS = 200_000


@dataclass(frozen=True)
class SharedDevice:
    """A worker of whose submissions some came from a device that other workers submitted from."""

    worker_id: str
    n_shared: int
    n: int
    others: tuple[str, ...]


def note_device(assignment: Assignment, *, address: str, browser: str) -> None:
    """Keep the print of an assignment that was submitted, the first time it was."""
    requester = assignment.hit.requester_id
    salt = f"marketplace.devices.{requester}"
    digest = salted_hmac(salt, f"{address}\n{browser}", algorithm="sha256").hexdigest()
    values = {"requester_id": requester, "digest": digest, "created_at": clock.now()}
    # One statement: whoever submits waits for it.
    DevicePrint.objects.bulk_create(
        [DevicePrint(assignment=assignment, **values)], ignore_conflicts=True
    )


def delete_old_prints(now: datetime) -> None:
    """Forget from which devices work came that is long decided about."""
    DevicePrint.objects.filter(created_at__lt=now - KEPT_FOR).delete()


def shared_devices(requester: Requester, annotation_prefix: str) -> list[SharedDevice]:
    """The workers of a requester's HITs who shared a device there."""
    prints = DevicePrint.objects.filter(
        requester=requester, assignment__hit__requester_annotation__startswith=annotation_prefix
    )
    rows = prints.order_by("-pk").values_list("digest", "assignment__worker__worker_id")
    workers_of: dict[str, set[str]] = defaultdict(set)
    digests_of: dict[str, list[str]] = defaultdict(list)
    for digest, worker in rows[:MOST_PRINTS]:
        workers_of[digest].add(worker)
        digests_of[worker].append(digest)
    shared = []
    for worker, digests in sorted(digests_of.items()):
        others = set().union(*(workers_of[digest] for digest in digests)) - {worker}
        if others:
            n_shared = sum(len(workers_of[digest]) > 1 for digest in digests)
            shared.append(SharedDevice(worker, n_shared, len(digests), tuple(sorted(others))))
    return shared
