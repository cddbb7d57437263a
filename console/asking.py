"""A page's side of background work: asking for it once, stopping it, asking again.

A page writes down what it wants and hands the row's key to the task queue; the background
worker claims the row, does the work, and keeps the row true for the page that polls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from annotation.models import Study
from console.models import Work
from console.tasks import do_work


def ask(
    *,
    study: Study,
    kind: Work.Kind,
    names: Sequence[str] = (),
    arguments: Mapping[str, Any] | None = None,
    asked_by: User | None = None,
    basis: str = "",
) -> Work:
    """Queue work on a study; the same work that still waits or runs is not doubled."""
    noted = Work(
        study=study,
        kind=kind,
        names=list(names),
        arguments=dict(arguments or {}),
        asked_by=asked_by,
        basis=basis,
    )
    work, is_new = _noted(noted)
    if is_new:
        do_work.enqueue(work.pk)
        work.refresh_from_db()
    return work


@transaction.atomic
def _noted(work: Work) -> tuple[Work, bool]:
    # Whoever asks at the same moment waits here, and then finds the work asked for.
    Study.objects.select_for_update().get(pk=work.study_id)
    same = Work.objects.of(work.study).of_kind(work.kind).unfinished().filter(stop_asked=False)
    for found in same:
        if (found.names, found.arguments) == (work.names, work.arguments):
            return found, False
    work.save()
    return work, True


def ask_again(*, work: Work, asked_by: User | None = None) -> Work:
    """Queue the same work anew, after it failed or was stopped."""
    return ask(
        study=work.study,
        kind=Work.Kind(work.kind),
        names=work.names,
        arguments=work.arguments,
        asked_by=asked_by,
        basis=work.basis,
    )


def stop(*, work: Work) -> None:
    """Ask running work to end at its next step; what still waits never starts."""
    row = Work.objects.filter(pk=work.pk)
    row.filter(state=Work.State.QUEUED).update(
        state=Work.State.STOPPED, finished_at=timezone.now(), told="Stopped before it began."
    )
    row.filter(state=Work.State.RUNNING).update(stop_asked=True)
