"""What the marketplace knows of a worker: the privacy page, and the worker's own data as files."""

from typing import Any

from allauth.decorators import rate_limit
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from marketplace import clock
from marketplace.exceptions import ErasureRefused
from marketplace.hits import lifecycle
from marketplace.models import Hit, WorkerAccount
from marketplace.people import personal_data
from marketplace.people.erasure import erase_worker, erasure_obstacles
from marketplace.web.worker.access import (
    for_participants,
    in_own_browser,
    worker_of,
    worker_required,
)
from marketplace.web.worker.forms import ProofForm


@login_not_required
@require_safe
def privacy(request: HttpRequest) -> HttpResponse:
    """What is kept about workers, why, for how long, and who reads it.

    Access: anybody.
    """
    context = {
        "worker": worker_of(request),
        "browsers_keep_days": settings.BROWSERS_KEEP_DAYS,
        "messages_keep_days": settings.MESSAGES_KEEP_DAYS,
    }
    return render(request, "marketplace/privacy.html", context)


@require_safe
@worker_required
@for_participants
@in_own_browser
def your_data(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Where a worker's data can be downloaded.

    Access: workers, each their own.
    """
    return render(request, "marketplace/your_data.html", {"worker": worker})


@require_safe
@worker_required
@for_participants
@in_own_browser
def as_json(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """The worker's data, for programs.

    Access: workers, each their own.
    """
    options = {"indent": 2, "ensure_ascii": False}
    response = JsonResponse(personal_data.export(worker), json_dumps_params=options)
    return _as_file(response, worker, "json")


@require_safe
@worker_required
@for_participants
@in_own_browser
def as_page(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """The worker's data, to be read.

    Access: workers, each their own.
    """
    exported: dict[str, Any] = personal_data.export(worker)
    response = render(request, "marketplace/your_data_file.html", {"export": exported})
    return _as_file(response, worker, "html")


@require_http_methods(["GET", "HEAD", "POST"])
@rate_limit(action="reauthenticate")  # type: ignore[untyped-decorator]
@worker_required
@for_participants
@in_own_browser
def erase(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Erase what says who the worker is, and end the account.

    Access: workers, each their own, with their password.
    """
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=clock.now())
    form = ProofForm(request.POST if request.method == "POST" else None, worker=worker)
    if form.is_valid():
        try:
            erase_worker(worker)
        except ErasureRefused as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            auth.logout(request)
            return redirect("marketplace:erased")
    context = {"worker": worker, "form": form, "obstacles": erasure_obstacles(worker)}
    return render(request, "marketplace/erase.html", context)


@login_not_required
@require_safe
def erased(request: HttpRequest) -> HttpResponse:
    """That it is done.

    Access: anybody.
    """
    return render(request, "marketplace/erased.html")


def _as_file(response: HttpResponse, worker: WorkerAccount, suffix: str) -> HttpResponse:
    name = f"worker-{worker.worker_id}.{suffix}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
