"""Budgets: what is committed already, and the hard cap on what more may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Round
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import Team, User
from annotation.models import Study
from hits.costs import cost_of_assignment, cost_of_practice
from hits.exceptions import OverBudget
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
)

NOTHING = Decimal(0)
SIZE_OF_HIT = Coalesce(F("hit__max_assignments"), F("hit__batch__max_assignments"))


@dataclass(frozen=True)
class Commitment:
    """What a batch has cost or may still cost: rewards, fees and bonuses."""

    batch: Batch
    usd: Decimal

    def is_within(self, budget: Budget) -> bool:
        study = self.batch.study
        if budget.team_id is not None:
            return study.team_id == budget.team_id
        return budget.study_id == study.pk or budget.batch_id == self.batch.pk


def commitments(batches: QuerySet[Batch]) -> list[Commitment]:
    """What is committed to each batch, in three statements, or four with practice.

    A HIT that takes no more answers counts with those it has, rejected ones with nothing
    unless they are to be overridden. The part that a rejection leaves counts once that is
    confirmed: until then its whole reward does, of which it is less.
    """
    bonuses = Payment.objects.standing().filter(assignment__hit__batch=OuterRef("pk")).order_by()
    is_rejected = Q(assignment__status=Assignment.Status.REJECTED)
    bonuses = bonuses.exclude(assignment__hit__batch__is_recruited=True)
    bonuses = bonuses.exclude(~is_rejected, purpose=PART, state=DeliveryState.INTENDED)
    # SQLite adds in binary: some hundred amounts are a trifle off the cent, and of a cap.
    sum_usd = Round(Sum(F("amount_usd") + F("fee_usd")), 2)
    paid = bonuses.values("assignment__hit__batch").annotate(n=sum_usd)
    rows = batches.select_related("connection", "study").annotate(
        paid_usd=Subquery(paid.values("n")),
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
    """How many may have to be paid, by batch and by the size of their HIT."""
    is_withdrawn = Q(hit_id="", batch__closed_at__isnull=False)
    hits = Hit.objects.filter(batch__in=batches).exclude(is_withdrawn).order_by()
    sizes = hits.annotate(size=SIZE).values_list("batch", "size")
    n_open = Sum(Coalesce(F("n_answers"), F("size")))
    numbers = {(pk, size): n for pk, size, n in sizes.annotate(n=n_open)}
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
        """What it is of: team, study or batch."""
        return next(name for name in ("team", "study", "batch") if getattr(self.budget, name))


def budgets_of(study: Study, batches: Iterable[int] = ()) -> QuerySet[Budget]:
    """The budgets that spending on these batches of a study is held to, its team's first."""
    scope = Q(study=study.pk) | Q(batch__in=list(batches))
    if study.team_id is not None:
        scope |= Q(team=study.team_id)
    budgets = Budget.objects.filter(scope).select_related("team", "study", "batch")
    order = (F("team").asc(nulls_last=True), F("study").asc(nulls_last=True), "pk")
    return budgets.order_by(*order)


def rooms_of(study: Study, batches: Iterable[int] = (), *, is_locking: bool = False) -> list[Room]:
    """Each budget with what is committed of it; locked, for who is about to commit more."""
    rows = budgets_of(study, batches)
    budgets = list(rows.select_for_update(of=("self",)) if is_locking else rows)
    return _rooms(budgets)


def rooms_by_study(studies: Sequence[Study]) -> list[Room]:
    teams = {study.team_id for study in studies if study.team_id is not None}
    scope = Q(study__in=[study.pk for study in studies]) | Q(team__in=teams)
    budgets = list(Budget.objects.filter(scope).select_related("team", "study").order_by("pk"))
    return _rooms(budgets)


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
    """Refuse to commit more than the budgets of the team, the study and each batch allow.

    Inside the transaction that commits it: the budgets stay locked until then. What is written
    down already is extra by nothing; a batch that is not stored yet has no budget of its own.
    """
    total_usd = sum(extra_usd_by_batch.values(), NOTHING)
    for room in rooms_of(study, extra_usd_by_batch.keys(), is_locking=True):
        of_batch = room.budget.batch_id
        extra_usd = total_usd if of_batch is None else extra_usd_by_batch[of_batch]
        if extra_usd > room.left_usd:
            raise OverBudget(over_budget_message(room, extra_usd), code=f"{room.scope}_budget")


def over_budget_message(room: Room, extra_usd: Decimal) -> str:
    """What is wrong where a budget does not reach, in a sentence."""
    message = {
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
    }[room.scope]
    return message.format(cap=room.budget.cap_usd, committed=room.committed_usd, extra=extra_usd)


@transaction.atomic
def set_budget(
    *,
    cap_usd: Decimal | None,
    actor: User | None,
    team: Team | None = None,
    study: Study | None = None,
    batch: Batch | None = None,
) -> None:
    """Set the most that a team, a study or a batch may cost; without a cap, take it away."""
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
