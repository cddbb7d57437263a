"""A participant's pages: arrival, the study they take part in, and the way back."""

from typing import Any
from urllib.parse import urlsplit

from allauth.decorators import rate_limit
from django.contrib.auth import login as start_browser_session
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from marketplace import clock
from marketplace.exceptions import ChannelClosed, WorkRefused
from marketplace.models import Assignment, HitType, Outcome, Session, WorkerAccount
from marketplace.recruiting import arrivals, sessions
from marketplace.recruiting.arrivals import is_compatible
from marketplace.web.worker.access import (
    address_of,
    explain,
    for_participants_alone,
    in_own_browser,
    is_own_browser,
    mark_browser,
    may_see_way_back,
    worker_of,
    worker_required,
)

State = Session.State


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
        if request.method != "POST":
            context = {
                "visit": visit,
                "hit_type": visit.study.hit_type,
                "worker": worker,
                "is_arrival": True,
                "is_compatible": is_compatible(visit.study, _user_agent(request)),
            }
            return render(request, "marketplace/arrive.html", context)
        has_begun = arrivals.has_begun(visit, worker)
        is_own = arrivals.is_proven(visit, known=worker if is_own_browser(request) else None)
        is_back = worker is not None and arrivals.came_before(visit.study, worker)
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
        "next": sessions.next_assignment(row) if row.state == State.STARTED else None,
        "n_items": items.count(),
        "n_done": items.handed_in().count(),
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
        n_done = sessions.n_withdrawn_by_stopping(row)
        context = {"session": row, "hit_type": row.study.hit_type, "n_done": n_done}
        return render(request, "marketplace/leave.html", context | {"worker": worker})
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
    rows = Session.objects.filter(worker=worker, study__hit_type=hit_type).order_by("-pk")
    row = rows.first()
    if row is None:
        return None
    following = sessions.next_assignment(row) if row.state == State.STARTED else None
    if following is not None:
        return redirect("marketplace:assignment", following.public_id)
    return redirect("marketplace:session", row.public_id)


def _user_agent(request: HttpRequest) -> str:
    return request.headers.get("User-Agent", "")


def _find(worker: WorkerAccount, session_id: str) -> Session:
    rows = Session.objects.filter(worker=worker, public_id=session_id)
    row = rows.select_related("study__hit_type__requester", "connection").first()
    if row is None:
        raise ChannelClosed(_("There is no such study for you here."))
    sessions.complete_if_done(row.pk)
    row.refresh_from_db(fields=["state", "outcome", "code"])
    return row
