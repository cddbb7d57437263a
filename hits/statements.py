"""What a batch came to, by our record and by the marketplace's own."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Count, Q, Sum
from django.utils import timezone

from hits.costs import cost_of_assignment
from hits.models import Assignment, Batch, Hit, Payment, Sending, Statement
from hits.requester_api import post

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTHING = Decimal("0.00")
SECONDS_AN_HOUR = 3600
QUARTILES = (25, 50, 75)


@dataclass(frozen=True)
class Quartiles:
    """The middle half of what was measured."""

    first: float
    median: float
    third: float
    n: int


@dataclass(frozen=True)
class Spend:
    """Money that has left the requester's account for a batch."""

    rewards_usd: Decimal
    fees_usd: Decimal
    bonuses_usd: Decimal
    bonus_fees_usd: Decimal

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd + self.bonuses_usd + self.bonus_fees_usd


@dataclass(frozen=True)
class BatchReport:
    """A batch in numbers. `seconds` and `hourly_usd` are None where nobody's time is known;
    `statement` where the marketplace has none, as Amazon's."""

    n_published: int
    n_collected: int
    n_approved: int
    n_rejected: int
    n_undecided: int
    n_unreadable: int
    n_workers: int
    seconds: Quartiles | None
    hourly_usd: Quartiles | None
    spend: Spend
    statement: Statement | None

    @property
    def difference_usd(self) -> Decimal | None:
        """What the marketplace has taken beyond our record; zero where the ledgers agree."""
        if self.statement is None:
            return None
        return spend_there(self.statement).total_usd - self.spend.total_usd

    @property
    def dropout_share(self) -> float | None:
        """Of the assignments that ended, those returned or abandoned."""
        if self.statement is None:
            return None
        n_dropped = self.statement.n_returned + self.statement.n_abandoned
        n_ended = n_dropped + self.n_collected
        return n_dropped / n_ended if n_ended else None


def batch_report(batch: Batch) -> BatchReport:
    """A batch's report, from what is stored: no marketplace is asked."""
    assignments = Assignment.objects.of(batch)
    status = Assignment.Status
    counts = assignments.order_by().aggregate(
        n_collected=Count("pk"),
        n_approved=Count("pk", filter=Q(status=status.APPROVED)),
        n_rejected=Count("pk", filter=Q(status=status.REJECTED)),
        n_undecided=Count("pk", filter=Q(status=status.SUBMITTED)),
        n_workers=Count("worker", distinct=True),
    )
    seconds = _seconds(batch)
    return BatchReport(
        **counts,
        n_published=Hit.objects.of(batch).published().count(),
        n_unreadable=assignments.unreadable().count(),
        seconds=_quartiles(seconds),
        hourly_usd=_quartiles(float(batch.reward_usd) * SECONDS_AN_HOUR / seconds),
        spend=spend_of(batch, n_approved=counts["n_approved"]),
        statement=Statement.objects.filter(batch=batch).first(),
    )


def spend_of(batch: Batch, *, n_approved: int) -> Spend:
    """What our record says was paid: approved assignments, and confirmed payments beside them."""
    sizes = (
        Assignment.objects.of(batch)
        .filter(status=Assignment.Status.APPROVED)
        .order_by()
        .values_list("hit__max_assignments")
        .annotate(n=Count("pk"))
    )
    total_usd = sum(
        (n * cost_of_assignment(batch, size or batch.max_assignments) for size, n in sizes), NOTHING
    )
    rewards_usd = batch.reward_usd * n_approved
    paid = Payment.objects.filter(assignment__hit__batch=batch, state=Sending.CONFIRMED)
    sums = paid.aggregate(amount=Sum("amount_usd"), fee=Sum("fee_usd"))
    return Spend(
        rewards_usd=rewards_usd,
        fees_usd=total_usd - rewards_usd,
        bonuses_usd=sums["amount"] or NOTHING,
        bonus_fees_usd=sums["fee"] or NOTHING,
    )


def spend_there(statement: Statement) -> Spend:
    """What the marketplace says was paid."""
    return Spend(
        statement.rewards_usd,
        statement.fees_usd,
        statement.bonuses_usd,
        statement.bonus_fees_usd,
    )


def fetch_statement(*, batch: Batch) -> Statement | None:
    """Store what the marketplace says of the batch's HITs; None where it has no statements."""
    answer = post(batch.connection, "/statement", {"annotation_prefix": f"assay:{batch.key}:"})
    if answer is None:
        return None
    counts = {f"n_{name}": int(number) for name, number in answer.pop("assignments").items()}
    money = {name: Decimal(amount) for name, amount in answer.items()}
    statement, _created = Statement.objects.update_or_create(
        batch=batch, defaults=money | counts | {"fetched_at": timezone.now()}
    )
    return statement


def _seconds(batch: Batch) -> NDArray[np.float64]:
    """How long each readable assignment took; what took no time at all was not measured."""
    rows = Assignment.objects.of(batch).filter(submission__seconds__gt=0).order_by()
    return np.fromiter(rows.values_list("submission__seconds", flat=True), float)


def _quartiles(values: NDArray[np.float64]) -> Quartiles | None:
    if not len(values):
        return None
    first, median, third = np.percentile(values, QUARTILES)
    return Quartiles(float(first), float(median), float(third), len(values))
