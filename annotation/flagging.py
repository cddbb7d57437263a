"""Doubting a submission, with the reason: it counts on, and agreement is shown both ways."""

from annotation.exceptions import AnnotationError
from annotation.models import Submission


def flag_submission(*, submission: Submission, reason: str) -> None:
    """Mark a submission as doubted; a second reason replaces the first."""
    reason = reason.strip()
    longest = Submission._meta.get_field("flag_reason").max_length or 0
    if not 0 < len(reason) <= longest:
        raise AnnotationError(f"Say why the submission is flagged, in 1 to {longest} characters.")
    Submission.objects.filter(pk=submission.pk).update(flag_reason=reason)


def unflag_submission(*, submission: Submission) -> None:
    """Take the mark away."""
    Submission.objects.filter(pk=submission.pk).update(flag_reason="")
