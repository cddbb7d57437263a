"""Batches of studies that were launched, as the app that launches them tells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from console.registrations import load_registrations


@dataclass(frozen=True)
class LaunchedBatch:
    """A batch of which something may be on a marketplace; keys are those of the database."""

    key: int
    study: int
    round: int


FindBatches = Callable[[Collection[int]], Iterable[LaunchedBatch]]

_find_batches: list[FindBatches] = []


def register_launched_batches(find_batches: FindBatches) -> FindBatches:
    """Let an app tell which batches of studies it launched, the oldest first."""
    _find_batches.append(find_batches)
    return find_batches


def list_launched_batches(studies: Collection[int]) -> list[LaunchedBatch]:
    load_registrations()
    return [batch for find_batches in _find_batches for batch in find_batches(studies)]
