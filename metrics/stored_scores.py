"""Scores as rows: what is stored of a value, and of values that were computed elsewhere."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from django.db import transaction

from annotation.flags import count_scores_change
from annotation.models import Candidate, Study
from error_codes import InvalidValue
from metrics.batches import chunks
from metrics.models import Score, ScoringRun
from metrics.scorers import scorer as scorers


def score_of(run: ScoringRun, candidate_id: int, score: scorers.Score, content: str = "") -> Score:
    """A score to be written."""
    value = finite(score)
    return Score(
        run=run,
        candidate_id=candidate_id,
        value=None if value.reason else value.value,
        reason=(value.reason or "")[:200],
        raw=value.raw or "",
        content=content,
    )


def finite(score: scorers.Score) -> scorers.Score:
    """The score as it is stored: what is not finite has a reason instead of a value."""
    if math.isfinite(score.value):
        return score._replace(reason=None)
    default = "undefined" if math.isnan(score.value) else f"not finite: {score.value}"
    return scorers.Score(math.nan, score.reason or default, score.raw)


@transaction.atomic
def write_scores(
    *,
    study: Study,
    metric: str,
    signature: str,
    values: Mapping[tuple[str, str], float],
    higher_is_better: bool = True,
    is_primary: bool = True,
    reasons: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> ScoringRun:
    """Keep scores that were computed elsewhere, by item and candidate key.

    Those the run has already are replaced, and its other scores stay. `reasons` says why a
    value is NaN, where that is known.
    """
    run, _ = ScoringRun.objects.update_or_create(
        study=study,
        metric=metric,
        signature=signature,
        defaults={"higher_is_better": higher_is_better, "is_primary": is_primary},
    )
    candidates = Candidate.objects.filter(item__study=study).select_related("item")
    known = {(candidate.item.key, candidate.key): candidate for candidate in candidates}
    if unknown := sorted(values.keys() - known.keys()):
        item, key = unknown[0]
        raise InvalidValue(
            f"values holds '{key}' of '{item}', which study '{study.slug}' has not",
            code="unknown_candidate",
        )
    for batch in chunks([known[pair] for pair in values], 500):
        run.scores.filter(candidate__in=batch).delete()
    Score.objects.bulk_create(
        (
            score_of(run, known[pair].pk, scorers.Score(value, _reason(value, reasons.get(pair))))
            for pair, value in values.items()
        ),
        batch_size=500,
    )
    count_scores_change(study_id=study.pk)
    return run


def _reason(value: float, known: str | None) -> str | None:
    return known or "not computed" if math.isnan(value) else None
