"""Decisions that a reviewer prepares, keeps and takes back, until they are sent together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.audit import record
from hits.budgets import require_within_budgets
from hits.contacts import LONGEST_SUBJECT, request_block, request_message, request_unblock
from hits.contacts import validate_text as require_text
from hits.costs import cost_of_assignment
from hits.exceptions import DecisionRefused, FeedbackUnfit, PaymentRefused, SummaryOutdated
from hits.models import PART, Assignment, Connection, DraftDecision
from hits.payments import (
    bonus_fee_usd,
    bonus_purpose,
    request_payment,
    validate_bonus,
    validate_part,
)
from hits.review import Decision, decide, override, validate_feedback

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study

Action = DraftDecision.Action
NOTHING = Decimal(0)
PAYING = (Action.BONUS, Action.OVERRIDE)
"""What costs more than was held when the HIT was published; a part is less than its reward."""


@transaction.atomic
def draft_decision(
    *,
    reviewer: User,
    assignment: Assignment,
    action: str,
    text: str = "",
    subject: str = "",
    amount_usd: Decimal | None = None,
) -> DraftDecision:
    """Prepare a decision; one of the same kind by the same reviewer is replaced."""
    draft = DraftDecision(
        reviewer=reviewer,
        assignment=assignment,
        action=Action(action),
        slot=DraftDecision.SLOTS.get(action, action),
        text=text.strip(),
        subject=subject.strip(),
        amount_usd=amount_usd,
    )
    validate_draft(draft)
    earlier = DraftDecision.objects.by(reviewer).filter(assignment=assignment, slot=draft.slot)
    earlier.delete()
    draft.save(force_insert=True)
    return draft


def validate_draft(draft: DraftDecision) -> None:
    """An error with what is wrong, where the decision could not be sent as it is."""
    action, assignment, amount_usd = draft.action, draft.assignment, draft.amount_usd
    if action in (Action.APPROVE, Action.REJECT, Action.PART_PAY):
        _require(assignment, is_undecided(assignment), _("It is decided already."))
    if action == Action.OVERRIDE:
        possible = Assignment.objects.overridable().filter(pk=assignment.pk).exists()
        message = _("Only a rejection of the last 30 days can be overridden.")
        _require(assignment, possible, message)
        _require_known_part(draft)
    if action in (Action.APPROVE, Action.REJECT, Action.PART_PAY, Action.OVERRIDE):
        needs_text = action in (Action.REJECT, Action.PART_PAY)
        validate_feedback(draft.text, is_required=needs_text)
    if action == Action.BONUS:
        validate_bonus(amount_usd or NOTHING, draft.text)
    if action == Action.PART_PAY:
        validate_part(assignment, amount_usd or NOTHING, draft.text)
    if action == Action.MESSAGE:
        require_text(draft.subject, name=_("A subject"), most=LONGEST_SUBJECT)
        require_text(draft.text, name=_("A message"))
    if action == Action.BLOCK:
        require_text(draft.text, name=_("A reason"))


def is_undecided(assignment: Assignment) -> bool:
    return assignment.status == Assignment.Status.SUBMITTED and not assignment.decision


def _require(assignment: Assignment, is_possible: bool, message: str) -> None:
    if not is_possible:
        raise DecisionRefused(f"{assignment.assignment_id}: {message}")


def undo_draft(
    *, reviewer: User, study: Study, assignment: Assignment | None = None
) -> DraftDecision | None:
    """Take back what the reviewer decided last, in the study or about one assignment."""
    drafts = DraftDecision.objects.of(study).by(reviewer)
    if assignment is not None:
        drafts = drafts.filter(assignment=assignment)
    last = drafts.select_related("assignment").order_by("-pk").first()
    if last is not None:
        DraftDecision.objects.filter(pk=last.pk).delete()
    return last


def price_usd(assignment: Assignment) -> Decimal:
    """What approving an assignment costs: its reward and the fee."""
    hit, batch = assignment.hit, assignment.hit.batch
    return cost_of_assignment(batch, hit.max_assignments or batch.max_assignments)


@dataclass(frozen=True)
class PaidPart:
    """What rejected work was paid all the same, and what it comes to with the whole reward."""

    amount_usd: Decimal
    with_reward_usd: Decimal


def paid_part(assignment: Assignment) -> PaidPart | None:
    """The part of the reward that was paid or is on its way, which an override adds to: no
    marketplace takes a bonus back."""
    payment = assignment.payments.standing().filter(purpose=PART).first()
    if payment is None:
        return None
    reward_usd = assignment.hit.batch.reward_usd
    return PaidPart(payment.amount_usd, payment.amount_usd + reward_usd)


def _require_known_part(draft: DraftDecision) -> None:
    """An override on top of a part names both together, so that nobody pays twice unaware."""
    part = paid_part(draft.assignment)
    if part is not None and draft.amount_usd != part.with_reward_usd:
        raise PaymentRefused(
            _(
                "The work was paid ${part} of its reward already. Overriding pays the whole reward "
                "on top, ${total} in all: type that amount to confirm it."
            ).format(part=part.amount_usd, total=part.with_reward_usd)
        )


def cost_usd(draft: DraftDecision) -> Decimal:
    """What sending a decision spends, fees included."""
    assignment, amount_usd = draft.assignment, draft.amount_usd or NOTHING
    if draft.action in (Action.APPROVE, Action.OVERRIDE):
        return price_usd(assignment)
    if draft.action in (Action.PART_PAY, Action.BONUS):
        return amount_usd + bonus_fee_usd(assignment, amount_usd)
    return NOTHING


@dataclass(frozen=True)
class Summary:
    """All that a reviewer is about to send: how many of each kind, and what it costs."""

    drafts: Sequence[DraftDecision]
    numbers: dict[str, int]
    costs_usd: dict[str, Decimal]
    elsewhere_usd: Decimal
    connections: Sequence[Connection] = field(default_factory=list)

    @property
    def total_usd(self) -> Decimal:
        return sum(self.costs_usd.values(), NOTHING)

    @property
    def extra_usd_by_batch(self) -> dict[int, Decimal]:
        """What it spends on each batch beyond what was held for the assignments."""
        sums: dict[int, Decimal] = {}
        for draft in self.drafts:
            if draft.action in PAYING:
                key = draft.assignment.hit.batch_id
                sums[key] = sums.get(key, NOTHING) + cost_usd(draft)
        return sums

    @property
    def digest(self) -> str:
        """Names exactly these decisions, so that no others are sent in their place."""
        content = ",".join(f"{draft.pk}" for draft in self.drafts)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def summary_of(drafts: Iterable[DraftDecision]) -> Summary:
    """What sending these decisions does and costs."""
    rows = sorted(drafts, key=lambda draft: draft.pk)
    costs: Counter[str] = Counter()
    elsewhere_usd, connections = NOTHING, {}
    for draft in rows:
        cost, connection = cost_usd(draft), draft.assignment.hit.batch.connection
        costs[draft.action] += cost  # type: ignore[assignment]
        connections[connection.pk] = connection
        if not connection.is_on_this_site:
            elsewhere_usd += cost
    numbers = Counter(draft.action for draft in rows)
    in_order = [action.value for action in Action if numbers[action]]
    return Summary(
        drafts=rows,
        numbers={action: numbers[action] for action in in_order},
        costs_usd={action: Decimal(costs[action]) for action in in_order},
        elsewhere_usd=elsewhere_usd,
        connections=list(connections.values()),
    )


def drafts_of(study: Study, reviewer: User) -> list[DraftDecision]:
    """What the reviewer has decided in a study and not sent, with all that is read of it."""
    return [draft for draft in study_drafts(study) if draft.reviewer_id == reviewer.pk]


def study_drafts(study: Study) -> list[DraftDecision]:
    """What all reviewers have decided in a study and not sent."""
    drafts = DraftDecision.objects.of(study).select_related(
        *("assignment__hit__batch__connection", "assignment__hit__item", "assignment__worker"),
        "reviewer",
    )
    return list(drafts.defer("assignment__answer_xml", "assignment__hit__item__context"))


@dataclass(frozen=True)
class DraftsResult:
    """What became of the decisions: written down to be sent, or too late."""

    n_recorded: int
    problems: Sequence[str]


@transaction.atomic
def record_drafts(
    *, reviewer: User, study: Study, digest: str, typed_usd: Decimal | None = None
) -> DraftsResult:
    """Write down a reviewer's decisions as what is to be sent, once however often it is pressed.

    `digest` is that of the summary that was read; `typed_usd` what was typed where money is
    spent elsewhere than on this site.
    """
    # Whoever presses second waits here, and then finds nothing.
    own_drafts = DraftDecision.objects.select_for_update().of(study).by(reviewer)
    list(own_drafts.values_list("pk", flat=True))
    summary = summary_of(drafts_of(study, reviewer))
    if summary.digest != digest:
        raise SummaryOutdated(
            _("The decisions have changed since the summary was made. Look at it again.")
        )
    if summary.elsewhere_usd and typed_usd != summary.elsewhere_usd:
        raise PaymentRefused(
            _("Type the amount that is spent elsewhere, ${amount}, to send it.").format(
                amount=f"{summary.elsewhere_usd:.2f}"
            )
        )
    if extra_usd_by_batch := summary.extra_usd_by_batch:
        require_within_budgets(study=study, extra_usd_by_batch=extra_usd_by_batch)
    problems = {draft.pk: _record_draft(draft) for draft in summary.drafts}
    decisions = [draft for draft in summary.drafts if not problems[draft.pk]]
    _audit(study, reviewer, decisions)
    DraftDecision.objects.filter(pk__in=list(problems)).delete()
    return DraftsResult(len(decisions), [problem for problem in problems.values() if problem])


def _record_draft(draft: DraftDecision) -> str:
    """Why a decision came too late; empty where it is written down."""
    draft.assignment.refresh_from_db(fields=["status", "decision", "submitted_at"])
    try:
        validate_draft(draft)
        with transaction.atomic():
            RECORDERS[Action(draft.action)](draft)
    except (DecisionRefused, FeedbackUnfit, PaymentRefused) as refused:
        return str(refused)
    return ""


def _verdict(draft: DraftDecision) -> None:
    decision = Decision.APPROVE if draft.action == Action.APPROVE else Decision.REJECT
    rows = Assignment.objects.filter(pk=draft.assignment_id)
    n = decide(assignments=rows, decision=decision, feedback=draft.text, decided_by=draft.reviewer)
    _require(draft.assignment, bool(n), _("It is decided already."))


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
            _("{assignment}: a bonus for this reason is paid already, or on its way.").format(
                assignment=draft.assignment.assignment_id
            )
        )


def _override(draft: DraftDecision) -> None:
    rows = Assignment.objects.filter(pk=draft.assignment_id)
    override(assignments=rows, feedback=draft.text, decided_by=draft.reviewer)


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
