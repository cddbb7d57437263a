"""How far a study is."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, IntegerField, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from annotation.models import Study
from hits.models import Assignment, Hit


@dataclass(frozen=True)
class StudyProgress:
    """HITs and assignments of all batches of a study."""

    n_hits: int
    n_published: int
    n_wanted: int
    n_collected: int
    n_unreadable: int


def study_progress(study: Study) -> StudyProgress:
    """What was published of a study, and what came back."""
    hits = Hit.objects.filter(batch__study=study).order_by()
    assignments = Assignment.objects.filter(hit__batch__study=study).order_by()
    counts = Study.objects.filter(pk=study.pk).values_list(
        row_count(hits),
        row_count(hits.published()),
        _subtotal(hits.published(), Sum("batch__max_assignments")),
        row_count(assignments),
        row_count(unreadable_assignments(study).order_by()),
    )
    return StudyProgress(*counts[0])


def row_count(rows: QuerySet[Any]) -> Coalesce:
    """How many rows there are, as one number of a query."""
    return _subtotal(rows, Count("pk"))


def _subtotal(rows: QuerySet[Any], total: Count | Sum) -> Coalesce:
    """An aggregate of all rows as one number of a query; 0 where there are none."""
    of_all = rows.annotate(all=Value(1)).values("all").annotate(total=total).values("total")
    return Coalesce(Subquery(of_all, output_field=IntegerField()), 0)


def unreadable_assignments(study: Study) -> QuerySet[Assignment]:
    """Assignments kept of which no submission could be made; each says why."""
    return Assignment.objects.filter(hit__batch__study=study).exclude(problem="")
