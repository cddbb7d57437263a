"""What a batch came to, by our record and by the marketplace's own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from django.core.cache import cache
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Candidate, Study, Submission
from annotation.models.judgments import PLAUSIBLY_TIMED, SubmissionQuerySet
from annotation.models.studies import counted
from hits.costs import Spend, spend_of
from hits.exceptions import MarketplaceFault
from hits.foreign_records import amount_usd, count
from hits.models import Appeal, Assignment, Batch, Hit, Recruitment, Statement
from hits.orders import LATIN_SQUARE, is_even
from hits.requester_api import post

if TYPE_CHECKING:
    from numpy.typing import NDArray


SECONDS_AN_HOUR = 3600
SPENT_USD = ("rewards_usd", "fees_usd", "bonuses_usd", "bonus_fees_usd")
SUMS_USD = (*SPENT_USD, "held_usd")
COUNTS = ("accepted", "submitted", "approved", "rejected", "returned", "abandoned")
QUARTILES = (25, 50, 75)


@dataclass(frozen=True)
class Quartiles:
    first: float
    median: float
    third: float
    n: int


@dataclass(frozen=True)
class OrderBalance:
    n_items: int
    n_uneven: int


@dataclass(frozen=True)
class BatchReport:
    """A batch in numbers. `seconds` and `hourly_usd` are None where nobody's time is known, the
    latter of participants too, whose pay is their recruiter's, and where no time may be a person's:
    `n_implausible` are those it is not made of. `statement` is None where the marketplace has none,
    as Amazon's. `orders` is None unless the protocol balances the order of candidates."""

    batch: Batch
    n_published: int
    n_collected: int
    n_approved: int
    n_rejected: int
    n_undecided: int
    n_unreadable: int
    n_appeals: int
    n_workers: int
    seconds: Quartiles | None
    hourly_usd: Quartiles | None
    n_implausible: int
    spend: Spend
    statement: Statement | None
    orders: OrderBalance | None

    @property
    def difference_usd(self) -> Decimal | None:
        """What the marketplace has taken beyond our record; zero where the ledgers agree."""
        if self.statement is None:
            return None
        return self.statement.total_usd - self.spend.total_usd

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
        n_collected=Count("*"),
        n_approved=Count("status", filter=Q(status=status.APPROVED)),
        n_rejected=Count("status", filter=Q(status=status.REJECTED)),
        n_undecided=Count("status", filter=Q(status=status.SUBMITTED)),
        n_workers=Count("worker", distinct=True),
    )
    beside = Batch.objects.filter(pk=batch.pk).values(
        n_published=counted(Hit.objects.published(), "batch"),
        n_unreadable=counted(Assignment.objects.unreadable(), "hit__batch"),
        n_appeals=counted(Appeal.objects.unanswered(), "assignment__hit__batch"),
    )
    submissions = Submission.objects.filter(assignment__hit__batch=batch).timed()
    seconds, paid_seconds = _seconds(submissions)
    return BatchReport(
        batch=batch,
        **counts,
        **beside.get(),
        seconds=_quartiles(seconds),
        hourly_usd=None
        if batch.is_recruited
        else _quartiles(float(batch.reward_usd) * SECONDS_AN_HOUR / paid_seconds),
        n_implausible=len(seconds) - len(paid_seconds),
        spend=spend_of(batch),
        statement=Statement.objects.filter(batch=batch).first(),
        orders=order_balance(batch),
    )


def order_balance(batch: Batch) -> OrderBalance | None:
    """Of submissions that are not rejected; None unless the protocol balances orders.

    Counted once for each version of the study's judgments: a page would otherwise read every order
    at each request. Quality checks are left out.
    """
    if batch.document.order.policy != LATIN_SQUARE:
        return None
    key = f"order-balance:{batch.pk}:{batch.study.judgments_version}"
    balance: OrderBalance | None = cache.get_or_set(key, lambda: _counted_orders(batch))
    return balance


def _counted_orders(batch: Batch) -> OrderBalance:
    items = Hit.objects.of(batch).values("item")
    keys = set(Candidate.objects.filter(item__in=items).values_list("item", "key"))
    orders: defaultdict[int, list[list[str]]] = defaultdict(list)
    rows = Submission.objects.filter(assignment__hit__batch=batch).accepted()
    for item, order in rows.order_by().values_list("item", "shown_order").iterator():
        orders[item].append([key for key in order if (item, key) in keys])
    return OrderBalance(len(orders), sum(not is_even(each) for each in orders.values()))


def fetch_statement(*, batch: Batch) -> Statement | None:
    """Store what the marketplace says of the batch's HITs; None where it has no statements."""
    answer = post(batch.connection, "/statement", {"annotation_prefix": f"assay:{batch.key}:"})
    if answer is None:
        return None
    sums = {name: amount_usd(answer.get(name), name) for name in SUMS_USD}
    numbers = answer.get("assignments")
    if not isinstance(numbers, dict):
        raise MarketplaceFault(_("its statement counts no assignments"), code="no_counts")
    counts = {f"n_{name}": count(numbers.get(name), name) for name in COUNTS}
    statement, _is_new = Statement.objects.update_or_create(
        batch=batch, defaults=sums | counts | {"fetched_at": timezone.now()}
    )
    return statement


def refresh_statements(*, study: Study) -> None:
    """Fetch anew the statements that payments of ours have left behind."""
    for batch in Batch.objects.of(study).started().select_related("connection"):
        stored, ours = (
            Statement.objects.filter(batch=batch).values(*SPENT_USD).first(),
            spend_of(batch),
        )
        if stored is not None and stored != {name: getattr(ours, name) for name in SPENT_USD}:
            fetch_statement(batch=batch)


def _seconds(submissions: SubmissionQuerySet) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How long each took, and of these each time that may be a person's.

    Marketplaces tell whole seconds: the many that took as long are counted by the database.
    """
    plausible = Count("seconds", filter=PLAUSIBLY_TIMED)
    rows = submissions.order_by().values_list("seconds").annotate(n=Count("*"), n_paid=plausible)
    counts = np.array(list(rows), float).reshape(-1, 3)
    n, n_paid = counts[:, 1].astype(int), counts[:, 2].astype(int)
    return np.repeat(counts[:, 0], n), np.repeat(counts[:, 0], n_paid)


def _quartiles(values: NDArray[np.float64]) -> Quartiles | None:
    if not len(values):
        return None
    first, median, third = np.percentile(values, QUARTILES)
    return Quartiles(float(first), float(median), float(third), len(values))


def list_batches(study: Study) -> list[tuple[Batch, BatchReport]]:
    started = Batch.objects.of(study).started().select_related("connection")
    return [(batch, batch_report(batch)) for batch in started.order_by("pk")]


def list_recruitments(study: Study) -> list[Recruitment]:
    rows = Recruitment.objects.of(study).exclude(public_id="")
    rows = rows.exclude(state__in=[*Recruitment.OVER, Recruitment.State.DRAFT])
    return list(rows.select_related("batch", "recruiter").order_by("pk"))
