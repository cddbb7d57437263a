"""One process at a time calls a recruiter's account: two would draft, publish and charge twice.

A turn is a lease on the connection's row, so that it ends by itself where its process was killed.
Time here is the machine's, wherever the marketplace's clock stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from marketplace.exceptions import RecruiterBusy
from marketplace.models import RecruiterConnection

# Longer than one step of a turn takes; each step begins it anew.
LASTS = timedelta(minutes=10)


class Turn:
    """The right to call an account, for a while."""

    def __init__(self, connection: RecruiterConnection, token: str) -> None:
        self._rows = RecruiterConnection.objects.filter(pk=connection.pk, turn_token=token)
        self._name = connection.name

    def go_on(self) -> None:
        """Have it last for another step; RecruiterBusy where it has gone to another process."""
        if not self._rows.update(turn_until=timezone.now() + LASTS):
            raise RecruiterBusy(_busy(self._name))

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
    try:
        yield turn
    finally:
        turn.end()


def _busy(name: str) -> str:
    text = _("Another process calls {recruiter} at the moment. Try again in a minute.")
    return text.format(recruiter=name)
