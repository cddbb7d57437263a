from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from django.core.cache import cache
from django.db.models import Count, DateTimeField, Exists, Min, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Candidate, Item, Study, Submission
from annotation.models.judgments import PLAUSIBLY_TIMED
from annotation.models.studies import counted
from annotation.pages.stages import Facts, stage_facts
from hits.calls import amount_usd, count
from hits.connections import post
from hits.costs import Spend, cost_of_assignment, spend_of
from hits.exceptions import MarketplaceFault
from hits.models import (
    SIZE,
    Appeal,
    Assignment,
    Batch,
    Hit,
    Inquiry,
    PracticeHit,
    Recruitment,
    Statement,
)
from hits.questions import LATIN_SQUARE, is_even
from presentation.numbers import group_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class StudyProgress:
    n_hits: int
    n_published: int
    n_offered: int
    n_collected: int
    n_unreadable: int
    n_undecided: int
    n_items_without_hit: int
    n_recruited: int = 0  # batches whose participants a recruiter sends

    @property
    def n_awaited(self) -> int:
        return max(0, self.n_offered - self.n_collected)


def is_offered_here(batches: Iterable[Batch]) -> bool:
    return any(
        not batch.closed_at and not batch.is_recruited and batch.connection.is_on_this_site
        for batch in batches
    )


def progress_counts() -> dict[str, Coalesce]:
    hits, total = Hit.objects.published(), Sum(SIZE)
    own = (rows.filter(item=OuterRef("pk")) for rows in (Hit.objects, PracticeHit.objects))
    without = Item.objects.filter(*(~Exists(rows) for rows in own))
    return {
        "n_hits": counted(Hit.objects.all(), "batch__study"),
        "n_published": counted(hits, "batch__study"),
        "n_offered": counted(hits, "batch__study", total),
        "n_collected": counted(Assignment.objects.all(), "hit__batch__study"),
        # Of the few without a submission, which an index gives, and not of all.
        "n_unreadable": counted(Assignment.objects.unreadable(), "hit__batch__study"),
        "n_undecided": counted(Assignment.objects.undecided(), "hit__batch__study"),
        "n_items_without_hit": counted(without, "study"),
        "n_recruited": counted(Batch.objects.filter(is_recruited=True), "study"),
    }


def unreadable_assignments(study: Study) -> QuerySet[Assignment]:
    return Assignment.objects.unreadable().filter(hit__batch__study=study)


def progress_in(facts: Facts) -> StudyProgress:
    return StudyProgress(**{field.name: facts[field.name] for field in fields(StudyProgress)})


def progress_of(study: Study) -> StudyProgress:
    return progress_in(stage_facts(study))


SIZE_OF_HIT = "hit__max_assignments"


@dataclass(frozen=True)
class BatchStanding:
    batch: Batch
    # By the size of the HITs, as `_counts` counts them.
    counts: Sequence[dict[str, Any]] = ()
    n_appeals: int = 0
    first_appeal_at: datetime | None = None

    @property
    def n_offered(self) -> int:
        return self.batch.n_published * (self.batch.max_assignments + self.batch.n_added)

    @property
    def n_missing(self) -> int:
        return max(self.n_offered - self.batch.n_collected, 0)

    @property
    def n_undecided(self) -> int:
        return sum(one["n_undecided"] for one in self.counts)

    @property
    def n_flagged(self) -> int:
        return sum(one["n_flagged"] for one in self.counts)

    @property
    def n_unreadable(self) -> int:
        return sum(one["n_unreadable"] for one in self.counts)

    @property
    def undecided_usd(self) -> Decimal:
        return self._price((one[SIZE_OF_HIT], one["n_undecided"]) for one in self.counts)

    @property
    def unreadable_usd(self) -> Decimal:
        return self._price((one[SIZE_OF_HIT], one["n_unreadable_undecided"]) for one in self.counts)

    def price_of(self, n_assignments: int) -> Decimal:
        return self._price([(None, n_assignments)])

    def _price(self, numbers: Iterable[tuple[int | None, int]]) -> Decimal:
        batch = self.batch
        return sum(
            (
                n * cost_of_assignment(batch, size or batch.wave_assignments(1))
                for size, n in numbers
            ),
            Decimal(0),
        )

    @property
    def first_approval_at(self) -> datetime | None:
        firsts: list[datetime] = [one["first"] for one in self.counts if one["first"] is not None]
        if not firsts:
            return None
        return min(firsts) + timedelta(seconds=self.batch.auto_approval_delay_seconds)


def batch_standings(studies: Sequence[Study]) -> list[BatchStanding]:
    n_inquiries = counted(Inquiry.objects.unanswered(), "batch")
    started = Batch.objects.filter(study__in=studies).started()
    batches = started.progressing(n_inquiries=n_inquiries)
    counts, appeals = _counts(studies), _appeals(studies)
    return [
        BatchStanding(batch, counts.get(batch.pk, ()), *appeals.get(batch.pk, (0, None)))
        for batch in batches.select_related("connection")
    ]


def _counts(studies: Sequence[Study]) -> dict[int, list[dict[str, Any]]]:
    undecided = Q(status=Assignment.Status.SUBMITTED, decision="")
    unreadable = Q(submission=None) & ~Q(problem="")
    groups = (
        Assignment.objects.filter(hit__batch__study__in=studies)
        .order_by()
        .values("hit__batch", SIZE_OF_HIT)
    )
    # In two parts, which an index finds each, so that what is decided is not read again.
    waiting = groups.filter(undecided).annotate(
        n_undecided=Count("*"),
        n_flagged=Count("hit", filter=Q(submission__flag_reason__gt="")),
        n_unreadable=Value(0),
        n_unreadable_undecided=Value(0),
        first=Min("submitted_at"),
    )
    unread = groups.filter(unreadable).annotate(
        n_undecided=Value(0),
        n_flagged=Value(0),
        n_unreadable=Count("*"),
        n_unreadable_undecided=Count("hit", filter=undecided),
        first=Value(None, output_field=DateTimeField()),
    )
    return group_values((row["hit__batch"], row) for row in waiting.union(unread, all=True))


def _appeals(studies: Sequence[Study]) -> dict[int, tuple[int, datetime]]:
    counts = (
        Appeal.objects.unanswered()
        .filter(assignment__hit__batch__study__in=studies)
        .order_by()
        .values_list("assignment__hit__batch")
    )
    return {
        pk: (n, first) for pk, n, first in counts.annotate(n=Count("*"), first=Min("appealed_at"))
    }


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
    # `seconds` and `hourly_usd` are None if no time is known or plausible (`n_implausible` counts
    # those left out); `hourly_usd` also for participants. `statement` is None if the marketplace
    # has none, as Amazon's.

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
        if self.statement is None:
            return None
        return self.statement.total_usd - self.spend.total_usd

    @property
    def dropout_share(self) -> float | None:
        if self.statement is None:
            return None
        n_dropped = self.statement.n_returned + self.statement.n_abandoned
        n_ended = n_dropped + self.n_collected
        return n_dropped / n_ended if n_ended else None


def batch_report(batch: Batch) -> BatchReport:
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
    key = f"batch-times:{batch.key}:{batch.reward_usd}:{batch.study.judgments_version}"
    times = cast("dict[str, Any]", cache.get_or_set(key, lambda: _times(batch)))
    return BatchReport(
        batch=batch,
        **counts,
        **beside.get(),
        **times,
        spend=spend_of(batch),
        statement=getattr(batch, "statement", None),
        orders=order_balance(batch),
    )


def order_balance(batch: Batch) -> OrderBalance | None:
    # Cached per version of the study's judgments.
    if batch.document.order.policy != LATIN_SQUARE:
        return None
    balance: OrderBalance | None = cache.get_or_set(
        f"order-balance:{batch.pk}:{batch.study.judgments_version}", lambda: _counted_orders(batch)
    )
    return balance


def _counted_orders(batch: Batch) -> OrderBalance:
    items = Hit.objects.of(batch).values("item")
    keys = set(Candidate.objects.filter(item__in=items).values_list("item", "key"))
    rows = Submission.objects.filter(assignment__hit__batch=batch).accepted()
    orders = group_values(
        (item, [key for key in order if (item, key) in keys])
        for item, order in rows.order_by().values_list("item", "shown_order").iterator()
    )
    return OrderBalance(len(orders), sum(not is_even(each) for each in orders.values()))


def fetch_statement(*, batch: Batch) -> Statement | None:
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
    for batch in Batch.objects.of(study).started().select_related("connection"):
        stored = Statement.objects.filter(batch=batch).values(*SPENT_USD).first()
        ours = spend_of(batch)
        if stored is not None and stored != {name: getattr(ours, name) for name in SPENT_USD}:
            fetch_statement(batch=batch)


def _times(batch: Batch) -> dict[str, Any]:
    # Marketplaces tell whole seconds, so that the database can count equal ones.
    plausible = Count("seconds", filter=PLAUSIBLY_TIMED)
    rows = Submission.objects.filter(assignment__hit__batch=batch).timed().order_by()
    counts = rows.values_list("seconds").annotate(n=Count("*"), n_paid=plausible)
    values, n, n_paid = np.array(list(counts), float).reshape(-1, 3).T
    paid_seconds = np.repeat(values, n_paid.astype(int))
    hourly_usd = _quartiles(float(batch.reward_usd) * SECONDS_AN_HOUR / paid_seconds)
    return {
        "seconds": _quartiles(np.repeat(values, n.astype(int))),
        "hourly_usd": None if batch.is_recruited else hourly_usd,
        "n_implausible": int((n - n_paid).sum()),
    }


def _quartiles(values: NDArray[np.float64]) -> Quartiles | None:
    if not len(values):
        return None
    first, median, third = np.percentile(values, QUARTILES)
    return Quartiles(float(first), float(median), float(third), len(values))


def list_batches(study: Study) -> list[tuple[Batch, BatchReport]]:
    return [
        (batch, batch_report(batch))
        for batch in Batch.objects.of(study).started().select_related("connection").order_by("pk")
    ]


def list_recruitments(study: Study) -> list[Recruitment]:
    rows = Recruitment.objects.of(study).exclude(public_id="")
    return list(
        rows.exclude(state__in=[*Recruitment.OVER, Recruitment.State.DRAFT])
        .select_related("batch", "recruiter")
        .order_by("pk")
    )
