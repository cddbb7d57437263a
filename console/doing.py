"""The background worker's side of work: claiming it, telling how far it is, writing what came."""

import time
from collections.abc import Iterable
from typing import TypeVar

from django.utils import timezone

from console.exceptions import WorkStopped
from console.models import Work

T = TypeVar("T")
TELL_EVERY_SECONDS = 0.5


def claim(work_id: int) -> Work | None:
    """Take queued work for this process; None where it was stopped or taken already."""
    now = timezone.now()
    queued = Work.objects.filter(pk=work_id, state=Work.State.QUEUED)
    if not queued.update(state=Work.State.RUNNING, started_at=now, seen_at=now):
        return None
    return Work.objects.select_related("study").get(pk=work_id)


def finish(*, work: Work, state: Work.State, told: str) -> None:
    """Write down what came of it."""
    now = timezone.now()
    Work.objects.filter(pk=work.pk).update(state=state, told=told, seen_at=now, finished_at=now)


class Telling:
    """A Progress that keeps a row of Work true, and ends it when asked to."""

    def __init__(self, work: Work, doing: str) -> None:
        self.row = Work.objects.filter(pk=work.pk)
        self.doing = doing[:200]

    def __call__(self, things: Iterable[T], total: int) -> Iterable[T]:
        self._tell(n_done=0, n_total=total)
        told_at = time.monotonic()
        n_done = 0
        for n_done, thing in enumerate(things, start=1):
            yield thing
            if time.monotonic() - told_at >= TELL_EVERY_SECONDS:
                self._tell(n_done=n_done)
                told_at = time.monotonic()
        self._tell(n_done=n_done)

    def _tell(self, **numbers: int) -> None:
        self.row.update(doing=self.doing, seen_at=timezone.now(), **numbers)
        if self.row.filter(stop_asked=True).exists():
            raise WorkStopped("Stopped as asked; what was done until then is kept.")
