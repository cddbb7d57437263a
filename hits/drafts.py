"""Decisions that a reviewer prepares, keeps and takes back, until they are sent together."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from hits.contacts import LONGEST_SUBJECT
from hits.contacts import validate_text as require_text
from hits.draft_costs import NOTHING, paid_part
from hits.exceptions import DecisionRefused, PaymentRefused
from hits.models import Assignment, DraftDecision, Recruitment
from hits.participations import items_of_participation
from hits.payments import validate_bonus, validate_part
from hits.review import validate_feedback

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study
    from hits.models import Batch

Action = DraftDecision.Action
# What a decision on one item of a participant contradicts on another.
OPPOSITE = {
    Action.APPROVE: (Assignment.Status.REJECTED, Action.REJECT),
    Action.REJECT: (Assignment.Status.APPROVED, Action.APPROVE),
}
# Of a rejection: Prolific's own rule.
SHORTEST_PARTICIPANTS_REASON = 100


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
    # Whoever presses twice waits here, and then replaces the first.
    Assignment.objects.select_for_update(of=("self",)).only("pk").get(pk=assignment.pk)
    validate_draft(draft)
    earlier = DraftDecision.objects.by(reviewer).filter(assignment=assignment, slot=draft.slot)
    earlier.delete()
    draft.save(force_insert=True)
    return draft


def validate_draft(draft: DraftDecision) -> None:
    """An error with what is wrong, where the decision could not be sent as it is."""
    action, assignment, amount_usd = draft.action, draft.assignment, draft.amount_usd
    if assignment.hit.batch.is_recruited:
        _require_for_participants(draft)
    if action in (Action.APPROVE, Action.REJECT, Action.PART_PAY):
        require_possible(
            assignment, is_undecided(assignment), _("It is decided already."), "decided_already"
        )
    if action == Action.OVERRIDE:
        possible = Assignment.objects.overridable().filter(pk=assignment.pk).exists()
        message = _("Only a rejection of the last 30 days can be overridden.")
        require_possible(assignment, possible, message, "override_too_late")
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


def _require_for_participants(draft: DraftDecision) -> None:
    """What their recruiter, who pays them, would not take."""
    assignment, n = draft.assignment, len(draft.text)
    if draft.action == Action.REJECT:
        message = _(
            "A participant's recruiter asks for a reason of at least {most} characters, and all "
            "items of the participant are rejected by it; this one has {n}."
        ).format(most=SHORTEST_PARTICIPANTS_REASON, n=n)
        require_possible(assignment, n >= SHORTEST_PARTICIPANTS_REASON, message, "short_reason")
    if draft.action == Action.PART_PAY:
        message = _("Participants are paid by their recruiter, who pays all of a study or nothing.")
        require_possible(assignment, False, message, "all_or_nothing")
    if draft.action in OPPOSITE and (other := _decided_otherwise(draft)) is not None:
        message = _(
            "Another item of this participant, {item}, is {decision}: all are decided alike."
        ).format(item=other.item, decision=other.decision)
        require_possible(assignment, False, message, "decided_otherwise")
    if draft.action == Action.BONUS:
        currency = currency_of(assignment.hit.batch)
        message = _(
            "The account at the recruiter is in {currency}, and bonuses here are in dollars: pay "
            "this one on the batch's page, under Participants, or at the recruiter."
        ).format(currency=currency)
        require_possible(assignment, currency == "USD", message, "other_currency")


@dataclass(frozen=True)
class OtherItem:
    item: str
    decision: str


def _decided_otherwise(draft: DraftDecision) -> OtherItem | None:
    """Another item of the same participation that was decided, or drafted by the same reviewer, in
    the other way."""
    assignment, (status, action) = draft.assignment, OPPOSITE[Action(draft.action)]
    mine = items_of_participation(assignment).exclude(pk=assignment.pk).select_related("hit__item")
    if (decided := mine.filter(status=status).first()) is not None:
        return OtherItem(decided.hit.item.key, str(decided.get_status_display()).lower())
    drafts = DraftDecision.objects.by(draft.reviewer).filter(assignment__in=mine, action=action)
    drafted = drafts.select_related("assignment__hit__item").first()
    if drafted is None:
        return None
    text = _("to be decided otherwise ({action})").format(action=drafted.get_action_display())
    return OtherItem(drafted.assignment.hit.item.key, text)


def currency_of(batch: Batch) -> str:
    """That of the account at the recruiter whose participants do a batch; dollars of any other."""
    recruitments = Recruitment.objects.filter(batch=batch).exclude(state__in=Recruitment.OVER)
    last = recruitments.select_related("recruiter").order_by("-pk").first()
    return last.recruiter.currency if last else "USD"


def is_undecided(assignment: Assignment) -> bool:
    return assignment.status == Assignment.Status.SUBMITTED and not assignment.decision


def require_possible(assignment: Assignment, is_possible: bool, message: str, code: str) -> None:
    """Raise DecisionRefused with the message and the code if the decision is not possible."""
    if not is_possible:
        raise DecisionRefused(message, assignment=assignment, code=code)


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


def _require_known_part(draft: DraftDecision) -> None:
    """An override on top of a part names both together, so that nobody pays twice unaware."""
    part = paid_part(draft.assignment)
    if part is not None and draft.amount_usd != part.with_reward_usd:
        raise PaymentRefused(
            _(
                "The work was paid ${part} of its reward already. Overriding pays the whole reward "
                "on top, ${total} in all: type that amount to confirm it."
            ).format(part=part.amount_usd, total=part.with_reward_usd),
            code="part_paid",
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
