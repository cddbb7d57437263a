"""One thing after another at a recruiter: one that fails each time holds up no other, and a
recruiter that is away is not asked about all of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from django.core.cache import cache
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext as _

from marketplace.exceptions import RecruiterBusy
from marketplace.recruiting.problems import RecruiterProblem, Unreachable
from marketplace.recruiting.turns import keep_turn

logger = logging.getLogger(__name__)
# So long a round may wait for what fails; the rest of it has its turn in the next.
MOST_SECONDS = 30
# What failed in so many rounds is left out of the next ones, twice as long each time.
ROUNDS_BEFORE = 5
LONGEST_PAUSE_SECONDS = 600
REMEMBERED_SECONDS = 3600


class Patience:
    """Passes over what fails, or may not be seen with the token; the last problem is raised when
    all have had their turn, or the time for what fails is used up. One within another uses up the
    time of both with what fails alone, not with what it did besides."""

    def __init__(self) -> None:
        self._problem: RecruiterProblem | None = None
        self._seconds = 0.0

    def try_to(self, do: Callable[[], object], *, key: str = "") -> None:
        """Do one thing; under its key it is known again in the next round."""
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
        """Remember it as the last, and raise it where no time is left for what fails."""
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
