"""Leases: one process at a time works at a row, and another once that process is gone.

A lease is kept by a heartbeat in a thread beside the work, so that a step may be silent for an
hour. A process that is killed takes its heartbeat along; one that lost its lease all the same
(its machine was suspended, the database was away) is fenced off: `hold` fails in every
transaction by which it would write.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, connection, models, transaction
from django.utils import timezone

from work.exceptions import LeaseLost
from work.models import Leased

logger = logging.getLogger(__name__)
Row = TypeVar("Row", bound=Leased)
# A heartbeat this often, so that pages see progress and a request to stop takes a second.
BEAT_SECONDS = 1.0
# The rest of the time is for others to notice that a lease lapsed.
TERM_SHARE = 0.75


def lease_term() -> timedelta:
    return timedelta(seconds=settings.WORK_LEASE_SECONDS * TERM_SHARE)


class Lease:
    def __init__(self, row: Leased, token: str) -> None:
        self.row = row
        self.token = token
        self.is_lost = False
        self.has_heartbeat = False
        self._last_beat = time.monotonic()

    def rows(self) -> models.QuerySet[Any]:
        return type(self.row)._default_manager.filter(pk=self.row.pk, lease_token=self.token)

    def hold(self) -> None:
        """Make sure of the lease until the transaction that writes has ended, or LeaseLost.

        On PostgreSQL it takes the one lock that keeps others from taking the row over but lets
        the heartbeat go on; on SQLite a transaction that writes keeps everyone else waiting.
        """
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("hold() belongs in a transaction.")
        if not self._is_held():
            self.is_lost = True
            self.check()

    def _is_held(self) -> bool:
        if connection.vendor != "postgresql":
            return self.rows().exists()
        table = connection.ops.quote_name(self.row._meta.db_table)
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT 1 FROM {table} WHERE id = %s AND lease_token = %s FOR KEY SHARE",
                [self.row.pk, self.token],
            )
            return cursor.fetchone() is not None

    def check(self) -> None:
        """LeaseLost where it is known to be; beats by itself where no thread does."""
        if not self.has_heartbeat and time.monotonic() - self._last_beat >= BEAT_SECONDS:
            self.beat()
        if self.is_lost:
            raise LeaseLost(f"{self.row}: it was stopped or taken over; what was done is kept.")

    def beat(self) -> None:
        renewed = self.rows().update(leased_until=timezone.now() + lease_term(), **self.changes())
        self.is_lost = not renewed
        self._last_beat = time.monotonic()

    def changes(self) -> dict[str, Any]:
        return {}


def new_token() -> str:
    return secrets.token_hex(16)


def lock(rows: models.QuerySet[Row]) -> Row | None:
    """The first of the rows, locked against its holder's writing too; None if it is in use.

    A row whose holder is inside a transaction that writes is in use, whatever its lease says.
    """
    return rows.select_for_update(
        skip_locked=connection.features.has_select_for_update_skip_locked
    ).first()


@contextmanager
def heartbeat(lease: Lease) -> Iterator[None]:
    """Keep a lease beside the work of this thread.

    A claim that is not committed yet is visible to nobody, and needs no heartbeat.
    """
    if connection.in_atomic_block:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(
        target=_beat_until, args=(lease, ended), name="heartbeat", daemon=True
    )
    lease.has_heartbeat = True
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        lease.has_heartbeat = False


def _beat_until(lease: Lease, ended: threading.Event) -> None:
    pause = min(BEAT_SECONDS, settings.WORK_LEASE_SECONDS / 6)
    try:
        while not ended.wait(pause) and not lease.is_lost:
            try:
                lease.beat()
            except DatabaseError as error:
                # The database is away or busy: others cannot take the lease over either.
                logger.warning("The lease of '%s' could not be renewed: %s", lease.row, error)
                connection.close()
    finally:
        connection.close()
