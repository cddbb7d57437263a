"""From one HIT to the next: auto-accept, and the links that Mechanical Turk's pages have."""

from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace import clock
from marketplace.exceptions import NoAssignmentsLeft
from marketplace.hits.assignments import accept_next, find_group, find_hit_for
from marketplace.models import Assignment, HitType, WorkerAccount
from marketplace.templatetags.marketplace_tags import timestamp
from marketplace.web.worker.access import for_participants, worker_required
from marketplace.web.worker.arrivals import way_on

AUTO_ACCEPT = "marketplace_auto_accept"
# Who comes here later has reloaded the page, or followed an old address.
CONFIRMED_WITHIN = timedelta(minutes=1)


def accepts_next_by_itself(request: HttpRequest) -> bool:
    return bool(request.session.get(AUTO_ACCEPT))


def remember_choice(request: HttpRequest) -> None:
    is_on = request.POST.get("auto_accept") == "on"
    if is_on != accepts_next_by_itself(request):
        request.session[AUTO_ACCEPT] = is_on


@require_POST
@worker_required
def auto_accept(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """Switch auto-accept on or off.

    Access: workers.
    """
    remember_choice(request)
    return redirect("marketplace:assignment", assignment_id)


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
@for_participants
def next_hit(request: HttpRequest, worker: WorkerAccount, hit_type_id: str) -> HttpResponse:
    """Where a worker goes who has submitted a HIT of this group. Only a POST, which a page of
    another site cannot make, accepts the next HIT.

    Access: workers.
    """
    return go_on(request, worker, find_group(hit_type_id))


def go_on(request: HttpRequest, worker: WorkerAccount, hit_type: HitType) -> HttpResponse:
    """Where to go after a submission: a participant's own way, the next HIT, or the group's
    preview."""
    _confirm(request, worker, hit_type)
    if (way := way_on(worker, hit_type)) is not None:
        return way
    if request.method == "POST" and accepts_next_by_itself(request):
        return _accept(request, worker, hit_type)
    return redirect("marketplace:group", hit_type.public_id)


@require_safe
@worker_required
def preview(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Mechanical Turk's link to a group, or to one HIT.

    Access: workers.
    """
    if hit_id := request.GET.get("hitId"):
        return redirect("marketplace:hit", find_hit_for(worker, hit_id)[0].public_id)
    return redirect("marketplace:group", find_group(request.GET.get("groupId", "")).public_id)


@require_safe
@worker_required
def preview_and_accept(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Mechanical Turk's link to work on a group at once: here to its preview, whose button accepts.
    A link may be another site's, or in a task.

    Access: workers.
    """
    return redirect("marketplace:group", find_group(request.GET.get("groupId", "")).public_id)


@require_safe
@worker_required
def project(request: HttpRequest, worker: WorkerAccount, hit_type_id: str) -> HttpResponse:
    """Mechanical Turk's later link to a group.

    Access: workers.
    """
    return redirect("marketplace:group", find_group(hit_type_id).public_id)


def _confirm(request: HttpRequest, worker: WorkerAccount, hit_type: HitType) -> None:
    mine = Assignment.objects.by(worker).handed_in().filter(hit__hit_type=hit_type)
    latest = mine.order_by("-submitted_at").first()
    if latest and latest.submitted_at and clock.now() - latest.submitted_at < CONFIRMED_WITHIN:
        text = _(
            "Your answers to “{title}” were submitted. Received at {time}, receipt {receipt}. "
            '<a href="{address}">See what you sent</a>'
        )
        values = {
            "title": hit_type.title,
            "time": timestamp(latest.submitted_at, "H:i"),
            "receipt": latest.receipt,
            "address": reverse("marketplace:submitted", args=[latest.public_id]),
        }
        messages.success(request, format_html(text, **values), extra_tags="receipt")


def _accept(request: HttpRequest, worker: WorkerAccount, hit_type: HitType) -> HttpResponse:
    try:
        assignment = accept_next(worker=worker, hit_type=hit_type)
    except NoAssignmentsLeft:
        text = _("No HITs of “%(title)s” are left for you.") % {"title": hit_type.title}
        messages.info(request, text, extra_tags="none_left")
        return redirect("marketplace:groups")
    return redirect("marketplace:assignment", assignment.public_id)
