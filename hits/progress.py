"""How far a study is."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, Min, OuterRef, QuerySet, Sum
from django.db.models.functions import Coalesce

from annotation.models import Item, Study
from annotation.models.studies import counted
from hits.models import SIZE, Assignment, Batch, Hit, PracticeHit


@dataclass(frozen=True)
class StudyProgress:
    """HITs and assignments of all batches of a study."""

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
    """Whether workers may find one of them on this site's own marketplace."""
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
