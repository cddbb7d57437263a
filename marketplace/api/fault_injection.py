"""For those who test their programs against this marketplace: a clock that can be set, and
faults that happen to the next calls of an operation. All of it is off, and none of its
tables is read, unless MARKETPLACE_TESTING is on.
"""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from marketplace.api.throttle import throttled
from marketplace.exceptions import InvalidParameter
from marketplace.models import ClockShift, Fault

ANY_OPERATION = "*"
MOST_SECONDS = 60.0
Kind = Fault.Kind


@dataclass(frozen=True)
class FaultValues:
    """What is to happen to the next calls of an operation, or of any."""

    operation: str
    kind: str
    times: int
    delay_seconds: float


def is_testing() -> bool:
    """Whether any of this may be used."""
    return bool(getattr(settings, "MARKETPLACE_TESTING", False))


def set_clock(at: datetime) -> None:
    """Set the time of every process; it goes on from there."""
    _shift(at - timezone.now())


def advance_clock(step: timedelta) -> None:
    """Let so much time pass."""
    first = ClockShift.objects.first()
    _shift((first.ahead if first else timedelta()) + step)


def reset_clock() -> None:
    """Back to the machine's own time."""
    ClockShift.objects.all().delete()


def add_fault(values: FaultValues) -> None:
    """Let something go wrong."""
    if values.kind not in Kind.values:
        raise InvalidParameter(f"kind must be one of {', '.join(Kind.values)}.")
    if values.times < 1:
        raise InvalidParameter("times must be at least 1.")
    if not 0 <= values.delay_seconds <= MOST_SECONDS:
        raise InvalidParameter(f"delay_seconds must be from 0 to {MOST_SECONDS:g}.")
    Fault.objects.create(
        operation=values.operation,
        kind=values.kind,
        remaining=values.times,
        delay_seconds=values.delay_seconds,
    )


def clear_faults() -> None:
    """Let nothing go wrong any more."""
    Fault.objects.all().delete()


def before_operation(name: str) -> None:
    """Wait or refuse, where that is this call's turn."""
    if not is_testing():
        return
    delay = _take(name, Kind.DELAY)
    if delay is not None:
        time.sleep(delay.delay_seconds)
    if _take(name, Kind.THROTTLE) is not None:
        raise throttled()


def must_drop(name: str) -> bool:
    """Whether the answer to this call, which is done and committed, is not to arrive."""
    return is_testing() and _take(name, Kind.DROP) is not None


def _take(name: str, kind: Kind) -> Fault | None:
    due = Fault.objects.filter(kind=kind, operation__in=(name, ANY_OPERATION), remaining__gt=0)
    for fault in due.order_by("pk"):
        claimed = Fault.objects.filter(pk=fault.pk, remaining__gt=0)
        if claimed.update(remaining=F("remaining") - 1):
            return fault
    return None


@transaction.atomic
def _shift(ahead: timedelta) -> None:
    ClockShift.objects.all().delete()
    ClockShift.objects.create(ahead=ahead)
