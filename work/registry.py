"""The kinds of jobs there are. Each app registers its own in a module `jobs`.

Those modules are imported when a kind is first looked up, not when the site starts: they bring
the statistics with them, which most commands need as little as they need jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from django.utils.module_loading import autodiscover_modules

from work.exceptions import JobKindUnknown

if TYPE_CHECKING:
    from django.db.models import Q
    from django_stubs_ext import StrOrPromise

    from work.execution import RunningJob

# Does the job and returns what came of it, in a sentence for pages.
Handler = Callable[["RunningJob"], str]

INTERACTIVE, SCORING, MARKETPLACE = "interactive", "scoring", "marketplace"
QUEUES = (INTERACTIVE, SCORING, MARKETPLACE)


@dataclass(frozen=True)
class JobKind:
    """How jobs of one name are done.

    `refusals` are errors written for people: they fail the job at once, in their own words.
    Whatever else is raised is tried again, up to `max_attempts` in all. Those that are `kept` are
    the only record of what they did, and no cleaning up deletes them.
    """

    name: str
    label: StrOrPromise
    queue: str
    handler: Handler
    refusals: tuple[type[Exception], ...]
    max_attempts: int
    every_seconds: float | None
    kept: Q | None


_kinds: dict[str, JobKind] = {}
_runners: list[Callable[[int], str]] = []


def register(
    name: str,
    *,
    label: StrOrPromise,
    queue: str,
    refusals: tuple[type[Exception], ...] = (),
    max_attempts: int = 5,
    every_seconds: float | None = None,
    kept: Q | None = None,
) -> Callable[[Handler], Handler]:
    if queue not in QUEUES:
        raise ValueError(f"queue must be one of {', '.join(QUEUES)}, got {queue!r}")

    def decorate(handler: Handler) -> Handler:
        _kinds[name] = JobKind(
            name, label, queue, handler, refusals, max_attempts, every_seconds, kept
        )
        return handler

    return decorate


def job_kind(name: str) -> JobKind:
    _import_jobs()
    try:
        return _kinds[name]
    except KeyError:
        known = ", ".join(sorted(_kinds)) or "none"
        raise JobKindUnknown(f"No app does jobs of kind '{name}'; there are: {known}.") from None


def job_kinds() -> Mapping[str, JobKind]:
    _import_jobs()
    return MappingProxyType(_kinds)


def job_runner(function: Callable[[int], str]) -> Callable[[int], str]:
    """Register the decorated function as the one that does the job that a message names: what sends
    messages and what does jobs need not import each other."""
    _runners[:] = [function]
    return function


def run_message(job_id: int) -> str:
    _import_jobs()
    return _runners[0](job_id)


@cache
def _import_jobs() -> None:
    autodiscover_modules("jobs")
