"""Which assignments a rule takes: previewed first, then drafted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Count, Min, Q
from django.utils import timezone

from annotation.flags import store_evidence
from annotation.models import EvidenceVersion
from hits.drafts import Action, draft_decision
from hits.models import Assignment, AssignmentRecordQuerySet, DraftDecision, Payment
from hits.payments import bonus_purpose

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study


def unflagged_assignments(study: Study, *, hours: float) -> list[Assignment]:
    """Those that wait longer than so many hours, were read and measured, and have no flag."""
    read = _undecided_since(study, hours).exclude(submission=None)
    return list(read.filter(submission__flag_reason="", submission__evidence__is_flagged=False))


def held_back(study: Study, *, hours: float) -> list[Assignment]:
    """Those that wait as long, and that `unflagged_assignments` leaves to a person."""
    taken = Q(submission__flag_reason="", submission__evidence__is_flagged=False)
    return list(_undecided_since(study, hours).exclude(taken))


def measure_holds(study: Study) -> None:
    """Measure the submissions, unless that was done for the judgments as they are: what is held
    for a person is known then."""
    newest = EvidenceVersion.objects.of(study).newest()
    if newest is None or newest.judgments_version != study.judgments_version:
        store_evidence(study)


def fast_assignments(study: Study, *, divisor: float) -> list[Assignment]:
    """Those that took less than this part of the median time, by the page's time or by the time
    since accepting. Whoever fills in several pages and then submits them together did not work
    fast, though little time passes between the submissions."""
    version = EvidenceVersion.objects.of(study).newest()
    if version is None or version.typical_seconds is None:
        return []
    limit = version.typical_seconds / divisor
    is_fast = Q(submission__seconds__lt=limit) | Q(submission__active_seconds__lt=limit)
    return list(_waiting(study).filter(is_fast, submission__evidence__seconds__lt=limit))


def frequent_workers(study: Study, *, least_approved: int, reason: str) -> list[Assignment]:
    """The first approved assignment of each worker who has so many, and no bonus for this yet."""
    approvals = Assignment.objects.filter(
        hit__batch__study=study, status=Assignment.Status.APPROVED
    )
    payments = Payment.objects.of(study).standing().filter(purpose=bonus_purpose(reason))
    counts = approvals.order_by().values("worker").annotate(n=Count("*"))
    workers = counts.filter(n__gte=least_approved).exclude(
        worker__in=payments.values("assignment__worker")
    )
    firsts = workers.annotate(first=Min("pk")).values("first")
    return list(_with_all(Assignment.objects.filter(pk__in=firsts).order_by("pk")))


def _undecided_since(study: Study, hours: float) -> AssignmentRecordQuerySet:
    return _undecided(study).filter(submitted_at__lte=timezone.now() - timedelta(hours=hours))


def _waiting(study: Study) -> AssignmentRecordQuerySet:
    return _undecided(study).exclude(submission=None)


def _undecided(study: Study) -> AssignmentRecordQuerySet:
    waiting = Assignment.objects.undecided().filter(hit__batch__study=study)
    return _with_all(waiting.order_by("submitted_at", "pk"))


def _with_all(rows: AssignmentRecordQuerySet) -> AssignmentRecordQuerySet:
    """With what their rows display, and without the answers as they came."""
    rows = rows.defer("answer_xml", "submission__raw")
    return rows.select_related(
        "hit__batch__connection",
        "hit__item",
        "worker",
        "submission__annotator",
        "submission__evidence__version",
    ).prefetch_related(
        "submission__check_answers__placed", "submission__annotator__quality_flags__other"
    )


def draft_all(
    *,
    reviewer: User,
    assignments: Sequence[Assignment],
    action: Action,
    text: str = "",
    subject: str = "",
    amount_usd: Decimal | None = None,
) -> list[DraftDecision]:
    """Draft the same decision for each, as a rule's preview or a program listed them."""
    return [
        draft_decision(
            reviewer=reviewer,
            assignment=assignment,
            action=action,
            text=text,
            subject=subject,
            amount_usd=amount_usd,
        )
        for assignment in assignments
    ]
