"""How long publishing, reviewing or changing may take over one marketplace, all calls together.

A heartbeat keeps the lease of a job however long its calls wait, so that a marketplace which
answers each of them just within its limit (hits.call_limits) would hold a worker for days. A run
has some minutes, and more with each thing that is done: what goes on at a fair pace never ends.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from django.utils.translation import gettext as _

from hits.call_limits import Deadline, call_time
from hits.exceptions import MarketplaceSlow
from presentation.progress import Progress, silently

T = TypeVar("T")
RUN_SECONDS = 300.0
# Two a second; a call takes a tenth of a second where nothing is wrong.
SECONDS_EACH = 0.5


class RunTime:
    """The time of one run, and what was done in it."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline, self._began = deadline, time.monotonic()
        self.n_done = 0

    def earn(self) -> None:
        """Count one thing that is done, and the time that it earns for the rest."""
        self.n_done += 1
        self._deadline.until += SECONDS_EACH

    def message(self) -> str:
        """Why it ends, and what may be done about it."""
        minutes = (time.monotonic() - self._began) / 60
        return _(
            "The marketplace answers too slowly: {n:,} done in {minutes:.0f} min, and nothing more "
            "is sent. What was done is kept. Try again to go on with the rest; if that is as slow, "
            "ask whoever runs the marketplace."
        ).format(n=self.n_done, minutes=minutes)


_run: ContextVar[RunTime | None] = ContextVar("run", default=None)


@contextmanager
def run_time() -> Iterator[None]:
    """Hold a run to its time; one within another has the time of that.

    It ends before a call, never in the middle of one, so that no answer is lost to it.
    MarketplaceSlow says how much was done.
    """
    if _run.get() is not None:
        yield
        return
    with call_time(RUN_SECONDS, cuts=False) as deadline:
        run = RunTime(deadline)
        token = _run.set(run)
        try:
            yield
        except MarketplaceSlow as slow:
            raise MarketplaceSlow(run.message()) from slow
        finally:
            _run.reset(token)


def earning(progress: Progress = silently) -> Progress:
    """The progress, where each thing that goes by earns the run it is in more time."""

    def passes(things: Iterable[T], total: int) -> Iterator[T]:
        for thing in progress(things, total):
            yield thing
            if (run := _run.get()) is not None:
                run.earn()

    return passes
