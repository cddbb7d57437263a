"""One process at a time calls a recruiter's account: two would draft, publish and charge twice.

A turn is a lease on the connection's row, so that it ends by itself where its process was killed.
Time here is the machine's, wherever the marketplace's clock stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from uuid import uuid4

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from marketplace.exceptions import RecruiterBusy
from marketplace.models import RecruiterConnection

# Longer than what is asked of a recruiter for one thing; each begins it anew.
LASTS = timedelta(minutes=3)
KEPT_EACH_SECONDS = 20


_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


class Turn:
    """The right to call an account, for a while."""

    def __init__(self, connection: RecruiterConnection, token: str) -> None:
        self._rows = RecruiterConnection.objects.filter(pk=connection.pk, turn_token=token)
        self._name, self._kept_at = connection.name, time.monotonic()

    def keep(self) -> None:
        """Have it last longer, where it is some time since."""
        if time.monotonic() - self._kept_at > KEPT_EACH_SECONDS:
            self.go_on()

    def go_on(self) -> None:
        """Have it last for another step; RecruiterBusy where it has gone to another process."""
        if not self._rows.update(turn_until=timezone.now() + LASTS):
            raise RecruiterBusy(_busy(self._name))
        self._kept_at = time.monotonic()

    def end(self) -> None:
        self._rows.update(turn_until=None, turn_token="")


@contextmanager
def turn_at(connection: RecruiterConnection) -> Iterator[Turn]:
    """A turn; RecruiterBusy where another process has one."""
    now, token = timezone.now(), uuid4().hex
    free = RecruiterConnection.objects.filter(Q(turn_until=None) | Q(turn_until__lte=now))
    if not free.filter(pk=connection.pk).update(turn_until=now + LASTS, turn_token=token):
        raise RecruiterBusy(_busy(connection.name))
    turn = Turn(connection, token)
    before = _turn.set(turn)
    try:
        yield turn
    finally:
        _turn.reset(before)
        turn.end()


def require_turn() -> None:
    """RecruiterBusy where the turn has gone, as to whoever disconnected: before what is paid."""
    if (turn := _turn.get()) is not None:
        turn.go_on()


def keep_turn() -> None:
    """Have the turn last in which this is called, if it is."""
    if (turn := _turn.get()) is not None:
        turn.keep()


def _busy(name: str) -> str:
    text = _("Another process calls {recruiter} at the moment. Try again in a minute.")
    return text.format(recruiter=name)
