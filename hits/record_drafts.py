"""Prepared decisions written down as what is to be sent, once however often it is pressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.audit import record
from error_codes import CodedText
from hits.budgets import require_within_budgets
from hits.contacts import request_block, request_message, request_unblock
from hits.draft_costs import NOTHING, summary_of
from hits.drafts import drafts_of, require_possible, validate_draft
from hits.exceptions import AssignmentRefused, FeedbackUnfit, PaymentRefused, SummaryOutdated
from hits.models import PART, Assignment, DraftDecision
from hits.payments import bonus_purpose, request_payment
from hits.review import Decision, decide, override

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study

Action = DraftDecision.Action


@dataclass(frozen=True)
class DraftsResult:
    """What became of the decisions: written down to be sent, or too late."""

    n_recorded: int
    problems: Sequence[CodedText]


@transaction.atomic
def record_drafts(
    *,
    reviewer: User,
    study: Study,
    digest: str,
    typed_usd: Decimal | None = None,
    names_ids: bool = True,
) -> DraftsResult:
    """Write down a reviewer's decisions as what is to be sent, once however often it is pressed.

    `digest` is that of the summary that was read; `typed_usd` what was typed where money is
    spent elsewhere than on this site. Without `names_ids` no problem names an AssignmentId.
    """
    # Whoever presses second waits here, and then finds nothing. As rows: of bare values Django
    # would lock what they are joined with as well, HITs and batches.
    own_drafts = DraftDecision.objects.select_for_update(of=("self",)).of(study).by(reviewer)
    list(own_drafts.only("pk"))
    summary = summary_of(drafts_of(study, reviewer))
    if summary.digest != digest:
        raise SummaryOutdated(
            _("The decisions have changed since the summary was made. Look at it again.")
        )
    if summary.elsewhere_usd and typed_usd != summary.elsewhere_usd:
        raise PaymentRefused(
            _("Type the amount that is spent elsewhere, ${amount}, to send it.").format(
                amount=f"{summary.elsewhere_usd:.2f}"
            ),
            code="amount_unconfirmed",
        )
    if extra_usd_by_batch := summary.extra_usd_by_batch:
        require_within_budgets(study=study, extra_usd_by_batch=extra_usd_by_batch)
    problems = {draft.pk: _record_draft(draft, names_ids) for draft in summary.drafts}
    decisions = [draft for draft in summary.drafts if not problems[draft.pk]]
    _audit(study, reviewer, decisions)
    DraftDecision.objects.filter(pk__in=list(problems)).delete()
    return DraftsResult(len(decisions), [problem for problem in problems.values() if problem])


def _record_draft(draft: DraftDecision, names_ids: bool) -> CodedText | None:
    """Record a decision; return why that was not possible, or None."""
    draft.assignment.refresh_from_db(fields=["status", "decision", "submitted_at"])
    try:
        validate_draft(draft)
        with transaction.atomic():
            RECORDERS[Action(draft.action)](draft)
    except FeedbackUnfit as refused:
        return CodedText(str(refused), code=refused.code)
    except AssignmentRefused as refused:
        text = str(refused) if names_ids else refused.without_id
        return CodedText(text, code=refused.code)
    return None


def _verdict(draft: DraftDecision) -> None:
    decision = Decision.APPROVE if draft.action == Action.APPROVE else Decision.REJECT
    rows = Assignment.objects.filter(pk=draft.assignment_id)
    n = decide(assignments=rows, decision=decision, feedback=draft.text, decided_by=draft.reviewer)
    require_possible(draft.assignment, bool(n), _("It is decided already."), "decided_already")


def _part_pay(draft: DraftDecision) -> None:
    _verdict(draft)
    _pay(draft, PART)


def _bonus(draft: DraftDecision) -> None:
    _pay(draft, bonus_purpose(draft.text))


def _pay(draft: DraftDecision, purpose: str) -> None:
    payment = request_payment(
        assignment=draft.assignment,
        purpose=purpose,
        amount_usd=draft.amount_usd or NOTHING,
        reason=draft.text,
        requested_by=draft.reviewer,
    )
    if payment is None:
        raise PaymentRefused(
            _("A bonus for this reason is paid already, or on its way."),
            assignment=draft.assignment,
            code="paid_already",
        )


def _override(draft: DraftDecision) -> None:
    rows = Assignment.objects.filter(pk=draft.assignment_id)
    n = override(assignments=rows, feedback=draft.text, decided_by=draft.reviewer)
    require_possible(
        draft.assignment, bool(n), _("Its rejection is overridden already."), "overridden_already"
    )


def _message(draft: DraftDecision) -> None:
    request_message(
        assignment=draft.assignment,
        subject=draft.subject,
        text=draft.text,
        sent_by=draft.reviewer,
    )


def _block(draft: DraftDecision) -> None:
    request_block(
        connection=draft.assignment.hit.batch.connection,
        worker=draft.assignment.worker,
        reason=draft.text,
        blocked_by=draft.reviewer,
    )


def _unblock(draft: DraftDecision) -> None:
    request_unblock(
        connection=draft.assignment.hit.batch.connection,
        worker=draft.assignment.worker,
        reason=draft.text,
        unblocked_by=draft.reviewer,
    )


RECORDERS = {
    Action.APPROVE: _verdict,
    Action.REJECT: _verdict,
    Action.PART_PAY: _part_pay,
    Action.OVERRIDE: _override,
    Action.BONUS: _bonus,
    Action.MESSAGE: _message,
    Action.BLOCK: _block,
    Action.UNBLOCK: _unblock,
}


def _audit(study: Study, reviewer: User, drafts: Sequence[DraftDecision]) -> None:
    """An entry for each kind of decision and text, with the assignments it is about."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for draft in drafts:
        amount = f"{draft.amount_usd:.2f}" if draft.amount_usd else ""
        key = (draft.action, draft.text, amount)
        groups.setdefault(key, []).append(draft.assignment.assignment_id)
    for (action, text, amount), assignments in groups.items():
        details = {"assignments": assignments, "text": text, "amount_usd": amount}
        record(
            team=study.team,
            actor=reviewer,
            action=f"review.{action}",
            subject=study.slug,
            details={name: value for name, value in details.items() if value},
        )
