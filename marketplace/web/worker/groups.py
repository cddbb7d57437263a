from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_safe

from marketplace import clock
from marketplace.exceptions import InvalidAmount
from marketplace.hits import lifecycle
from marketplace.hits.assignments import find_group, find_hit_for, find_next
from marketplace.hits.wages import observed_wages, requester_record
from marketplace.models import (
    Assignment,
    Hit,
    HitType,
    QualificationRequirement,
    WorkerAccount,
    WorkerBlock,
)
from marketplace.money.amounts import parse_amount
from marketplace.qualifications.eligibility import (
    qualifies,
    require_preview,
    unmet_by_hit_type,
    visible_groups,
)
from marketplace.web.worker.access import with_requesters_content, worker_required
from marketplace.web.worker.arrivals import accepts_next_by_itself
from marketplace.web.worker.tasks import task_for

# Which groups of HITs a worker asks to see, in which order: all of it is in the address; and what
# the worker is at already.

SORTS = {
    "newest": (gettext_lazy("Newest first"), "-pk"),
    "reward": (gettext_lazy("Highest reward"), "-reward_usd"),
    "hits": (gettext_lazy("Most HITs"), "-available_count"),
    "shortest": (gettext_lazy("Least time allotted"), "assignment_duration_seconds"),
    "expires": (gettext_lazy("Expires soonest"), "last_expiration"),
}


def assignments_at_hand(worker: WorkerAccount, now: datetime) -> list[tuple[Assignment, int]]:
    return [
        (one, int((one.deadline - now).total_seconds()))
        for one in Assignment.objects.by(worker)
        .filter(status=Assignment.Status.ACCEPTED, deadline__gt=now)
        .select_related("hit__hit_type", "draft")
        .order_by("deadline")
    ]


@dataclass(frozen=True)
class Wish:
    """The filters in the address. Invalid ones are ignored; an invalid amount is reported."""

    text: str
    minimum_text: str
    minimum_usd: Decimal | None
    minimum_error: str
    requester: str
    is_qualified: bool
    sort: str

    @property
    def is_narrow(self) -> bool:
        return bool(self.text or self.minimum_usd or self.requester or self.is_qualified)


def read_wish(query: QueryDict) -> Wish:
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
    return [key for key, reasons in unmet_by_hit_type(worker, guarded).items() if reasons]


def _dollars(text: str) -> tuple[Decimal | None, str]:
    try:
        return parse_amount(text) or None, ""
    except InvalidAmount as error:
        return None, str(error)


GROUPS_PER_PAGE = 25
# As much of what time has done as a list page writes down; `sweep_marketplace` does the rest.
SETTLED_PER_LIST = 100


@require_safe
@worker_required
def groups(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """The groups of HITs there is work in.

    Access: workers.
    """
    now = clock.now()
    lifecycle.settle_due(Hit.objects.all(), now=now, limit=SETTLED_PER_LIST)
    wish = read_wish(request.GET)
    hit_types = grant(wish, visible_groups(worker, now), worker).select_related("requester")
    page = Paginator(hit_types, GROUPS_PER_PAGE).get_page(request.GET.get("page"))
    unmet = unmet_by_hit_type(worker, page.object_list)
    wages = observed_wages(page.object_list)
    context = {
        "worker": worker,
        "page": page,
        "rows": [(group, unmet[group.pk], wages.get(group.pk)) for group in page],
        "wish": wish,
        "sorts": [(name, label) for name, (label, _) in SORTS.items()],
        "held": assignments_at_hand(worker, now),
    }
    return render(request, "marketplace/groups.html", context)


@require_safe
@with_requesters_content
@worker_required
def group(request: HttpRequest, worker: WorkerAccount, hit_type_id: str) -> HttpResponse:
    """The next HIT of a group, to look at.

    Access: workers.
    """
    hit_type = find_group(hit_type_id)
    require_preview(worker, hit_type)
    hit = find_next(worker=worker, hit_type=hit_type)
    if hit is None:
        text = _("No HITs of “%(title)s” are left for you.") % {"title": hit_type.title}
        messages.info(request, text, extra_tags="none_left")
        return redirect("marketplace:groups")
    accept = reverse("marketplace:accept_next", args=[hit_type.public_id])
    return _preview(request, worker, hit, accept)


@require_safe
@with_requesters_content
@worker_required
def hit(request: HttpRequest, worker: WorkerAccount, hit_id: str) -> HttpResponse:
    """A HIT, to look at; the one who is working on it is taken to the work.

    Access: workers.
    """
    row, assignment = find_hit_for(worker, hit_id)
    if assignment is not None:
        return redirect("marketplace:assignment", assignment.public_id)
    return _preview(request, worker, row, reverse("marketplace:accept_hit", args=[row.public_id]))


def _preview(
    request: HttpRequest, worker: WorkerAccount, hit: Hit, accept_url: str
) -> HttpResponse:
    context = {
        "worker": worker,
        "hit": hit,
        "wage": observed_wages([hit.hit_type]).get(hit.hit_type_id),
        "record": requester_record(hit.requester),
        "accept_url": accept_url,
        "unmet": qualifies(worker, hit.hit_type),
        "task": task_for(request, hit, None, worker),
        "auto_accept": accepts_next_by_itself(request),
    }
    return render(request, "marketplace/preview.html", context)
