"""Pay per hour, as it was: the reward over the median time that workers really took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from marketplace.models import Assignment, HitType

FEWEST_WORKERS = 10
# The newest assignments of a group of HITs that are looked at.
MOST_LOOKED_AT = 1_000
HOUR_SECONDS = 3600


@dataclass(frozen=True)
class Wage:
    """What a group of HITs pays for an hour, and whose time says so."""

    usd_per_hour: Decimal
    median_seconds: int
    n_workers: int


def observed_wages(hit_types: Iterable[HitType]) -> dict[int, Wage]:
    """By the primary key of a HIT type; nothing where fewer than ten workers have worked."""
    wages = {hit_type.pk: _observed_wage(hit_type) for hit_type in hit_types}
    return {key: wage for key, wage in wages.items() if wage is not None}


def _observed_wage(hit_type: HitType) -> Wage | None:
    rows = Assignment.objects.handed_in().filter(hit__hit_type=hit_type).order_by("-pk")
    times = rows.values_list("worker_id", "accepted_at", "submitted_at")[:MOST_LOOKED_AT]
    by_worker: dict[int, list[float]] = defaultdict(list)
    for worker, accepted_at, submitted_at in times:
        if submitted_at is not None:
            by_worker[worker].append((submitted_at - accepted_at).total_seconds())
    if len(by_worker) < FEWEST_WORKERS:
        return None
    # Of each worker's median, so that whoever did most does not decide alone.
    seconds = max(1, round(median(median(each) for each in by_worker.values())))
    usd = (hit_type.reward_usd * HOUR_SECONDS / seconds).quantize(Decimal("0.01"))
    return Wage(usd, seconds, len(by_worker))
