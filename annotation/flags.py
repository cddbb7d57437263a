"""Doubting submissions, with the reason: they count on, and agreement is shown both ways."""

from django.db import transaction

from annotation.exceptions import AnnotationError
from annotation.models import Submission
from annotation.models.judgments import SubmissionQuerySet
from annotation.versions import count_judgments_change

LONGEST_REASON = Submission._meta.get_field("flag_reason").max_length or 0


@transaction.atomic
def flag_submissions(*, submissions: SubmissionQuerySet, reason: str) -> int:
    """Mark submissions as doubted, and return how many; a second reason replaces the first."""
    reason = reason.strip()
    if not 0 < len(reason) <= LONGEST_REASON:
        raise AnnotationError(
            f"Say why a submission is flagged, in 1 to {LONGEST_REASON} characters."
        )
    return _set_reason(submissions, reason)


@transaction.atomic
def unflag_submissions(*, submissions: SubmissionQuerySet) -> int:
    """Take the marks away, and return how many there were."""
    return _set_reason(submissions.flagged(), "")


def _set_reason(submissions: SubmissionQuerySet, reason: str) -> int:
    # Before the update, after which the filters may match others.
    studies = set(submissions.order_by().values_list("item__study", flat=True).distinct())
    n_changed = submissions.update(flag_reason=reason)
    count_judgments_change(study_ids=studies)
    return n_changed
