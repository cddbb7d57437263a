"""Which groups of HITs a worker asks to see, in which order: all of it is in the address."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict

from marketplace.exceptions import InvalidAmount
from marketplace.models import HitType, QualificationRequirement, WorkerAccount, WorkerBlock
from marketplace.money.amounts import parse_amount
from marketplace.qualifications.eligibility import unmet_by_hit_type

SORTS = {
    "newest": ("Newest first", "-pk"),
    "reward": ("Highest reward", "-reward_usd"),
    "hits": ("Most HITs", "-available_count"),
    "shortest": ("Least time allotted", "assignment_duration_seconds"),
    "expires": ("Expires soonest", "last_expiration"),
}


@dataclass(frozen=True)
class Wish:
    """What the address asks for; whatever makes no sense in it is left aside."""

    text: str
    minimum_usd: Decimal | None
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
    return Wish(
        text=query.get("q", "").replace("\0", "").strip(),
        minimum_usd=_dollars(query.get("min_reward", "")),
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


def _dollars(text: str) -> Decimal | None:
    try:
        return parse_amount(text) or None
    except InvalidAmount:
        return None
