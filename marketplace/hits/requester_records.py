"""How a requester has treated workers: what share was approved, how soon, and what an hour paid."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from django.db.models.functions import Coalesce

from marketplace.hits.wages import FEWEST_WORKERS, HOUR_SECONDS, MOST_LOOKED_AT
from marketplace.models import Assignment, PaidBy, Requester

CENT = Decimal("0.01")


@dataclass(frozen=True)
class RequesterRecord:
    """Of the newest assignments that were decided on. The median pay for an hour is that of
    workers' own medians, so that whoever did most does not decide alone."""

    percent_approved: int
    median_review_seconds: int
    usd_per_hour: Decimal
    n_decided: int
    n_workers: int


def requester_record(requester: Requester) -> RequesterRecord | None:
    """What the requester's workers met with; None where fewer than ten have. Participants, who
    are decided on and paid elsewhere, are left out."""
    decided = Assignment.objects.of(requester).filter(status__in=Assignment.DECIDED_STATUSES)
    here = decided.filter(paid_by=PaidBy.LEDGER, submitted_at__isnull=False)
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
    usd = median(median(each) for each in hourly.values())
    return RequesterRecord(
        percent_approved=100 * n_approved // n_decided,
        median_review_seconds=max(0, round(median(reviews))),
        usd_per_hour=usd.quantize(CENT),
        n_decided=n_decided,
        n_workers=len(hourly),
    )
