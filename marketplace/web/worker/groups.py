"""Finding work: the list of groups, and previews."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from marketplace import clock
from marketplace.hits import lifecycle
from marketplace.hits.assignments import find_group, find_hit_for, find_next
from marketplace.hits.wages import observed_wages, requester_record
from marketplace.models import Hit, WorkerAccount
from marketplace.qualifications.eligibility import (
    qualifies,
    require_preview,
    unmet_by_hit_type,
    visible_groups,
)
from marketplace.web.content_policy import with_requesters_content
from marketplace.web.worker.access import worker_required
from marketplace.web.worker.continuation import accepts_next_by_itself
from marketplace.web.worker.lookups import SORTS, assignments_at_hand, grant, read_wish
from marketplace.web.worker.tasks import task_for

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
    accept = reverse("marketplace:accept_hit", args=[row.public_id])
    return _preview(request, worker, row, accept)


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
