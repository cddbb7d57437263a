"""Which groups of HITs a worker asks to see, in which order: all of it is in the address; and what
the worker is at already."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from marketplace.exceptions import InvalidAmount
from marketplace.models import (
    Assignment,
    HitType,
    QualificationRequirement,
    WorkerAccount,
    WorkerBlock,
)
from marketplace.money.amounts import parse_amount
from marketplace.qualifications.eligibility import unmet_by_hit_type

SORTS = {
    "newest": (gettext_lazy("Newest first"), "-pk"),
    "reward": (gettext_lazy("Highest reward"), "-reward_usd"),
    "hits": (gettext_lazy("Most HITs"), "-available_count"),
    "shortest": (gettext_lazy("Least time allotted"), "assignment_duration_seconds"),
    "expires": (gettext_lazy("Expires soonest"), "last_expiration"),
}


def assignments_at_hand(worker: WorkerAccount, now: datetime) -> list[tuple[Assignment, int]]:
    """What the worker has accepted and not handed in, with the seconds that are left for it, that
    with the fewest first."""
    mine = Assignment.objects.by(worker).filter(status=Assignment.Status.ACCEPTED, deadline__gt=now)
    rows = mine.select_related("hit__hit_type", "draft").order_by("deadline")
    return [(one, int((one.deadline - now).total_seconds())) for one in rows]


@dataclass(frozen=True)
class Wish:
    """What the address asks for; whatever makes no sense in it is left aside, and an amount that
    makes none is reported."""

    text: str
    minimum_text: str
    minimum_usd: Decimal | None
    minimum_error: str
    requester: str
    is_qualified: bool
    sort: str

    @property
    def is_narrow(self) -> bool:
        """Whether anything is filtered out."""
        return bool(self.text or self.minimum_usd or self.requester or self.is_qualified)


def read_wish(query: QueryDict) -> Wish:
    """The wish in an address."""
    sort = query.get("sort", "")
    minimum_text = query.get("min_reward", "").strip()
    minimum_usd, minimum_error = _dollars(minimum_text) if minimum_text else (None, "")
    return Wish(
        text=query.get("q", "").replace("\0", "").strip(),
        minimum_text=minimum_text,
        minimum_usd=minimum_usd,
        minimum_error=minimum_error,
        requester=query.get("requester", "").replace("\0", "").strip(),
        is_qualified=query.get("qualified") == "on",
        sort=sort if sort in SORTS else "newest",
    )


def grant(wish: Wish, groups: QuerySet[HitType], worker: WorkerAccount) -> QuerySet[HitType]:
    """Those of these groups that the wish is about, in its order."""
    if wish.text:
        groups = groups & HitType.objects.mentioning(wish.text)
    if wish.minimum_usd is not None:
        groups = groups.filter(reward_usd__gte=wish.minimum_usd)
    if wish.requester:
        groups = groups.filter(requester__public_id=wish.requester)
    if wish.is_qualified:
        groups = groups.exclude(pk__in=_beyond(worker, groups))
    return groups.order_by(SORTS[wish.sort][1], "-pk")


def _beyond(worker: WorkerAccount, groups: QuerySet[HitType]) -> list[int]:
    required = QualificationRequirement.objects.filter(hit_type=OuterRef("pk"))
    blocked = WorkerBlock.objects.filter(worker=worker).values("requester")
    guarded = groups.filter(Exists(required) | Q(requester__in=blocked))
    unmet = unmet_by_hit_type(worker, guarded)
    return [key for key, reasons in unmet.items() if reasons]


def _dollars(text: str) -> tuple[Decimal | None, str]:
    try:
        return parse_amount(text) or None, ""
    except InvalidAmount as error:
        return None, str(error)
