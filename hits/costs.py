from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any, Self

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Round
from django.utils.translation import gettext as _, ngettext

from accounts.audit import record
from accounts.models import Team, User
from annotation.assignment_facts import AssignmentPrice
from annotation.models import Study
from annotation.protocols.practice import n_attempts
from hits.connections import balance_usd
from hits.endpoints import MTurkClient
from hits.exceptions import FundsMissing, OverBudget, require
from hits.models import (
    PART,
    SIZE,
    Assignment,
    Batch,
    Budget,
    DeliveryState,
    Hit,
    Payment,
    PracticeHit,
    Recruiter,
    Recruitment,
    paid_of,
    set_aside_of,
)
from hits.selections import items_without_hit, selected_items

CENT = Decimal("0.01")
MANY_ASSIGNMENTS = 10


@dataclass(frozen=True)
class FeeSchedule:
    share: Decimal
    share_many: Decimal
    share_masters: Decimal
    minimum_usd: Decimal

    def fee_usd(
        self, reward_usd: Decimal, max_assignments: int, *, needs_masters: bool = False
    ) -> Decimal:
        share = self.share
        if max_assignments >= MANY_ASSIGNMENTS:
            share += self.share_many
        if needs_masters:
            share += self.share_masters
        return self._round_up(reward_usd * share) if reward_usd else Decimal(0)

    def bonus_fee_usd(self, amount_usd: Decimal) -> Decimal:
        return self._round_up(amount_usd * self.share)

    def _round_up(self, fee_usd: Decimal) -> Decimal:
        return max(fee_usd.quantize(CENT, ROUND_HALF_UP), self.minimum_usd)


# Amazon's of 2015-07: 20%, 20% more from ten assignments on, 5% more for Masters, at least a
# cent; 20% of a bonus.
SCHEDULES = {
    "none": FeeSchedule(Decimal(0), Decimal(0), Decimal(0), Decimal(0)),
    "mturk": FeeSchedule(Decimal("0.20"), Decimal("0.20"), Decimal("0.05"), CENT),
}


@dataclass(frozen=True)
class Estimate:
    # Rewards and fees if every assignment is approved; `practice_usd` is the most that practice
    # costs beside them, with fees.

    n_hits: int
    n_assignments: int
    rewards_usd: Decimal
    fees_usd: Decimal
    practice_usd: Decimal = Decimal(0)

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd + self.practice_usd

    def __add__(self, practice_usd: Decimal) -> Self:
        return replace(self, practice_usd=self.practice_usd + practice_usd)

    def __str__(self) -> str:
        if self.practice_usd:
            text = _(
                "{hits}, {assignments}: rewards ${rewards:.2f}, fees ${fees:.2f}, practice "
                "${practice:.2f}, in all ${total:.2f}"
            )
        else:
            text = _(
                "{hits}, {assignments}: rewards ${rewards:.2f}, fees ${fees:.2f}, in all "
                "${total:.2f}"
            )
        n = self.n_assignments
        return text.format(
            hits=ngettext("{n:,} HIT", "{n:,} HITs", self.n_hits).format(n=self.n_hits),
            assignments=ngettext("{n:,} assignment", "{n:,} assignments", n).format(n=n),
            rewards=self.rewards_usd,
            fees=self.fees_usd,
            practice=self.practice_usd,
            total=self.total_usd,
        )


def estimate(batch: Batch) -> Estimate:
    if batch.pk is None:
        return price_launch(batch, n_items=len(selected_items(batch)))
    sizes = Counter(
        own or batch.max_assignments
        for (own,) in Hit.objects.of(batch).unpublished().order_by().values_list("max_assignments")
    )
    if batch.is_of_all_items:
        n_bare = items_without_hit(batch).count()
        sizes.update({size: n * n_bare for size, n in batch.n_hits_by_size.items()})
    return price_hits(batch, sizes) + price_practice(
        batch, PracticeHit.objects.of(batch).unpublished()
    )


def price_launch(draft: Batch, *, n_items: int) -> Estimate:
    return price_items(draft, n_items=n_items) + price_practice(draft, unsaved_practice(draft))


def price_practice(batch: Batch, hits: Iterable[PracticeHit]) -> Decimal:
    return sum((hit.max_assignments * cost_of_practice(batch, hit) for hit in hits), Decimal(0))


def cost_of_practice(batch: Batch, hit: PracticeHit) -> Decimal:
    return hit.reward_usd + SCHEDULES[batch.connection.fees].fee_usd(
        hit.reward_usd, hit.max_assignments, needs_masters=batch.needs_masters
    )


def unsaved_practice(batch: Batch) -> list[PracticeHit]:
    # One HIT per attempt, so that a worker who has used them up finds no other.
    practice = batch.document.qualifications.practice
    if practice is None:
        return []
    return [
        PracticeHit(
            batch=batch,
            number=number,
            reward_usd=Decimal(str(practice.reward_usd)).quantize(CENT),
            max_assignments=practice.most_workers,
        )
        for number in range(n_attempts(practice))
    ]


def price_items(batch: Batch, *, n_items: int) -> Estimate:
    return price_hits(batch, {size: n * n_items for size, n in batch.n_hits_by_size.items()})


def price_hits(batch: Batch, n_by_size: Mapping[int, int]) -> Estimate:
    n_hits = n_assignments = 0
    total = Decimal(0)
    for size, n in n_by_size.items():
        n_hits += n
        n_assignments += n * size
        total += n * size * cost_of_assignment(batch, size)
    rewards = batch.reward_usd * n_assignments
    return Estimate(n_hits, n_assignments, rewards, total - rewards)


def cost_of_assignment(batch: Batch, max_assignments: int) -> Decimal:
    # Participants cost the requester nothing: their recruiter pays them.
    if batch.is_recruited:
        return Decimal(0)
    return batch.reward_usd + SCHEDULES[batch.connection.fees].fee_usd(
        batch.reward_usd, max_assignments, needs_masters=batch.needs_masters
    )


def require_funds(*, cost: Estimate, client: MTurkClient) -> None:
    available = balance_usd(client)
    require(
        available >= cost.total_usd,
        FundsMissing(
            _("{cost}; but the account has only ${available:.2f}. Nothing was published.").format(
                cost=cost, available=available
            )
        ),
    )


def latest_assignment_price(study: Study) -> AssignmentPrice | None:
    """At the price of the study's last batch; None if there is none, or if a recruiter pays."""
    batch = Batch.objects.of(study).started().select_related("connection").order_by("-pk").first()
    if batch is None or batch.is_recruited:
        return None
    return AssignmentPrice(batch.reward_usd, partial(cost_of_assignment, batch))


NOTHING = Decimal("0.00")


@dataclass(frozen=True)
class Spend:
    rewards_usd: Decimal = NOTHING
    fees_usd: Decimal = NOTHING
    bonuses_usd: Decimal = NOTHING
    bonus_fees_usd: Decimal = NOTHING

    @property
    def total_usd(self) -> Decimal:
        return self.rewards_usd + self.fees_usd + self.bonuses_usd + self.bonus_fees_usd


def spend_of(batch: Batch) -> Spend:
    return spend_by_batch([batch])[batch.pk]


def spend_by_batch(batches: Iterable[Batch]) -> Mapping[int, Spend]:
    """Approved assignments, of practice too, and confirmed payments. What a recruiter pays
    participants has not left the requester's account."""
    by_key = {batch.pk: batch for batch in batches}
    rewards_usd, prices_usd = dict.fromkeys(by_key, NOTHING), dict.fromkeys(by_key, NOTHING)
    for key, size, n in (
        Assignment.objects.filter(hit__batch__in=by_key, status=Assignment.Status.APPROVED)
        .order_by()
        .values_list("hit__batch", "hit__max_assignments")
        .annotate(n=Count("*"))
    ):
        batch = by_key[key]
        rewards_usd[key] += n * batch.reward_usd
        prices_usd[key] += n * cost_of_assignment(batch, size or batch.max_assignments)
    practised = [key for key, batch in by_key.items() if batch.practice_type_id]
    rows = PracticeHit.objects.filter(batch__in=practised).order_by()
    for hit in rows.paid() if practised else ():
        rewards_usd[hit.batch_id] += hit.n_paid * hit.reward_usd
        prices_usd[hit.batch_id] += hit.n_paid * cost_of_practice(by_key[hit.batch_id], hit)
    payments = Payment.objects.filter(
        assignment__hit__batch__in=by_key,
        assignment__hit__batch__is_recruited=False,
        state=DeliveryState.CONFIRMED,
    ).order_by()
    totals = payments.values_list("assignment__hit__batch").annotate(
        # SQLite adds in binary: some hundred amounts are a trifle off the cent.
        amount=Round(Sum("amount_usd"), 2),
        fee=Round(Sum("fee_usd"), 2),
    )
    paid_usd = {key: (amount, fee) for key, amount, fee in totals}
    return {
        key: Spend(rewards_usd[key], prices_usd[key] - rewards_usd[key], *paid_usd.get(key, ()))
        for key in by_key
    }


def paid_by_recruiters(study_ids: Iterable[int]) -> Mapping[int, Mapping[str, Decimal]]:
    # By study and currency, fees included: never summed with what left the requester's account.
    sums: dict[int, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for study, currency, charges in (
        Recruitment.objects.filter(batch__study__in=list(study_ids))
        .exclude(charges={})
        .values_list("batch__study", "recruiter__currency", "charges")
    ):
        sums[study][currency] += paid_of(charges)
    return {study: {key: paid for key, paid in one.items() if paid} for study, one in sums.items()}


def charges_of(recruiter: Recruiter) -> tuple[Decimal, Decimal]:
    # Return what was paid and what is set aside for open studies, in the account's currency.
    rows = recruiter.recruitments.all()
    return sum((paid_of(one.charges) for one in rows), NOTHING), sum(
        [set_aside_of(one.charges) for one in rows if one.is_live], NOTHING
    )


SIZE_OF_HIT = Coalesce(F("hit__max_assignments"), F("hit__batch__max_assignments"))


@dataclass(frozen=True)
class Commitment:
    batch: Batch
    usd: Decimal

    def is_within(self, budget: Budget) -> bool:
        study = self.batch.study
        if budget.team_id is not None:
            return study.team_id == budget.team_id
        return budget.study_id == study.pk or budget.batch_id == self.batch.pk


def commitments(batches: QuerySet[Batch]) -> list[Commitment]:
    """What is committed to each batch, in three statements, or four with practice. A HIT that
    takes no more answers counts with those it has; rejected ones count only if they are to be
    overridden. The part that a rejection leaves counts once it is confirmed; until then the
    whole reward does."""
    bonuses = Payment.objects.standing().filter(assignment__hit__batch=OuterRef("pk")).order_by()
    is_rejected = Q(assignment__status=Assignment.Status.REJECTED)
    bonuses = bonuses.exclude(assignment__hit__batch__is_recruited=True)
    bonuses = bonuses.exclude(~is_rejected, purpose=PART, state=DeliveryState.INTENDED)
    # SQLite adds in binary: some hundred amounts are a trifle off the cent, and of a cap.
    sum_usd = Round(Sum(F("amount_usd") + F("fee_usd")), 2)
    rows = batches.select_related("connection", "study").annotate(
        paid_usd=Subquery(bonuses.values("assignment__hit__batch").annotate(n=sum_usd).values("n")),
        has_practice=Exists(PracticeHit.objects.filter(batch=OuterRef("pk"))),
    )
    by_key = {batch.pk: batch for batch in rows}
    sums = {pk: getattr(batch, "paid_usd", None) or NOTHING for pk, batch in by_key.items()}
    for (pk, size), n_assignments in _assignments(list(by_key)).items():
        sums[pk] += n_assignments * cost_of_assignment(by_key[pk], size)
    practised = [pk for pk, batch in by_key.items() if getattr(batch, "has_practice", False)]
    practice = PracticeHit.objects.filter(batch__in=practised).order_by()
    # Less those that are withdrawn.
    practice = practice.exclude(hit_id="", batch__closed_at__isnull=False)
    for hit in practice if practised else ():
        n = hit.max_assignments if hit.n_answers is None else hit.n_answers
        sums[hit.batch_id] += n * cost_of_practice(by_key[hit.batch_id], hit)
    return [Commitment(by_key[pk], usd) for pk, usd in sums.items()]


def _assignments(batches: list[int]) -> dict[tuple[int, int], int]:
    numbers = {
        (pk, size): n
        for pk, size, n in Hit.objects.filter(batch__in=batches)
        .exclude(Q(hit_id="", batch__closed_at__isnull=False))
        .order_by()
        .annotate(size=SIZE)
        .values_list("batch", "size")
        .annotate(n=Sum(Coalesce(F("n_answers"), F("size"))))
    }
    rejections = Assignment.objects.filter(
        hit__batch__in=batches, status=Assignment.Status.REJECTED
    ).order_by()
    # One that is to be overridden will be paid.
    rejections = rejections.exclude(decision=Assignment.Decision.OVERRIDE, decision_problem="")
    by_size = rejections.annotate(size=SIZE_OF_HIT).values_list("hit__batch", "size")
    for pk, size, n in by_size.annotate(n=Count("*")):
        numbers[pk, size] -= n
    return numbers


@dataclass(frozen=True)
class Room:
    budget: Budget
    committed_usd: Decimal

    @property
    def left_usd(self) -> Decimal:
        return self.budget.cap_usd - self.committed_usd

    @property
    def scope(self) -> str:
        return next(name for name in ("team", "study", "batch") if getattr(self.budget, name))


def budgets_of(study: Study, batches: Iterable[int] = ()) -> QuerySet[Budget]:
    scope = Q(study=study.pk) | Q(batch__in=list(batches))
    if study.team_id is not None:
        scope |= Q(team=study.team_id)
    budgets = Budget.objects.filter(scope).select_related("team", "study", "batch")
    return budgets.order_by(F("team").asc(nulls_last=True), F("study").asc(nulls_last=True), "pk")


def rooms_of(study: Study, batches: Iterable[int] = (), *, is_locking: bool = False) -> list[Room]:
    rows = budgets_of(study, batches)
    return _rooms(list(rows.select_for_update(of=("self",)) if is_locking else rows))


def rooms_by_study(studies: Sequence[Study]) -> list[Room]:
    scope = Q(study__in=[study.pk for study in studies]) | Q(
        team__in={study.team_id for study in studies if study.team_id is not None}
    )
    return _rooms(list(Budget.objects.filter(scope).select_related("team", "study").order_by("pk")))


def _rooms(budgets: list[Budget]) -> list[Room]:
    of_budgets = Q(study__team__in=[budget.team_id for budget in budgets if budget.team_id])
    of_budgets |= Q(study__in=[budget.study_id for budget in budgets if budget.study_id])
    of_budgets |= Q(pk__in=[budget.batch_id for budget in budgets if budget.batch_id])
    rows = commitments(Batch.objects.filter(of_budgets)) if budgets else []
    return [
        Room(budget, sum((one.usd for one in rows if one.is_within(budget)), NOTHING))
        for budget in budgets
    ]


def require_within_budgets(*, study: Study, extra_usd_by_batch: Mapping[int, Decimal]) -> None:
    """Refuse to commit more than the budgets of the team, the study and each batch allow. Call
    it inside the transaction that commits: the budgets stay locked until then. Amounts that are
    written down already are not extra."""
    total_usd = sum(extra_usd_by_batch.values(), NOTHING)
    for room in rooms_of(study, extra_usd_by_batch.keys(), is_locking=True):
        of_batch = room.budget.batch_id
        extra_usd = total_usd if of_batch is None else extra_usd_by_batch[of_batch]
        if extra_usd > room.left_usd:
            raise OverBudget(over_budget_message(room, extra_usd), code=f"{room.scope}_budget")


def over_budget_message(room: Room, extra_usd: Decimal) -> str:
    return {
        "team": _(
            "The team's budget is ${cap:.2f}, of which ${committed:.2f} are committed; "
            "${extra:.2f} more would exceed it."
        ),
        "study": _(
            "The study's budget is ${cap:.2f}, of which ${committed:.2f} are committed; "
            "${extra:.2f} more would exceed it."
        ),
        "batch": _(
            "The batch's budget is ${cap:.2f}, of which ${committed:.2f} are committed; "
            "${extra:.2f} more would exceed it."
        ),
    }[room.scope].format(cap=room.budget.cap_usd, committed=room.committed_usd, extra=extra_usd)


@transaction.atomic
def set_budget(
    *,
    cap_usd: Decimal | None,
    actor: User | None,
    team: Team | None = None,
    study: Study | None = None,
    batch: Batch | None = None,
) -> None:
    about: dict[str, Any] = {"team": team, "study": study, "batch": batch}
    [(scope, subject)] = [(name, value) for name, value in about.items() if value is not None]
    if cap_usd is None:
        Budget.objects.filter(**{scope: subject}).delete()
    else:
        Budget.objects.update_or_create(**{scope: subject}, defaults={"cap_usd": cap_usd})
    of = study or (batch.study if batch else None)
    record(
        team=team or (of.team if of else None),
        actor=actor,
        action="budget.set",
        subject=f"{scope} {subject}",
        details={"cap_usd": None if cap_usd is None else f"{cap_usd:.2f}"},
    )
