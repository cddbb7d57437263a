"""Charts and pictures as addresses hand them out."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import cast

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag
from django.utils.translation import get_language

from presentation.theme import Form, Picture, rendered, themed

FORMS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}


def as_picture(media_type: str, content: bytes) -> HttpResponse:
    # Somebody's picture, in which nothing runs.
    response = HttpResponse(content, content_type=media_type)
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def picture_in(
    form: str,
    request: HttpRequest,
    *,
    name: str,
    draw: Callable[[], Picture],
    data: Callable[[], str],
) -> HttpResponse:
    """A chart in one of the forms: JSON in the colors of the page, else a file in light."""
    if form == "json":
        return HttpResponse(json.dumps(themed(draw(), is_on_page=True)), content_type=FORMS[form])
    content = data() if form == "csv" else rendered(themed(draw()), cast(Form, form))
    response = HttpResponse(content, content_type=FORMS[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response


def of_version(
    request: HttpRequest,
    version: Model,
    section: str,
    make: Callable[[], HttpResponse],
) -> HttpResponse:
    """A part of a version's page, not made where the browser has it already.

    A version never changes, so its key, the part with what the address says of it, and the
    language are all that there is to know.
    """
    parts = (version._meta.label, version.pk, section, sorted(request.GET.items()), get_language())
    etag = quote_etag(sha256(repr(parts).encode()).hexdigest()[:32])
    response = get_conditional_response(request, etag=etag)
    if response is None or not isinstance(response, HttpResponse):
        response = make()
        response["ETag"] = etag
    # asked about each time, since who may see a study can change
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ["Cookie", "Accept-Language", "HX-Request"])
    return response
