"""One process at a time publishes a batch; the others wait for it, and see what it did.

That nobody publishes a HIT twice rests on the request tokens alone: a publisher that was
silent for too long may be at work still. Taking turns is what keeps counts and costs exact.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from hits.call_limits import require_time_left
from hits.models import Batch

# A killed publisher is waited for no longer than this after its last HIT.
SILENT_FOR = timedelta(seconds=settings.WORK_LEASE_SECONDS)
RENEWED_EVERY = SILENT_FOR / 6
LOOK_AGAIN_SECONDS = 0.25

WaitCallback = Callable[[Batch], None]
"""Called once, where somebody else is publishing the batch."""


def without_a_word(batch: Batch) -> None:
    """Wait silently."""


class Publisher:
    """A process that may publish a batch, as long as it is heard of."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.name = batch, secrets.token_hex(8)
        self.renewed_at = timezone.now()

    def claim(self) -> bool:
        """Become the batch's publisher, unless another one is at work; True if it worked."""
        now = timezone.now()
        is_free = Q(publisher="") | Q(publisher_seen_at__lt=now - SILENT_FOR)
        return self._note(is_free, self.name, now)

    def renew(self) -> None:
        """Be heard of, once in a while."""
        now = timezone.now()
        if now - self.renewed_at >= RENEWED_EVERY:
            self._note(Q(publisher=self.name), self.name, now)

    def release(self) -> None:
        """Let the next one begin."""
        self._note(Q(publisher=self.name), "", None)

    def _note(self, condition: Q, name: str, seen_at: datetime | None) -> bool:
        row = Batch.objects.filter(condition, pk=self.batch.pk)
        is_noted = row.update(publisher=name, publisher_seen_at=seen_at) > 0
        self.renewed_at = seen_at or self.renewed_at
        return is_noted


@contextmanager
def sole_publisher(batch: Batch, on_wait: WaitCallback = without_a_word) -> Iterator[Publisher]:
    """Be the batch's only publisher, once whoever is it now is done or has fallen silent."""
    publisher = Publisher(batch)
    if not publisher.claim():
        on_wait(batch)
        while not publisher.claim():
            # Whoever publishes may be held up by the marketplace for as long as it likes.
            require_time_left()
            time.sleep(LOOK_AGAIN_SECONDS)
    try:
        batch.refresh_from_db(fields=["hit_type_id", "publishing_started_at", "closed_at"])
        yield publisher
    finally:
        publisher.release()
