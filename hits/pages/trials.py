"""Trying the worker's page: answered as a worker does, and nothing of it is stored.

The page stands in a sandboxed frame, as at a marketplace, so that it has neither the person's
session nor a cookie: what it loads and sends is let in by a signed token in the address, which
holds for an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from csp.constants import SELF
from csp.decorators import csp_replace, csp_update
from django.contrib.auth.decorators import login_not_required
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from annotation.models import Item
from annotation.pages.study import (
    study_for,
    study_page,
)
from hits.answers import Answer, read_answer_text
from hits.exceptions import HitsError
from hits.questions import task_page

SALT, AN_HOUR = "console.trial", 3600
SANDBOX = "allow-scripts allow-forms allow-modals"
WIDTHS = {"phone": 390, "desktop": 1024}


@require_safe
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def try_item(request: HttpRequest, slug: str, item_id: int) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    items = Item.objects.filter(study=study)
    item = get_object_or_404(items, pk=item_id)
    size = request.GET.get("as", "phone")
    context = {
        "section": "items",
        "item": item,
        "source": _frame_address(request, item),
        "sandbox": SANDBOX,
        "size": size if size in WIDTHS else "phone",
        "sizes": {"phone": _("Telephone"), "desktop": _("Desktop")},
        "width": WIDTHS.get(size, WIDTHS["phone"]),
        "before": items.preceding(item),
        "after": items.following(item),
    }
    return study_page(request, study, "hits/try_item", context)


@require_safe
def try_first(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study. The page of its first item."""
    study = study_for(request, slug)
    first = Item.objects.filter(study=study).first()
    if first is None:
        raise Http404
    return redirect("console:try-item", slug, first.pk)


def _frame_address(request: HttpRequest, item: Item) -> str:
    token = signing.dumps(item.pk, salt=SALT)
    address = reverse("console:trial-page", args=[token])
    parameters = {
        "assignmentId": "TRIAL",
        "hitId": "TRIAL",
        "workerId": "TRIAL",
        "turkSubmitTo": request.build_absolute_uri(address),
    }
    return f"{address}?{urlencode(parameters)}"


def _item_of(token: str) -> Item:
    try:
        pk = signing.loads(token, salt=SALT, max_age=AN_HOUR)
    except signing.BadSignature:
        raise Http404(_("This trial is over. Open the page again.")) from None
    return get_object_or_404(Item.objects.select_related("study", "picture"), pk=pk)


@login_not_required
@require_safe
@xframe_options_sameorigin
def trial_page(request: HttpRequest, token: str) -> HttpResponse:
    """The worker's page by itself.

    Access: whoever has a token that the study's page made in the last hour.
    """
    policy = f"sandbox {SANDBOX}; frame-ancestors 'self'"
    headers = {"Content-Security-Policy": policy, "Cache-Control": "private, no-store"}
    try:
        content = task_page(_item_of(token))
    except (HitsError, ValueError) as error:
        context = {"problem": _("This item has no page. {why}").format(why=error)}
        return render(request, "hits/trial_sent.html", context)
    return HttpResponse(content, headers=headers)


@dataclass(frozen=True)
class TrialAnswer:
    """What the page sent; `problem` is why it could not be read."""

    answer: Answer | None
    text: str
    problem: str


@csrf_exempt
@login_not_required
@require_POST
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})  # type: ignore[arg-type]
def trial_sent(request: HttpRequest, token: str) -> HttpResponse:
    """What would be sent, as it would be read; nothing is stored.

    Access: whoever has a token that the study's page made in the last hour.
    """
    item, text = _item_of(token), request.POST.get("answer", "")
    try:
        sent = TrialAnswer(read_answer_text(text, item), text, "")
    except HitsError as error:
        sent = TrialAnswer(None, text, str(error))
    address = f"{reverse('console:trial-page', args=[token])}"
    return render(request, "hits/trial_sent.html", {"sent": sent, "again": address})
