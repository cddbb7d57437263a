"""Parts of a page that are of a stored version: made once, and known again by their ETag."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag
from django.utils.translation import get_language


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
