"""How far a study is, and what every batch of many studies has and lacks, counted at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, DateTimeField, Exists, Min, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from annotation.models import Item, Study
from annotation.models.studies import counted
from annotation.pages.study import Facts, stage_facts
from hits.costs import cost_of_assignment
from hits.models import SIZE, Appeal, Assignment, Batch, Hit, PracticeHit


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
        """Assignments that were put on offer and have not come in."""
        return max(0, self.n_offered - self.n_collected)


def is_offered_here(batches: Iterable[Batch]) -> bool:
    return any(
        not batch.closed_at and not batch.is_recruited and batch.connection.is_on_this_site
        for batch in batches
    )


def progress_counts() -> dict[str, Coalesce]:
    """The counts of a `StudyProgress`, for a statement that reads a study."""
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


def first_auto_approval(study: Study) -> datetime | None:
    """When the marketplace approves the first of the undecided assignments by itself."""
    assignments = Assignment.objects.undecided().filter(hit__batch__study=study).order_by()
    delay = "hit__batch__auto_approval_delay_seconds"
    due = [
        first + timedelta(seconds=seconds)
        for seconds, first in assignments.values_list(delay).annotate(first=Min("submitted_at"))
    ]
    return min(due, default=None)


def unreadable_assignments(study: Study) -> QuerySet[Assignment]:
    """Assignments kept of which no submission could be made; each says why."""
    return Assignment.objects.unreadable().filter(hit__batch__study=study)


def progress_in(facts: Facts) -> StudyProgress:
    return StudyProgress(**{field.name: facts[field.name] for field in fields(StudyProgress)})


def progress_of(study: Study) -> StudyProgress:
    return progress_in(stage_facts(study))


@dataclass(frozen=True)
class _Counts:
    size: int | None = None
    n_undecided: int = 0
    n_flagged: int = 0
    n_unreadable: int = 0
    n_unreadable_undecided: int = 0
    first: datetime | None = None


@dataclass(frozen=True)
class BatchStanding:
    batch: Batch
    counts: Sequence[_Counts] = field(default_factory=tuple)
    n_appeals: int = 0
    first_appeal_at: datetime | None = None

    @property
    def n_offered(self) -> int:
        return self.batch.n_published * (self.batch.max_assignments + self.batch.n_added)

    @property
    def n_collected(self) -> int:
        return self.batch.n_collected

    @property
    def n_missing(self) -> int:
        return max(self.n_offered - self.n_collected, 0)

    @property
    def n_undecided(self) -> int:
        return sum(one.n_undecided for one in self.counts)

    @property
    def n_flagged(self) -> int:
        return sum(one.n_flagged for one in self.counts)

    @property
    def n_unreadable(self) -> int:
        return sum(one.n_unreadable for one in self.counts)

    @property
    def undecided_usd(self) -> Decimal:
        """What approving all that waits costs, with fees."""
        return self._price((one.size, one.n_undecided) for one in self.counts)

    @property
    def unreadable_usd(self) -> Decimal:
        """What those that could not be read and wait cost where nobody rejects them."""
        return self._price((one.size, one.n_unreadable_undecided) for one in self.counts)

    @property
    def missing_usd(self) -> Decimal:
        """What the missing assignments cost with fees."""
        return self.price_of(self.n_missing)

    def price_of(self, n_assignments: int) -> Decimal:
        """What so many assignments cost with fees, at the batch's own size of HITs."""
        return self._price([(None, n_assignments)])

    def _price(self, numbers: Iterable[tuple[int | None, int]]) -> Decimal:
        batch = self.batch
        prices = (
            n * cost_of_assignment(batch, size or batch.wave_assignments(1)) for size, n in numbers
        )
        return sum(prices, Decimal(0))

    @property
    def first_approval_at(self) -> datetime | None:
        """When the marketplace approves the first of the undecided by itself."""
        firsts = [one.first for one in self.counts if one.first is not None]
        if not firsts:
            return None
        return min(firsts) + timedelta(seconds=self.batch.auto_approval_delay_seconds)


def batch_standings(studies: Sequence[Study]) -> list[BatchStanding]:
    """Every published batch of the studies, in three statements."""
    batches = Batch.objects.filter(study__in=studies).started().progressing()
    counts, appeals = _counts(studies), _appeals(studies)
    return [
        BatchStanding(batch, counts.get(batch.pk, ()), *appeals.get(batch.pk, (0, None)))
        for batch in batches.select_related("connection")
    ]


def _counts(studies: Sequence[Study]) -> dict[int, list[_Counts]]:
    undecided = Q(status=Assignment.Status.SUBMITTED, decision="")
    unreadable = Q(submission=None) & ~Q(problem="")
    rows = Assignment.objects.filter(hit__batch__study__in=studies).order_by()
    groups = rows.values_list("hit__batch", "hit__max_assignments")
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
    counts: dict[int, list[_Counts]] = defaultdict(list)
    for batch, size, *numbers in waiting.union(unread, all=True):
        counts[batch].append(_Counts(size, *numbers))
    return counts


def _appeals(studies: Sequence[Study]) -> dict[int, tuple[int, datetime]]:
    rows = Appeal.objects.unanswered().filter(assignment__hit__batch__study__in=studies)
    counts = rows.order_by().values_list("assignment__hit__batch")
    return {
        pk: (n, first) for pk, n, first in counts.annotate(n=Count("*"), first=Min("appealed_at"))
    }
