"""Counting the changes that make what was computed from a study out of date.

Whatever writes judgments, rejections, flags or scores calls one of these in its transaction.
"""

from collections.abc import Collection

from django.db.models import F

from annotation.models import Study


def count_judgments_change(*, study_ids: Collection[int]) -> None:
    """Judgments were added or removed, or their submissions rejected, restored or flagged."""
    Study.objects.filter(pk__in=study_ids).update(judgments_version=F("judgments_version") + 1)


def count_scores_change(*, study_id: int) -> None:
    """Scores of metrics were added, replaced or removed."""
    Study.objects.filter(pk=study_id).update(scores_version=F("scores_version") + 1)
