"""One process at a time calls a recruiter's account: two would draft, publish and charge twice.

A turn is a lease on the connection's row, so that it ends by itself where its process was killed.
Time here is the machine's, wherever the marketplace's clock stands.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from types import TracebackType
from typing import Self
from uuid import uuid4

from django.core.cache import cache
from django.db import InterfaceError, OperationalError
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from marketplace.exceptions import RecruiterBusy
from marketplace.models import RecruiterConnection
from marketplace.recruiting.records import RecruiterProblem, Unreachable

# Longer than what is asked of a recruiter for one thing; each begins it anew.
LASTS = timedelta(minutes=3)
KEPT_EACH_SECONDS = 20


_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


class Turn:
    """The right to call an account, as a lease."""

    def __init__(self, connection: RecruiterConnection, token: str) -> None:
        self._rows = RecruiterConnection.objects.filter(pk=connection.pk, turn_token=token)
        self._name, self._kept_at = connection.name, time.monotonic()

    def keep(self) -> None:
        if time.monotonic() - self._kept_at > KEPT_EACH_SECONDS:
            self.go_on()

    def go_on(self) -> None:
        """Renew the lease; RecruiterBusy if another process has it."""
        if not self._rows.update(turn_until=timezone.now() + LASTS):
            raise RecruiterBusy(_busy(self._name))
        self._kept_at = time.monotonic()

    def end(self) -> None:
        self._rows.update(turn_until=None, turn_token="")


@contextmanager
def turn_at(connection: RecruiterConnection) -> Iterator[Turn]:
    """A turn; RecruiterBusy if another process has one."""
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
    """Before something is paid: RecruiterBusy if the turn is gone, as after a disconnect."""
    if (turn := _turn.get()) is not None:
        turn.go_on()


def keep_turn() -> None:
    if (turn := _turn.get()) is not None:
        turn.keep()


def _busy(name: str) -> str:
    text = _("Another process calls {recruiter} at the moment. Try again in a minute.")
    return text.format(recruiter=name)


# One thing after another at a recruiter: one that fails each time holds up no other, and a
# recruiter that is away is not asked about all of them.

logger = logging.getLogger(__name__)
# So long a round may wait for what fails; the rest of it has its turn in the next.
MOST_SECONDS = 30
# What failed in so many rounds is left out of the next ones, twice as long each time.
ROUNDS_BEFORE = 5
LONGEST_PAUSE_SECONDS = 600
REMEMBERED_SECONDS = 3600


class Patience:
    """Runs steps one after the other and passes over those that fail; the last problem is raised
    at the end, or when failed steps have used MOST_SECONDS. Nested ones count only the time of
    failures."""

    def __init__(self) -> None:
        self._problem: RecruiterProblem | None = None
        self._seconds = 0.0

    def try_to(self, do: Callable[[], object], *, key: str = "") -> None:
        """Do one step. A step that failed in several rounds under this key is left out for a
        while."""
        if key and (left_out := cache.get(f"recruiter-left-out:{key}")):
            self._problem = self._problem or Unreachable(left_out)
            return
        keep_turn()
        began = time.monotonic()
        try:
            do()
        # The turn went to another process, which does the rest; or our own database is away.
        except (RecruiterBusy, OperationalError, InterfaceError):
            raise
        except RecruiterProblem as problem:
            self._note(problem, key, began)
        except Exception as error:
            # Of one answer that nobody has thought of, say: no reason to leave out all others.
            logger.exception("A recruiter is called on without this")
            text = _("This failed ({error}): the site's log has the rest.")
            self._note(RecruiterProblem(text.format(error=type(error).__name__)), key, began)
        else:
            if key:
                cache.delete(f"recruiter-failures:{key}")

    def _note(self, problem: RecruiterProblem, key: str, began: float) -> None:
        waited = time.monotonic() - began if problem.waited is None else problem.waited
        self._problem, self._seconds = problem, self._seconds + waited
        if key:
            _remember(key, str(problem))
        if self._seconds >= MOST_SECONDS:
            problem.waited = self._seconds
            raise problem

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and self._problem is not None:
            self._problem.waited = self._seconds
            raise self._problem


def _remember(key: str, problem: str) -> None:
    n: int = cache.get(f"recruiter-failures:{key}", 0) + 1
    cache.set(f"recruiter-failures:{key}", n, REMEMBERED_SECONDS)
    if n >= ROUNDS_BEFORE:
        pause = min(60 * 2 ** (n - ROUNDS_BEFORE + 1), LONGEST_PAUSE_SECONDS)
        cache.set(f"recruiter-left-out:{key}", problem or "-", pause)
