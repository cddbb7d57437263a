"""Doubting submissions, with the reason: they count on, and agreement is shown both ways."""

from annotation.exceptions import AnnotationError
from annotation.models import Submission
from annotation.models.judgments import SubmissionQuerySet

LONGEST_REASON = Submission._meta.get_field("flag_reason").max_length or 0


def flag_submissions(*, submissions: SubmissionQuerySet, reason: str) -> int:
    """Mark submissions as doubted, and return how many; a second reason replaces the first."""
    reason = reason.strip()
    if not 0 < len(reason) <= LONGEST_REASON:
        raise AnnotationError(
            f"Say why a submission is flagged, in 1 to {LONGEST_REASON} characters."
        )
    return submissions.update(flag_reason=reason)


def unflag_submissions(*, submissions: SubmissionQuerySet) -> int:
    """Take the marks away, and return how many there were."""
    return submissions.flagged().update(flag_reason="")
