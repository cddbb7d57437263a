"""Budgets: what is committed already, and the hard cap on what more may be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from accounts.audit import record
from annotation.models import Study
from hits.costs import cost_of_assignment
from hits.exceptions import OverBudget
from hits.models import SIZE, Assignment, Batch, Budget, Hit, Payment

if TYPE_CHECKING:
    from accounts.models import Team, User

NOTHING = Decimal(0)
SIZE_OF_HIT = Coalesce(F("hit__max_assignments"), F("hit__batch__max_assignments"))


def committed_by_batch(batches: QuerySet[Batch]) -> dict[int, Decimal]:
    """What each batch has cost or may still cost: rewards, fees and bonuses.

    A HIT that takes no more answers counts with those it has, rejected ones with nothing.
    """
    committed: dict[int, Decimal] = defaultdict(lambda: NOTHING)
    known = {batch.pk: batch for batch in batches.select_related("connection")}
    for (pk, size), n_assignments in _assignments(list(known)).items():
        committed[pk] += n_assignments * cost_of_assignment(known[pk], size)
    bonuses = Payment.objects.standing().filter(assignment__hit__batch__in=list(known))
    totals = bonuses.order_by().values_list("assignment__hit__batch")
    for pk, amount in totals.annotate(total=Sum(F("amount_usd") + F("fee_usd"))):
        committed[pk] += amount
    return dict(committed)


def _assignments(batches: list[int]) -> dict[tuple[int, int], int]:
    """How many may have to be paid, by batch and by the size of their HIT."""
    is_withdrawn = Q(hit_id="", batch__closed_at__isnull=False)
    hits = Hit.objects.filter(batch__in=batches).exclude(is_withdrawn).order_by()
    sizes = hits.annotate(size=SIZE).values_list("batch", "size")
    n_open = Sum(Coalesce(F("n_answers"), F("size")))
    numbers = {(pk, size): n for pk, size, n in sizes.annotate(n=n_open)}
    rejected = Assignment.objects.filter(
        hit__batch__in=batches, status=Assignment.Status.REJECTED
    ).order_by()
    by_size = rejected.annotate(size=SIZE_OF_HIT).values_list("hit__batch", "size")
    for pk, size, n in by_size.annotate(n=Count("pk")):
        numbers[pk, size] -= n
    return numbers


@dataclass(frozen=True)
class Room:
    """A budget and what is committed of it."""

    budget: Budget
    committed_usd: Decimal

    @property
    def left_usd(self) -> Decimal:
        return self.budget.cap_usd - self.committed_usd

    @property
    def scope(self) -> str:
        """What it is of: team, study or batch."""
        return next(name for name in ("team", "study", "batch") if getattr(self.budget, name))


def budgets_of(study: Study, batch: Batch | None = None) -> QuerySet[Budget]:
    """The budgets that a study's spending is held to, its team's first."""
    scope = Q(study=study.pk)
    if study.team_id is not None:
        scope |= Q(team=study.team_id)
    if batch is not None and batch.pk is not None:
        scope |= Q(batch=batch.pk)
    budgets = Budget.objects.filter(scope).select_related("team", "study", "batch")
    return budgets.order_by(F("team").asc(nulls_last=True), F("study").asc(nulls_last=True))


def rooms_of(study: Study, batch: Batch | None = None, *, is_locking: bool = False) -> list[Room]:
    """Each budget with what is committed of it; locked, for who is about to commit more."""
    budgets = list(_locked(study, batch) if is_locking else budgets_of(study, batch))
    if not budgets:
        return []
    return list(_rooms(study, budgets))


def _locked(study: Study, batch: Batch | None) -> QuerySet[Budget]:
    return budgets_of(study, batch).select_for_update(of=("self",))


def _rooms(study: Study, budgets: list[Budget]) -> Iterator[Room]:
    shared = any(budget.team_id for budget in budgets)
    scope = Q(study__team=study.team_id) if shared else Q(study=study.pk)
    studies = dict(Batch.objects.filter(scope).order_by().values_list("pk", "study"))
    committed = committed_by_batch(Batch.objects.filter(pk__in=list(studies)))
    for budget in budgets:
        yield Room(
            budget,
            sum(
                (
                    amount
                    for pk, amount in committed.items()
                    if budget.team_id or budget.study_id == studies[pk] or budget.batch_id == pk
                ),
                NOTHING,
            ),
        )


def require_within_budgets(*, study: Study, extra_usd: Decimal, batch: Batch | None = None) -> None:
    """Refuse to commit more than the budgets of the team, the study and the batch allow.

    Inside the transaction that commits it: the budgets stay locked until then.
    """
    for room in rooms_of(study, batch, is_locking=True):
        if extra_usd > room.left_usd:
            raise OverBudget(over_budget_message(room, extra_usd))


def over_budget_message(room: Room, extra_usd: Decimal) -> str:
    """What is wrong where a budget does not reach, in a sentence."""
    name = {"team": "The team's", "study": "The study's", "batch": "The batch's"}[room.scope]
    return (
        f"{name} budget is ${room.budget.cap_usd:.2f}, of which ${room.committed_usd:.2f} are "
        f"committed; ${extra_usd:.2f} more would exceed it."
    )


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
