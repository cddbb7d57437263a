"""Who scores a run: one process at a time, and another as soon as that one is gone.

A process takes a run by a conditional UPDATE, and with every batch it writes shows that it
still has it. A process that was killed is found out at once on its own machine, and by its
silence on another.
"""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from metrics.exceptions import RunBusy, RunTaken
from metrics.models import ScoringRun, ScoringRunQuerySet

# A process on another machine that was silent for so long is taken for lost.
LOST_AFTER = timedelta(minutes=30)
# Tells this process from an earlier one that had the same number.
START = secrets.token_hex(4)


@dataclass(frozen=True)
class Claim:
    """A run in the hands of one caller."""

    run: ScoringRun
    holder: str

    def hold(self) -> None:
        """Show a sign of life, inside the transaction that writes; RunTaken if it is lost."""
        if not self._row().update(seen_at=timezone.now()):
            raise RunTaken(
                f"{self.run.metric}: the run was stopped or taken over; what was done is kept."
            )

    def end(self, state: ScoringRun.State, error: str = "") -> None:
        """Let go of the run, unless it is in other hands already."""
        self._row().update(state=state, error=error, claimed_by="", seen_at=timezone.now())

    def _row(self) -> ScoringRunQuerySet:
        return ScoringRun.objects.filter(pk=self.run.pk, claimed_by=self.holder)


@contextmanager
def claimed(run: ScoringRun, *, n_before: int, n_total: int) -> Iterator[Claim]:
    """Hold a run while it is being scored; how that ends becomes its state."""
    claim = _take(run, n_before, n_total)
    try:
        yield claim
    except BaseException as error:
        claim.end(ScoringRun.State.FAILED, str(error) or type(error).__name__)
        raise
    claim.end(ScoringRun.State.DONE)


def stop_run(*, run: ScoringRun) -> None:
    """Take a run from whoever scores it: that process ends before it writes another batch."""
    ScoringRun.objects.running().filter(pk=run.pk).update(
        state=ScoringRun.State.FAILED, error="Stopped; what was done is kept.", claimed_by=""
    )


def is_abandoned(run: ScoringRun) -> bool:
    """Whether a run says that it is being scored, but the process that did is gone."""
    if run.state != ScoringRun.State.RUNNING:
        return False
    host, pid, start, _ = run.claimed_by.split()
    if host != socket.gethostname():
        return run.seen_at is None or run.seen_at < timezone.now() - LOST_AFTER
    if int(pid) == os.getpid():
        return start != START
    return not _is_alive(int(pid))


def _take(run: ScoringRun, n_before: int, n_total: int) -> Claim:
    there = ScoringRun.objects.get(pk=run.pk)
    holder = f"{socket.gethostname()} {os.getpid()} {START} {secrets.token_hex(4)}"
    now = timezone.now()
    # Nobody may have come in between since the run was looked at.
    unchanged = ScoringRun.objects.filter(pk=run.pk, state=there.state, claimed_by=there.claimed_by)
    is_free = there.state != ScoringRun.State.RUNNING or is_abandoned(there)
    if not is_free or not unchanged.update(
        state=ScoringRun.State.RUNNING,
        error="",
        claimed_by=holder,
        n_before=n_before,
        n_total=n_total,
        started_at=now,
        seen_at=now,
    ):
        raise RunBusy(
            f"{run.metric} is being scored already in study '{run.study.slug}'. "
            "Wait for it to finish, or stop it."
        )
    return Claim(run, holder)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
