"""Which assignments a rule takes: previewed first, then drafted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Count
from django.utils import timezone

from annotation.evidence import FAST, Evidence, evidence_of
from hits.drafts import Action, draft_decision
from hits.models import Assignment, AssignmentRecordQuerySet, DraftDecision, Payment
from hits.payments import bonus_purpose

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study


def unflagged(study: Study, *, hours: float) -> list[Assignment]:
    """Those that wait longer than so many hours, were read, and have no flag at all."""
    evidence = evidence_of(study)
    late = timezone.now() - timedelta(hours=hours)
    return [
        assignment
        for assignment in _waiting(study)
        if assignment.submitted_at <= late and not _is_flagged(assignment, evidence)
    ]


def _is_flagged(assignment: Assignment, evidence: Evidence) -> bool:
    submission = assignment.submission
    if submission is None:
        return True
    return bool(submission.flag_reason or evidence.flags_of(submission.pk))


def fast(study: Study, *, divisor: float) -> list[Assignment]:
    """Those that took less than this part of the median time."""
    evidence = evidence_of(study)
    limit = evidence.typical.get(FAST, 0) / divisor
    return [
        assignment
        for assignment in _waiting(study)
        if (measured := evidence.measures.get(assignment.submission_id or 0))
        and measured.seconds is not None
        and measured.seconds < limit
    ]


def frequent_workers(study: Study, *, least_approved: int, reason: str) -> list[Assignment]:
    """The first approved assignment of each worker who has so many, and no bonus for this yet."""
    approved = Assignment.objects.filter(hit__batch__study=study, status=Assignment.Status.APPROVED)
    paid = Payment.objects.of(study).standing().filter(purpose=bonus_purpose(reason))
    counts = approved.order_by().values("worker").annotate(n=Count("pk"))
    workers = counts.filter(n__gte=least_approved).exclude(
        worker__in=paid.values("assignment__worker")
    )
    firsts: dict[int, Assignment] = {}
    chosen = approved.filter(worker__in=workers.values("worker")).order_by("pk")
    for assignment in _with_all(chosen):
        firsts.setdefault(assignment.worker_id, assignment)
    return list(firsts.values())


def _waiting(study: Study) -> Sequence[Assignment]:
    undecided = Assignment.objects.undecided().filter(hit__batch__study=study)
    return list(_with_all(undecided.exclude(submission=None).order_by("submitted_at", "pk")))


def _with_all(rows: AssignmentRecordQuerySet) -> AssignmentRecordQuerySet:
    return rows.select_related(
        "hit__batch__connection", "hit__item", "worker", "submission__annotator"
    )


def draft_all(
    *,
    reviewer: User,
    assignments: Sequence[Assignment],
    action: Action,
    text: str = "",
    amount_usd: Decimal | None = None,
) -> list[DraftDecision]:
    """Draft the same decision for each, as a rule's preview listed them."""
    return [
        draft_decision(
            reviewer=reviewer,
            assignment=assignment,
            action=action,
            text=text,
            amount_usd=amount_usd,
        )
        for assignment in assignments
    ]
