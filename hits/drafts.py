import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Min, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from annotation.flags import list_evidence, store_evidence
from annotation.models import Study
from hits.contacts import LONGEST_SUBJECT, validate_text as require_text
from hits.costs import cost_of_assignment
from hits.decisions import (
    bonus_fee_usd,
    bonus_purpose,
    validate_bonus,
    validate_feedback,
    validate_part,
)
from hits.exceptions import DecisionRefused, PaymentRefused, require
from hits.models import (
    PART,
    Assignment,
    AssignmentRecordQuerySet,
    Batch,
    Connection,
    DraftDecision,
    Payment,
    Recruitment,
)
from hits.participants import items_of_participation
from presentation.numbers import group_values

Action = DraftDecision.Action
NOTHING = Decimal(0)
# What costs more than was held when the HIT was published; a part is less than its reward.
PAYING = (Action.BONUS, Action.OVERRIDE)


def price_usd(assignment: Assignment) -> Decimal:
    hit, batch = assignment.hit, assignment.hit.batch
    return cost_of_assignment(batch, hit.max_assignments or batch.max_assignments)


@dataclass(frozen=True)
class PaidPart:
    amount_usd: Decimal
    with_reward_usd: Decimal


def paid_part(assignment: Assignment) -> PaidPart | None:
    # An override adds the whole reward to it.
    payment = assignment.payments.standing().filter(purpose=PART).first()
    if payment is None:
        return None
    return PaidPart(payment.amount_usd, payment.amount_usd + assignment.hit.batch.reward_usd)


def cost_usd(draft: DraftDecision) -> Decimal:
    assignment, amount_usd = draft.assignment, draft.amount_usd or NOTHING
    if draft.action in (Action.APPROVE, Action.OVERRIDE):
        return price_usd(assignment)
    if draft.action in (Action.PART_PAY, Action.BONUS):
        return amount_usd + bonus_fee_usd(assignment, amount_usd)
    return NOTHING


@dataclass(frozen=True)
class Summary:
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
        sums: dict[int, Decimal] = defaultdict(Decimal)
        for draft in self.drafts:
            if draft.action in PAYING:
                sums[draft.assignment.hit.batch_id] += cost_usd(draft)
        return sums

    @property
    def digest(self) -> str:
        # So that no other decisions are sent in their place.
        content = ",".join(f"{draft.pk}" for draft in self.drafts)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def recruiter_pay(drafts: Iterable[DraftDecision]) -> list[dict[str, Any]]:
    approved = {
        (draft.assignment.hit.batch_id, draft.assignment.worker_id)
        for draft in drafts
        if draft.action in (Action.APPROVE, Action.OVERRIDE)
        and draft.assignment.hit.batch.is_recruited
    }
    keys = {worker for _batch, worker in approved}
    done = Assignment.objects.filter(hit__batch__in={batch for batch, _worker in approved})
    done = done.filter(worker__in=keys, status=Assignment.Status.APPROVED)
    # Whoever was approved for another item is paid for all of them already.
    approved -= set(done.values_list("hit__batch", "worker"))
    if not approved:
        return []
    studies = Recruitment.objects.filter(batch__in={batch for batch, _worker in approved})
    studies = studies.exclude(state__in=Recruitment.OVER)
    # The last of a batch is the one that its participants came by, but for earlier ones.
    last = {one.batch_id: one for one in studies.select_related("recruiter").order_by("pk")}
    return [
        {"n_participants": len(each), "rewards": sum(each, NOTHING), "currency": code}
        for code, each in group_values(
            (last[batch].recruiter.currency, last[batch].reward)
            for batch, _worker in approved
            if batch in last
        ).items()
    ]


def summary_of(drafts: Iterable[DraftDecision]) -> Summary:
    rows = sorted(drafts, key=lambda draft: draft.pk)
    costs: dict[str, list[Decimal]] = defaultdict(list)
    elsewhere_usd, connections = NOTHING, {}
    for draft in rows:
        cost, connection = cost_usd(draft), draft.assignment.hit.batch.connection
        costs[draft.action].append(cost)
        connections[connection.pk] = connection
        if not connection.is_on_this_site:
            elsewhere_usd += cost
    in_order = [action.value for action in Action if action in costs]
    return Summary(
        drafts=rows,
        numbers={action: len(costs[action]) for action in in_order},
        costs_usd={action: sum(costs[action], NOTHING) for action in in_order},
        elsewhere_usd=elsewhere_usd,
        connections=list(connections.values()),
    )


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
    # A draft of the same kind by the same reviewer is replaced.
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
    DraftDecision.objects.by(reviewer).filter(assignment=assignment, slot=draft.slot).delete()
    draft.save(force_insert=True)
    return draft


def validate_draft(draft: DraftDecision) -> None:
    action, assignment, amount_usd = draft.action, draft.assignment, draft.amount_usd
    if assignment.hit.batch.is_recruited:
        _require_for_participants(draft)
    if action in (Action.APPROVE, Action.REJECT, Action.PART_PAY):
        require_possible(
            assignment, is_undecided(assignment), _("It is decided already."), "decided_already"
        )
    if action == Action.OVERRIDE:
        require_possible(
            assignment,
            Assignment.objects.overridable().filter(pk=assignment.pk).exists(),
            _("Only a rejection of the last 30 days can be overridden."),
            "override_too_late",
        )
        _require_known_part(draft)
    if action in (Action.APPROVE, Action.REJECT, Action.PART_PAY, Action.OVERRIDE):
        validate_feedback(draft.text, is_required=action in (Action.REJECT, Action.PART_PAY))
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
    assignment, n = draft.assignment, len(draft.text)
    is_invited = assignment.hit.batch.is_invited
    if is_invited and draft.action in (Action.PART_PAY, Action.BONUS):
        require_possible(
            assignment,
            False,
            _("People who come by invitation links are not paid here."),
            "invited_unpaid",
        )
    if draft.action == Action.REJECT and not is_invited:
        message = _(
            "A participant's recruiter asks for a reason of at least {most} characters, and all "
            "items of the participant are rejected by it; this one has {n}."
        ).format(most=SHORTEST_PARTICIPANTS_REASON, n=n)
        require_possible(assignment, n >= SHORTEST_PARTICIPANTS_REASON, message, "short_reason")
    if draft.action == Action.PART_PAY:
        require_possible(
            assignment,
            False,
            _("Participants are paid by their recruiter, who pays all of a study or nothing."),
            "all_or_nothing",
        )
    if draft.action in OPPOSITE and (other := _decided_otherwise(draft)) is not None:
        require_possible(
            assignment,
            False,
            _(
                "Another item of this participant, {item}, is {decision}: all are decided alike."
            ).format(**other),
            "decided_otherwise",
        )
    if draft.action == Action.BONUS:
        currency = currency_of(assignment.hit.batch)
        message = _(
            "The account at the recruiter is in {currency}, and bonuses here are in dollars: pay "
            "this one on the batch's page, under Participants, or at the recruiter."
        ).format(currency=currency)
        require_possible(assignment, currency == "USD", message, "other_currency")


def _decided_otherwise(draft: DraftDecision) -> dict[str, str] | None:
    assignment, (status, action) = draft.assignment, OPPOSITE[Action(draft.action)]
    mine = items_of_participation(assignment).exclude(pk=assignment.pk).select_related("hit__item")
    if (decided := mine.filter(status=status).first()) is not None:
        return {"item": decided.hit.item.key, "decision": str(decided.get_status_display()).lower()}
    drafted = (
        DraftDecision.objects.by(draft.reviewer)
        .filter(assignment__in=mine, action=action)
        .select_related("assignment__hit__item")
        .first()
    )
    if drafted is None:
        return None
    return {
        "item": drafted.assignment.hit.item.key,
        "decision": _("to be decided otherwise ({action})").format(
            action=drafted.get_action_display()
        ),
    }


def currency_of(batch: Batch) -> str:
    last = (
        Recruitment.objects.filter(batch=batch)
        .exclude(state__in=Recruitment.OVER)
        .select_related("recruiter")
        .order_by("-pk")
        .first()
    )
    return last.recruiter.currency if last else "USD"


def is_undecided(assignment: Assignment) -> bool:
    return assignment.status == Assignment.Status.SUBMITTED and not assignment.decision


def require_possible(assignment: Assignment, is_possible: bool, message: str, code: str) -> None:
    require(is_possible, DecisionRefused(message, assignment=assignment, code=code))


def undo_draft(
    *, reviewer: User, study: Study, assignment: Assignment | None = None
) -> DraftDecision | None:
    drafts = DraftDecision.objects.of(study).by(reviewer)
    if assignment is not None:
        drafts = drafts.filter(assignment=assignment)
    last = drafts.select_related("assignment").order_by("-pk").first()
    if last is not None:
        DraftDecision.objects.filter(pk=last.pk).delete()
    return last


def _require_known_part(draft: DraftDecision) -> None:
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
    return [draft for draft in study_drafts(study) if draft.reviewer_id == reviewer.pk]


def study_drafts(study: Study) -> list[DraftDecision]:
    return list(
        DraftDecision.objects.of(study)
        .select_related(
            *("assignment__hit__batch__connection", "assignment__hit__item", "assignment__worker"),
            "reviewer",
        )
        .defer("assignment__answer_xml", "assignment__hit__item__context")
    )


def unflagged_assignments(study: Study, *, hours: float) -> list[Assignment]:
    return list(
        _undecided_since(study, hours)
        .exclude(submission=None)
        .filter(submission__flag_reason="", submission__evidence__is_flagged=False)
    )


def held_back(study: Study, *, hours: float) -> list[Assignment]:
    return list(
        _undecided_since(study, hours).exclude(
            Q(submission__flag_reason="", submission__evidence__is_flagged=False)
        )
    )


def measure_holds(study: Study) -> None:
    newest = list_evidence(study).first()
    if newest is None or newest.facts["judgments_version"] != study.judgments_version:
        store_evidence(study)


def fast_assignments(study: Study, *, divisor: float) -> list[Assignment]:
    # Workers who fill in several pages and submit them together did not work fast, though little
    # time passes between submissions.
    version = list_evidence(study).first()
    if version is None or version.facts["typical_seconds"] is None:
        return []
    limit = version.facts["typical_seconds"] / divisor
    is_fast = Q(submission__seconds__lt=limit) | Q(submission__active_seconds__lt=limit)
    return list(
        _undecided(study)
        .exclude(submission=None)
        .filter(is_fast, submission__evidence__seconds__lt=limit)
    )


def frequent_workers(study: Study, *, least_approved: int, reason: str) -> list[Assignment]:
    """The first approved assignment of each worker who has this many, and no bonus for this
    reason."""
    approvals = Assignment.objects.filter(
        hit__batch__study=study, status=Assignment.Status.APPROVED
    )
    payments = Payment.objects.of(study).standing().filter(purpose=bonus_purpose(reason))
    workers = (
        approvals.order_by()
        .values("worker")
        .annotate(n=Count("*"))
        .filter(n__gte=least_approved)
        .exclude(worker__in=payments.values("assignment__worker"))
    )
    firsts = workers.annotate(first=Min("pk")).values("first")
    return list(_with_all(Assignment.objects.filter(pk__in=firsts).order_by("pk")))


def _undecided_since(study: Study, hours: float) -> AssignmentRecordQuerySet:
    return _undecided(study).filter(submitted_at__lte=timezone.now() - timedelta(hours=hours))


def _undecided(study: Study) -> AssignmentRecordQuerySet:
    return _with_all(
        Assignment.objects.undecided()
        .filter(hit__batch__study=study)
        .order_by("submitted_at", "pk")
    )


def _with_all(rows: AssignmentRecordQuerySet) -> AssignmentRecordQuerySet:
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
