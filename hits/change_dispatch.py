"""Sending the changes that were decided about a batch.

The marketplace is asked how each HIT stands and sent the difference only, so that it may be
stopped anywhere and run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import ngettext

from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceRefused
from hits.hit_creation import match_published
from hits.models import Batch, Hit, PracticeHit
from hits.publishers import sole_publisher
from hits.run_limits import earning, run_time
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient
    from mypy_boto3_mturk.type_defs import HITTypeDef

# The marketplace rounds times to the second.
SAME_TIME = timedelta(seconds=2)
GONE = "Disposed"


@dataclass(frozen=True)
class ChangesResult:
    """What one run brought about at the marketplace."""

    n_assignments_added: int = 0
    n_expiries_set: int = 0
    n_gone: int = 0

    def __add__(self, other: ChangesResult) -> ChangesResult:
        mine, theirs = asdict(self), asdict(other)
        return ChangesResult(**{name: mine[name] + theirs[name] for name in mine})

    def __str__(self) -> str:
        added, expiries, gone = self.n_assignments_added, self.n_expiries_set, self.n_gone
        parts = [
            ngettext("{n} assignment added", "{n} assignments added", added).format(n=added),
            ngettext("{n} expiry set", "{n} expiries set", expiries).format(n=expiries),
        ]
        if gone:
            text = ngettext("{n} HIT is no longer there", "{n} HITs are no longer there", gone)
            parts.append(text.format(n=gone))
        return f"{', '.join(parts)}."


@run_time()
def apply_changes(
    *, batch: Batch, client: MTurkClient, progress: Progress = silently
) -> ChangesResult:
    """Bring the marketplace's HITs to what is intended of them, by then: what is changed while
    this goes on is sent too."""
    n_added = n_expiries = n_gone = 0
    for hit in _awaiting_change(batch, client, progress):
        with translated_errors():
            there = client.get_hit(HITId=hit.hit_id)["HIT"]
        if there["HITStatus"] == GONE:
            n_gone += 1
        else:
            n_added += _add_assignments(client, hit, there)
            n_expiries += _set_expiry(client, hit, there)
        Hit.objects.filter(pk=hit.pk).update(
            confirmed_assignments=hit.n_assignments, expiry_confirmed_at=hit.batch.expires_at
        )
    n_expiries += _expire_practice(batch, client)
    return ChangesResult(n_added, n_expiries, n_gone)


def _expire_practice(batch: Batch, client: MTurkClient) -> int:
    """Practice is on offer as long as the batch's own HITs."""
    n_expiries = 0
    for hit in PracticeHit.objects.of(batch).awaiting_expiry().select_related("batch"):
        with translated_errors():
            there = client.get_hit(HITId=hit.hit_id)["HIT"]
        if there["HITStatus"] != GONE:
            n_expiries += _set_expiry(client, hit, there)
        PracticeHit.objects.filter(pk=hit.pk).update(expiry_confirmed_at=hit.batch.expires_at)
    return n_expiries


def _awaiting_change(batch: Batch, client: MTurkClient, progress: Progress) -> Iterator[Hit]:
    """HITs that are to be changed, until there are none."""
    while True:
        batch.refresh_from_db(fields=["closed_at"])
        if batch.closed_at:
            _find_unrecorded(batch, client)
        keys = list(Hit.objects.of(batch).awaiting_change().values_list("pk", flat=True))
        if not keys:
            return
        yield from earning(progress)(_in_turn(keys), len(keys))


def _find_unrecorded(batch: Batch, client: MTurkClient) -> None:
    """Nobody publishes a closed batch any more, so that HITs whose answers were lost would stay on
    offer unknown. Who is publishing it notices that it is closed, and is waited for."""
    unpublished = (rows.of(batch).unpublished() for rows in (Hit.objects, PracticeHit.objects))
    if batch.publishing_started_at and any(rows.exists() for rows in unpublished):
        with sole_publisher(batch):
            match_published(batch=batch, client=client)


def _in_turn(keys: list[int]) -> Iterator[Hit]:
    for key in keys:
        yield Hit.objects.select_related("batch").get(pk=key)


def _add_assignments(client: MTurkClient, hit: Hit, there: HITTypeDef) -> int:
    n_more = hit.n_assignments - there["MaxAssignments"]
    if n_more <= 0:
        return 0
    content = f"{hit.requester_annotation}:{hit.n_assignments}"
    try:
        with translated_errors():
            client.create_additional_assignments_for_hit(
                HITId=hit.hit_id,
                NumberOfAdditionalAssignments=n_more,
                UniqueRequestToken=hashlib.sha256(content.encode()).hexdigest(),
            )
    except MarketplaceRefused:
        # The same request may have got through whose answer was lost, or another process's.
        with translated_errors():
            now_there = client.get_hit(HITId=hit.hit_id)["HIT"]["MaxAssignments"]
        if now_there < hit.n_assignments:
            raise
    return n_more


def _set_expiry(client: MTurkClient, hit: Hit | PracticeHit, there: HITTypeDef) -> int:
    expires_at, now = hit.batch.expires_at, timezone.now()
    if expires_at is None:
        return 0
    is_over = expires_at <= now
    if is_over and there["Expiration"] <= now:
        return 0
    # A marketplace never moves an expiry to an earlier time that is still to come.
    if not is_over and there["Expiration"] >= expires_at - SAME_TIME:
        return 0
    with translated_errors():
        client.update_expiration_for_hit(HITId=hit.hit_id, ExpireAt=expires_at)
    return 1
