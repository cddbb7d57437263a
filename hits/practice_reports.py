"""How practice went: how many workers of a batch practised, passed and failed."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q

from hits.models import Batch, PracticeAnswer, PracticeResult


@dataclass(frozen=True)
class PracticeReport:
    """Workers who practised in a batch, and what came of it; the others may still try again."""

    n_workers: int
    n_answers: int
    n_passed: int
    n_failed: int

    @property
    def n_undecided(self) -> int:
        return self.n_workers - self.n_passed - self.n_failed


def practice_report(batch: Batch) -> PracticeReport | None:
    """Of one batch, from what is stored; None where nothing was practised for it."""
    if not batch.practice_type_id:
        return None
    answers = PracticeAnswer.objects.filter(hit__batch=batch).order_by()
    results = PracticeResult.objects.of_type(batch.study, batch.practice_type_id).order_by()
    counts = answers.aggregate(n_workers=Count("worker", distinct=True), n_answers=Count("*"))
    results = results.filter(worker__in=answers.values("worker"))
    decided = results.aggregate(
        n_passed=Count("pk", filter=Q(is_passed=True)),
        n_failed=Count("pk", filter=Q(is_passed=False)),
    )
    return PracticeReport(**counts, **decided)
