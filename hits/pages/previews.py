from typing import Any
from urllib.parse import urlencode

from allauth.decorators import rate_limit
from csp.constants import SELF
from csp.decorators import csp_replace, csp_update
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, override
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from accounts.enrolment import absolute
from accounts.roles import Permission
from annotation.models import Item, Study
from annotation.pages.stages import study_for
from annotation.protocols.versions import current_document
from console.access import person
from hits.exceptions import HitsError, require
from hits.models import PreviewLink
from hits.pages.protocol import SANDBOX, WIDTHS
from hits.previews import (
    active_preview_links,
    create_preview_link,
    previewed_item,
    previewed_study,
    revoke_preview_link,
)
from hits.questions import task_page

# Of an item's number in an address: no study has more digits.
MOST_DIGITS = 9


@require_POST
def create(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    token = create_preview_link(study=study, actor=person(request))
    return _links(request, study, absolute(reverse("console:shared-preview", args=[token])))


@require_POST
def revoke(request: HttpRequest, slug: str, link_id: int) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    revoke_preview_link(
        link=get_object_or_404(PreviewLink.objects.of(study).select_related("study"), pk=link_id),
        actor=person(request),
    )
    return _links(request, study, "")


def _links(request: HttpRequest, study: Study, address: str) -> HttpResponse:
    if request.headers.get("HX-Request"):
        context = {"study": study, "may_edit": True, "preview_links": active_preview_links(study)}
        return render(request, "hits/protocol/_preview_links.html", context | {"address": address})
    text = _("Preview link, shown only once: %(address)s") % {"address": address}
    messages.success(request, text if address else _("The preview link is revoked."))
    return redirect("console:protocol", study.slug)


@login_not_required
@require_safe
@never_cache
@rate_limit(action="preview", limit_get=True)  # type: ignore[untyped-decorator]
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def shared_preview(request: HttpRequest, token: str) -> HttpResponse:
    """The frame around the annotators' page, with the way to the items before and after.

    Access: whoever has a link that is active.
    """
    study = previewed_study(token)
    if study is None:
        return _render(request, "hits/shared_preview.html", {}, status=410)
    number = _number(request)
    n_items = Item.objects.filter(study=study).count()
    require(number <= max(n_items, 1), Http404(_("This study has no item of that number.")))
    size = request.GET.get("as", "phone")
    size = size if size in WIDTHS else "phone"
    address = reverse("console:shared-preview-page", args=[token])
    parameters = {
        "item": number,
        "assignmentId": "PREVIEW",
        "hitId": "PREVIEW",
        "workerId": "PREVIEW",
        "turkSubmitTo": request.build_absolute_uri(address),
    }
    return _render(
        request,
        "hits/shared_preview.html",
        {
            "title": current_document(study).title or study.title,
            "number": number,
            "n_items": n_items,
            "source": f"{address}?{urlencode(parameters)}",
            "sandbox": SANDBOX,
            "size": size,
            "sizes": {"phone": _("Phone"), "desktop": _("Desktop")},
            "width": WIDTHS[size],
        },
    )


@login_not_required
@require_safe
@never_cache
@rate_limit(action="preview", limit_get=True)  # type: ignore[untyped-decorator]
@xframe_options_sameorigin
def shared_page(request: HttpRequest, token: str) -> HttpResponse:
    """The annotators' page of an item by itself, in a sandbox.

    Access: whoever has a link that is active.
    """
    study = previewed_study(token)
    item = None if study is None else previewed_item(study, _number(request))
    if study is None or item is None:
        raise Http404(_("This preview link has no such page."))
    document = current_document(study)
    try:
        with override(document.language or "en"):
            content = task_page(item, document)
    except (HitsError, ValueError):
        return _render(request, "hits/shared_preview_sent.html", {"has_no_page": True})
    response = HttpResponse(content)
    response["Content-Security-Policy"] = f"sandbox {SANDBOX}; frame-ancestors 'self'"
    return _unlisted(response)


@csrf_exempt
@login_not_required
@require_POST
@never_cache
@rate_limit(action="preview")  # type: ignore[untyped-decorator]
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})  # type: ignore[arg-type]
def shared_sent(request: HttpRequest, token: str) -> HttpResponse:
    """Says that nothing is stored; the answers are not read.

    Access: whoever has a link that is active.
    """
    require(previewed_study(token) is not None, Http404(_("This preview link has no such page.")))
    return _render(request, "hits/shared_preview_sent.html", {})


def _number(request: HttpRequest) -> int:
    text = request.GET.get("item", "1")
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS and int(text) else 1


def _render(
    request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    return _unlisted(render(request, template, context, status=status))


def _unlisted(response: HttpResponse) -> HttpResponse:
    # Neither search engines nor the sites that a text links to learn the address.
    response["X-Robots-Tag"] = "noindex, nofollow, noarchive"
    response["Referrer-Policy"] = "no-referrer"
    return response
