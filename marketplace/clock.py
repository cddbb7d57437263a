"""The marketplace's clock: everything that time does to HITs reads it here, so
that a test can live through a month in a second."""

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from marketplace.models import ClockShift

_ahead = timedelta()


def now() -> datetime:
    return timezone.now() + _ahead + _shift()


def advance(step: timedelta) -> None:
    global _ahead
    if step < timedelta():
        raise ValueError(f"step must not be negative, got {step}")
    _ahead += step


def reset() -> None:
    global _ahead
    _ahead = timedelta()


def _shift() -> timedelta:
    # Set by a test for all processes (see marketplace.api.fault_injection).
    if not getattr(settings, "MARKETPLACE_TESTING", False):
        return timedelta()
    shift = ClockShift.objects.first()
    return shift.ahead if shift else timedelta()
