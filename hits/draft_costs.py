"""What sending prepared decisions costs, one by one and all together."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from hits.costs import cost_of_assignment
from hits.models import PART, Assignment, Connection, DraftDecision, Recruitment
from hits.payments import bonus_fee_usd

Action = DraftDecision.Action
NOTHING = Decimal(0)
PAYING = (Action.BONUS, Action.OVERRIDE)
"""What costs more than was held when the HIT was published; a part is less than its reward."""


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


@dataclass(frozen=True)
class RecruiterPay:
    """What approvals have a recruiter pay to participants, who are approved as a whole."""

    n_participants: int
    rewards: Decimal
    currency: str


def recruiter_pay(drafts: Iterable[DraftDecision]) -> list[RecruiterPay]:
    """What these decisions have recruiters pay at most, by currency; fees are theirs to say."""
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
    sums: dict[str, list[Decimal]] = {}
    for batch, _worker in approved:
        if (study := last.get(batch)) is not None:
            sums.setdefault(study.recruiter.currency, []).append(study.reward)
    return [RecruiterPay(len(each), sum(each, NOTHING), code) for code, each in sums.items()]


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
