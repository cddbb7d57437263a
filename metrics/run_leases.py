"""Who scores a run: one process at a time, from a page or from the command line, by a lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from metrics.exceptions import RunBusy, RunTaken
from metrics.models import ScoringRun
from work.leases import Lease, heartbeat, lease_term, lock, new_token
from work.models import lapsed


class RunLease(Lease):
    """A run in the hands of one caller."""

    def check(self) -> None:
        """RunTaken where the run is in other hands."""
        if self.is_lost:
            raise RunTaken(f"{self.row}: the run was taken over; what was done is kept.")

    def end(self, state: ScoringRun.State, error: str = "") -> None:
        """Let go of the run, unless it is in other hands already."""
        self.rows().update(state=state, error=error, lease_token="", leased_until=None)


@contextmanager
def leased(run: ScoringRun, *, n_before: int, n_total: int) -> Iterator[RunLease]:
    """Hold a run while it is being scored; how that ends becomes its state."""
    lease = _take(run, n_before, n_total)
    try:
        with heartbeat(lease):
            yield lease
    except BaseException as error:
        lease.end(ScoringRun.State.FAILED, str(error) or type(error).__name__)
        raise
    lease.end(ScoringRun.State.DONE)


@transaction.atomic
def _take(run: ScoringRun, n_before: int, n_total: int) -> RunLease:
    now = timezone.now()
    is_free = ~Q(state=ScoringRun.State.RUNNING) | Q(leased_until=None) | lapsed(now)
    free = lock(ScoringRun.objects.filter(is_free, pk=run.pk))
    if free is None:
        raise RunBusy(
            f"{run.metric} is being scored already in study '{run.study.slug}'. Wait for it to "
            "finish, or stop it; if its process was killed, try again in half a minute."
        )
    token = new_token()
    ScoringRun.objects.filter(pk=run.pk).update(
        state=ScoringRun.State.RUNNING,
        error="",
        lease_token=token,
        leased_until=now + lease_term(),
        n_before=n_before,
        n_total=n_total,
        started_at=now,
    )
    return RunLease(run, token)
