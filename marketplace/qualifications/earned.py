"""Qualifications that are given for work and on no request: some HITs of their requester are for
workers without them, and are what leads to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from django.db.models import Exists, F, OuterRef, QuerySet

from marketplace.models import HitType, QualificationRequirement, QualificationType, WorkerAccount

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class IsEarned(TypedDict):
        """What `with_earned` adds."""

        is_earned: bool

    EarnedRequirement = WithAnnotations[QualificationRequirement, IsEarned]


def is_earned(qualification_type: QualificationType) -> bool:
    """Whether it is given for work."""
    return _entrances().filter(qualification_type=qualification_type).exists()


def not_earned(types: QuerySet[QualificationType]) -> QuerySet[QualificationType]:
    """Those that a worker may ask for."""
    return types.exclude(pk__in=_entrances().order_by().values("qualification_type"))


def with_earned(
    requirements: QuerySet[QualificationRequirement],
) -> QuerySet[EarnedRequirement]:
    """With `is_earned`, whether what they require is given for work."""
    same = _entrances().order_by().filter(qualification_type=OuterRef("qualification_type"))
    return requirements.annotate(is_earned=Exists(same))


def work_towards(
    worker: WorkerAccount, types: Iterable[int], now: datetime
) -> Mapping[int, list[HitType]]:
    """By qualification type, the work on offer for this worker that leads to it."""
    rows = _entrances().filter(qualification_type__in=types).order_by()
    types_by_hit_type: dict[int, set[int]] = defaultdict(set)
    for hit_type, each in rows.values_list("hit_type", "qualification_type"):
        types_by_hit_type[hit_type].add(each or 0)
    work: dict[int, list[HitType]] = defaultdict(list)
    on_offer = HitType.objects.open_to(worker, now).filter(pk__in=types_by_hit_type)
    for row in on_offer.order_by("pk") if types_by_hit_type else ():
        for each in types_by_hit_type[row.pk]:
            work[each].append(row)
    return work


def _entrances() -> QuerySet[QualificationRequirement]:
    """What makes HITs be for workers without a qualification of the same requester's; a test is
    taken on request, and what is granted by itself is too."""
    return QualificationRequirement.objects.filter(
        comparator=QualificationRequirement.Comparator.DOES_NOT_EXIST,
        qualification_type__requester=F("hit_type__requester"),
        qualification_type__test="",
        qualification_type__auto_granted=False,
    )
