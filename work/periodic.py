"""What happens by time: claimed by a conditional UPDATE, so that many processes share it."""

from __future__ import annotations

import logging
import threading
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from redis.exceptions import RedisError

from work.models import CLOCK_SLACK, PeriodicRun
from work.recovery import recover
from work.registry import job_kinds
from work.request import request_job

logger = logging.getLogger(__name__)
RECOVERY = "recovery"
TICK_SECONDS = 1.0


def tick(now: datetime | None = None) -> None:
    """Do what is due: mend what was left behind, and request the jobs that come by time."""
    at = now or timezone.now()
    intervals = _intervals()
    due = _due_names(intervals, at)
    if RECOVERY in due and (turn := take_turn(RECOVERY, intervals[RECOVERY], at)):
        recover(now=at, last_at=turn[0])
    for name in sorted(due - {RECOVERY}):
        _request_if_due(name, intervals[name], at)


def _intervals() -> dict[str, timedelta]:
    """How often what happens by time happens."""
    seconds = {kind.name: kind.every_seconds for kind in job_kinds().values()}
    seconds[RECOVERY] = settings.WORK_LEASE_SECONDS / 6
    return {name: timedelta(seconds=every) for name, every in seconds.items() if every}


def _due_names(intervals: dict[str, timedelta], now: datetime) -> set[str]:
    rows = dict(PeriodicRun.objects.values_list("name", "next_at"))
    PeriodicRun.objects.bulk_create(
        [PeriodicRun(name=name, next_at=now) for name in sorted(intervals.keys() - rows.keys())],
        ignore_conflicts=True,
    )
    return {
        name
        for name, every in intervals.items()
        if name not in rows or _is_due(rows[name], every, now)
    }


def _is_due(next_at: datetime, every: timedelta, now: datetime) -> bool:
    return next_at <= now or next_at > now + every + CLOCK_SLACK


@transaction.atomic
def _request_if_due(name: str, every: timedelta, now: datetime) -> None:
    # In one transaction: a process that is killed in between has not used up the turn.
    if take_turn(name, every, now):
        request_job(kind=name)


def take_turn(name: str, every: timedelta, now: datetime) -> tuple[datetime | None] | None:
    """The time of the turn before, in a tuple; None where another process has this turn."""
    row = PeriodicRun.objects.get(name=name)
    if not _is_due(row.next_at, every, now):
        return None
    turn = PeriodicRun.objects.filter(name=name, next_at=row.next_at)
    return (row.last_at,) if turn.update(next_at=now + every, last_at=now) else None


class Ticker(threading.Thread):
    """Ticks beside a worker for as long as it lives."""

    def __init__(self) -> None:
        super().__init__(name="periodic", daemon=True)
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(TICK_SECONDS):
            try:
                tick()
            except (DatabaseError, RedisError, OSError) as error:
                logger.warning("What is due by time waits: %s", error)
                connection.close()
            except Exception:
                logger.exception("What is due by time broke off")
        connection.close()
