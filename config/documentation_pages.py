"""The documentation of the version that runs, at /docs/."""

from __future__ import annotations

import mimetypes

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from config.documentation.site_pages import contents, documentation_file, documentation_page

BYTES = "application/octet-stream"
PICTURES = ("image/png", "image/svg+xml", "image/webp")


@require_safe
def documentation(request: HttpRequest) -> HttpResponse:
    """Access: signed in."""
    page = documentation_page("")
    return render(request, "documentation/page.html", {"page": page, "contents": contents()})


@require_safe
def page_or_file(request: HttpRequest, path: str) -> HttpResponse:
    """Access: signed in. Files of the documentation's folder alone, which are looked up by name."""
    if page := documentation_page(path):
        return render(request, "documentation/page.html", {"page": page})
    file = documentation_file(path)
    if file is None:
        raise Http404(_("There is no such page of the documentation."))
    kind = mimetypes.guess_type(file.name)[0]
    is_picture = kind in PICTURES
    response = HttpResponse(file.read_bytes(), content_type=kind if is_picture else BYTES)
    if not is_picture:
        disposition = content_disposition_header(as_attachment=True, filename=file.name)
        response.headers["Content-Disposition"] = disposition or "attachment"
    return response
