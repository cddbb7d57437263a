"""Doubting submissions, with the reason: they count on, and agreement is shown both ways."""

from collections.abc import Collection

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Count, F

from annotation.access import record_in
from annotation.exceptions import AnnotationError
from annotation.models import Study, Submission
from annotation.models.judgments import SubmissionQuerySet

LONGEST_REASON = Submission._meta.get_field("flag_reason").max_length or 0


@transaction.atomic
def flag_submissions(
    *, submissions: SubmissionQuerySet, reason: str, actor: AbstractBaseUser | None = None
) -> int:
    """Mark submissions as doubted, and return how many; a second reason replaces the first."""
    reason = reason.strip()
    if not 0 < len(reason) <= LONGEST_REASON:
        raise AnnotationError(
            f"Say why a submission is flagged, in 1 to {LONGEST_REASON} characters.",
            code="reason_length",
        )
    return _set_reason(submissions, reason, actor)


@transaction.atomic
def unflag_submissions(
    *, submissions: SubmissionQuerySet, actor: AbstractBaseUser | None = None
) -> int:
    return _set_reason(submissions.flagged(), "", actor)


def _set_reason(
    submissions: SubmissionQuerySet, reason: str, actor: AbstractBaseUser | None
) -> int:
    # Before the update, after which the filters may match others.
    by_study = submissions.order_by().values_list("item__study")
    counts = dict(by_study.annotate(n=Count("*")))
    n_changed = submissions.update(flag_reason=reason)
    count_judgments_change(study_ids=set(counts))
    action = "submission.flag" if reason else "submission.unflag"
    for study in Study.objects.filter(pk__in=counts).order_by("pk"):
        details = {"n_submissions": counts[study.pk], "reason": reason}
        record_in(study, actor=actor, action=action, details=details)
    return n_changed


def count_judgments_change(*, study_ids: Collection[int]) -> None:
    """Judgments were added or removed, or their submissions rejected, restored or flagged."""
    Study.objects.filter(pk__in=study_ids).update(judgments_version=F("judgments_version") + 1)


def count_scores_change(*, study_id: int) -> None:
    """Scores of metrics were added, replaced or removed."""
    Study.objects.filter(pk=study_id).update(scores_version=F("scores_version") + 1)
