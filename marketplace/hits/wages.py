"""Pay per hour, as it was: the reward over the median time that workers really took."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import median

from django.core.cache import cache
from django.db.models.functions import Coalesce

from marketplace.models import Assignment, HitType, PaidBy, Requester
from marketplace.money.amounts import CENT

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
    usd_per_hour: Decimal
    seconds: int
    # 0: the time is the requester's estimate.
    n_workers: int = 0


def wages_by_type(hit_types: Iterable[HitType]) -> dict[int, Wage]:
    """By HIT type key; as the requester estimates with fewer than ten workers."""
    by_key = {f"marketplace.wage.{hit_type.public_id}": hit_type for hit_type in hit_types}
    # One that is not known yet is kept as False: None would be looked for again.
    kept: dict[str, Wage | bool] = cache.get_many(by_key)
    wages = {}
    for key, hit_type in by_key.items():
        wage = kept[key] if key in kept else _observed_wage(hit_type, key)
        if isinstance(wage, Wage):
            wages[hit_type.pk] = wage
        elif seconds := hit_type.estimated_seconds:
            wages[hit_type.pk] = Wage(_usd_per_hour(hit_type, seconds), seconds)
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
    return Wage(_usd_per_hour(hit_type, median_seconds), median_seconds, len(by_worker))


def _usd_per_hour(hit_type: HitType, seconds: int) -> Decimal:
    return (hit_type.reward_usd * HOUR_SECONDS / seconds).quantize(CENT)


# How a requester has treated workers: what share was approved, how soon, and what an hour paid.


def requester_record(requester: Requester) -> dict[str, Decimal | int] | None:
    """A record of the newest decided assignments; None with fewer than ten workers. Participants
    are decided on and paid elsewhere, so they are left out."""
    here = Assignment.objects.of(requester).filter(
        status__in=Assignment.DECIDED_STATUSES, paid_by=PaidBy.LEDGER, submitted_at__isnull=False
    )
    rows = here.order_by("-pk").values_list(
        "worker_id",
        "status",
        "accepted_at",
        "submitted_at",
        Coalesce("approved_at", "rejected_at"),
        "reward_usd",
    )[:MOST_LOOKED_AT]
    hourly: dict[int, list[Decimal]] = defaultdict(list)
    reviews: list[float] = []
    n_approved = n_decided = 0
    for worker, status, accepted_at, submitted_at, decided_at, reward_usd in rows:
        seconds = max(1, round((submitted_at - accepted_at).total_seconds()))
        hourly[worker].append(reward_usd * HOUR_SECONDS / seconds)
        if decided_at is not None:
            reviews.append((decided_at - submitted_at).total_seconds())
        n_decided += 1
        n_approved += status == Assignment.Status.APPROVED
    if len(hourly) < FEWEST_WORKERS or not reviews:
        return None
    return {
        "percent_approved": 100 * n_approved // n_decided,
        "median_review_seconds": max(0, round(median(reviews))),
        # The median of workers' medians, so that one worker does not decide alone.
        "usd_per_hour": median(median(each) for each in hourly.values()).quantize(CENT),
        "n_decided": n_decided,
        "n_workers": len(hourly),
    }
