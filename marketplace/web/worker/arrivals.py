"""A participant's pages: arrival, the study, and the way back. Also every worker's way from one HIT
to the next: auto-accept, and the links that Mechanical Turk's pages have.
"""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from allauth.decorators import rate_limit
from django.contrib import messages
from django.contrib.auth import login as start_browser_session
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace import clock
from marketplace.documents.questions import task_language
from marketplace.exceptions import ChannelClosed, NoAssignmentsLeft, WorkRefused, first_or_raise
from marketplace.hits.assignments import (
    accept_next,
    find_assignment_of,
    find_group,
    find_hit_for,
)
from marketplace.models import Assignment, HitType, Outcome, Session, WorkerAccount
from marketplace.recruiting import arrivals, sessions
from marketplace.recruiting.arrivals import is_compatible
from marketplace.templatetags.marketplace_tags import timestamp
from marketplace.web.worker.access import (
    address_of,
    explain,
    for_participants,
    for_participants_alone,
    in_own_browser,
    is_own_browser,
    mark_browser,
    may_see_way_back,
    worker_of,
    worker_required,
)


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
@rate_limit(action="arrival")  # type: ignore[untyped-decorator]
def arrive(request: HttpRequest, token: str) -> HttpResponse:
    """A study's page for whoever comes. Only the button on it signs in: programs that follow
    links in mail make no accounts, and no page elsewhere can sign anybody in or out.

    Access: whoever has the link.
    """
    try:
        worker = worker_of(request)
        visit = arrivals.recognise(
            token, request.GET.dict(), known=worker, address=address_of(request)
        )
        has_begun = arrivals.has_begun(visit, worker)
        came = Session.objects.filter(study=visit.study, worker=worker)
        ended = came.exclude(outcome="").order_by("-pk").first()
        if request.method != "POST" and has_begun and ended:
            return redirect("marketplace:session", ended.public_id)
        if request.method != "POST":
            return render(
                request,
                "marketplace/arrive.html",
                {
                    "visit": visit,
                    "hit_type": visit.study.hit_type,
                    "worker": worker,
                    "is_arrival": True,
                    "is_compatible": is_compatible(visit.study, _user_agent(request)),
                },
            )
        is_own = arrivals.is_proven(visit, known=worker if is_own_browser(request) else None)
        is_back = worker is not None and came.exists()
        session = arrivals.enter(
            visit, known=worker if is_back else None, user_agent=_user_agent(request)
        )
    except WorkRefused as error:
        return explain(request, error, template="marketplace/not_let_in.html", is_arrival=True)
    start_browser_session(request, session.worker.user)
    mark_browser(request, is_own=is_own, session=session, has_begun=has_begun)
    return redirect("marketplace:session", session.public_id)


@require_safe
@worker_required
@for_participants_alone
def session(request: HttpRequest, worker: WorkerAccount, session_id: str) -> HttpResponse:
    """What the participant does in this study: how much there is to do, or how it ended.

    Access: the participant whose session it is.
    """
    row = _find(worker, session_id)
    items = Assignment.objects.filter(session_item__session=row)
    context: dict[str, Any] = {
        "worker": worker,
        "session": row,
        "hit_type": row.study.hit_type,
        "next": sessions.next_assignment(row) if row.state == Session.State.STARTED else None,
        "n_items": items.count(),
        "n_done": items.handed_in().count(),
        "is_revoked": worker.invitations.filter(study=row.study, revoked_at__isnull=False).exists(),
        "seconds_left": max(0, int((sessions.due_at(row) - clock.now()).total_seconds())),
    }
    if row.outcome and not may_see_way_back(request, row):
        context["is_way_hidden"] = bool(arrivals.way_back(row))
    elif row.outcome:
        address = arrivals.way_back(row)
        context |= {"address": address, "host": urlsplit(address).hostname}
    return render(request, "marketplace/session.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
@for_participants_alone
@in_own_browser
def leave(request: HttpRequest, worker: WorkerAccount, session_id: str) -> HttpResponse:
    """Ask whether to end this participation without consent, and end it: what is reserved is free
    again, what was handed in is deleted.

    Access: the participant whose session it is.
    """
    row = _find(worker, session_id)
    if request.method != "POST" and sessions.can_be_left(row):
        return render(
            request,
            "marketplace/leave.html",
            {
                "session": row,
                "hit_type": row.study.hit_type,
                "n_done": sessions.n_withdrawn_by_stopping(row),
                "worker": worker,
            },
        )
    if request.method == "POST":
        sessions.end_session(session=row, outcome=Outcome.NO_CONSENT)
    return redirect("marketplace:session", row.public_id)


@require_safe
@worker_required
@for_participants_alone
def your_study(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Leads a participant to the study they take part in.

    Access: participants.
    """
    row = sessions.latest_session(worker)
    if row is None:
        raise ChannelClosed(_("You take part in no study. Open the link that you were sent."))
    return redirect("marketplace:session", row.public_id)


def way_on(worker: WorkerAccount, hit_type: HitType) -> HttpResponse | None:
    """A participant's next reserved HIT, or the page of their study. None for other workers of the
    group."""
    row = Session.objects.filter(worker=worker, study__hit_type=hit_type).order_by("-pk").first()
    if row is None:
        return None
    following = sessions.next_assignment(row) if row.state == Session.State.STARTED else None
    if following is not None:
        return redirect("marketplace:assignment", following.public_id)
    return redirect("marketplace:session", row.public_id)


def _user_agent(request: HttpRequest) -> str:
    return request.headers.get("User-Agent", "")


def _find(worker: WorkerAccount, session_id: str) -> Session:
    row = first_or_raise(
        Session.objects.filter(worker=worker, public_id=session_id).select_related(
            "study__hit_type__requester", "connection"
        ),
        ChannelClosed(_("There is no such study for you here.")),
    )
    sessions.complete_if_done(row.pk)
    row.refresh_from_db(fields=["state", "outcome", "code"])
    return row


AUTO_ACCEPT = "marketplace_auto_accept"
# Who comes here later has reloaded the page, or followed an old address.
CONFIRMED_WITHIN = timedelta(minutes=1)


def accepts_next_by_itself(request: HttpRequest, hit_type: HitType) -> bool:
    return bool(request.session.get(AUTO_ACCEPT) == hit_type.public_id)


def remember_choice(request: HttpRequest, hit_type: HitType) -> None:
    """For the HITs of this group: another group asks again."""
    is_on = request.POST.get("auto_accept") == "on"
    if is_on != accepts_next_by_itself(request, hit_type):
        request.session[AUTO_ACCEPT] = hit_type.public_id if is_on else ""


@require_POST
@worker_required
def auto_accept(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """Switch auto-accept on or off.

    Access: workers.
    """
    remember_choice(request, find_assignment_of(worker, assignment_id).hit.hit_type)
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
    if request.method == "POST" and accepts_next_by_itself(request, hit_type):
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
    latest = mine.select_related("hit").order_by("-submitted_at").first()
    if latest and latest.submitted_at and clock.now() - latest.submitted_at < CONFIRMED_WITHIN:
        with task_language(latest.hit.question):
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
