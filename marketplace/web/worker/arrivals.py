"""The entry of a requester's own participants, and their return to the panel."""

from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth import login as start_session
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from marketplace.exceptions import ChannelClosed, WorkRefused
from marketplace.hits.assignments import find_next
from marketplace.models import Channel, HitType, WorkerAccount
from marketplace.recruiting import arrivals
from marketplace.web.worker.access import explain, worker_of, worker_required


@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def arrive(request: HttpRequest, token: str) -> HttpResponse:
    """A channel's page. Only the button on it signs in: programs that follow links
    in mail make no accounts, and no page elsewhere can sign anybody in or out.

    Access: whoever has the link.
    """
    try:
        visit = arrivals.recognise(token, request.GET.dict())
        worker = worker_of(request)
        if request.method != "POST":
            context = {"visit": visit, "hit_type": visit.channel.hit_type, "worker": worker}
            return render(request, "marketplace/arrive.html", context)
        is_back = worker is not None and arrivals.came_before(visit.channel, worker)
        entered = arrivals.let_in(visit, known=worker if is_back else None)
    except WorkRefused as error:
        return explain(request, error)
    start_session(request, entered.user)
    return redirect("marketplace:group", visit.channel.hit_type.public_id)


@require_safe
@worker_required
def finish(request: HttpRequest, worker: WorkerAccount, hit_type_id: str) -> HttpResponse:
    """The completion code and the way back to the panel.

    Access: workers who came through a channel of this group, once they have handed in work.
    """
    channel = Channel.objects.filter(hit_type__public_id=hit_type_id, arrivals__worker=worker)
    latest = channel.select_related("hit_type").order_by("-arrivals__pk").first()
    if latest is None:
        raise ChannelClosed(_("There is no completion page for you here."))
    context: dict[str, Any] = {"worker": worker, "channel": latest, "hit_type": latest.hit_type}
    if arrivals.has_finished(latest, worker):
        address = arrivals.way_back(latest, worker)
        context |= {"is_finished": True, "address": address, "host": urlsplit(address).hostname}
    return render(request, "marketplace/finish.html", context)


def way_out(request: HttpRequest, worker: WorkerAccount, hit_type: HitType) -> HttpResponse | None:
    """The completion page, for those who came through a channel and have no HIT left here."""
    channel = arrivals.latest_channel(worker, hit_type)
    if channel is None or find_next(worker=worker, hit_type=hit_type) is not None:
        return None
    return redirect("marketplace:finish", hit_type.public_id)
