"""How far a study is."""

from dataclasses import dataclass

from django.db.models import F, QuerySet, Sum

from annotation.models import Study
from hits.models import Assignment, Batch, Hit


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
    hits = Hit.objects.filter(batch__in=Batch.objects.of(study))
    assignments = Assignment.objects.filter(hit__in=hits)
    wanted = hits.published().aggregate(total=Sum(F("batch__max_assignments")))["total"]
    return StudyProgress(
        n_hits=hits.count(),
        n_published=hits.published().count(),
        n_wanted=wanted or 0,
        n_collected=assignments.count(),
        n_unreadable=unreadable_assignments(study).count(),
    )


def unreadable_assignments(study: Study) -> QuerySet[Assignment]:
    """Assignments kept of which no submission could be made; each says why."""
    return Assignment.objects.filter(hit__batch__study=study).exclude(problem="")
