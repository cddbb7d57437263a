"""Pay per hour, as it was: the reward over the median time that workers really took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import median

from django.core.cache import cache

from marketplace.models import Assignment, HitType

FEWEST_WORKERS = 10
# The newest assignments of a group of HITs that are looked at.
MOST_LOOKED_AT = 1_000
# Of a group with so many, what was found holds for a minute: each page of each worker asks for it.
KEPT_FROM = 200
KEPT_SECONDS = 60
HOUR_SECONDS = 3600
# Nobody opens a page, reads and answers it in less; a program does, and its pay is nobody's.
LEAST_SECONDS_OF_A_PERSON = 2


@dataclass(frozen=True)
class Wage:
    """What a group of HITs pays for an hour, and whose time says so."""

    usd_per_hour: Decimal
    median_seconds: int
    n_workers: int


def observed_wages(hit_types: Iterable[HitType]) -> dict[int, Wage]:
    """By the primary key of a HIT type; nothing where fewer than ten workers have worked."""
    by_key = {f"marketplace.wage.{hit_type.public_id}": hit_type for hit_type in hit_types}
    # One that is not known yet is kept as False: None would be looked for again.
    kept: dict[str, Wage | bool] = cache.get_many(by_key)
    wages = {}
    for key, hit_type in by_key.items():
        wage = kept[key] if key in kept else _observed_wage(hit_type, key)
        if isinstance(wage, Wage):
            wages[hit_type.pk] = wage
    return wages


def _observed_wage(hit_type: HitType, key: str) -> Wage | None:
    rows = Assignment.objects.handed_in().filter(hit__hit_type=hit_type).order_by("-pk")
    times = list(rows.values_list("worker_id", "accepted_at", "submitted_at")[:MOST_LOOKED_AT])
    wage = _wage_of(hit_type, times)
    if len(times) >= KEPT_FROM:
        cache.set(key, wage or False, KEPT_SECONDS)
    return wage


def _wage_of(hit_type: HitType, times: list[tuple[int, datetime, datetime | None]]) -> Wage | None:
    by_worker: dict[int, list[float]] = defaultdict(list)
    for worker, accepted_at, submitted_at in times:
        if submitted_at is None:
            continue
        seconds = (submitted_at - accepted_at).total_seconds()
        if seconds >= LEAST_SECONDS_OF_A_PERSON:
            by_worker[worker].append(seconds)
    if len(by_worker) < FEWEST_WORKERS:
        return None
    # Of each worker's median, so that whoever did most does not decide alone.
    median_seconds = round(median(median(each) for each in by_worker.values()))
    usd = (hit_type.reward_usd * HOUR_SECONDS / median_seconds).quantize(Decimal("0.01"))
    return Wage(usd, median_seconds, len(by_worker))
