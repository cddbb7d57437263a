"""Charts and pictures as addresses hand them out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

from django.http import HttpRequest, HttpResponse

from presentation.theme import LIGHT, TOKENS, Form, Picture, rendered, themed

FORMS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}


def as_picture(media_type: str, content: bytes) -> HttpResponse:
    """Somebody's picture, in which nothing runs."""
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
    """A chart in one of the forms: for the page in the theme it asks for, else a file to keep."""
    if form == "json":
        tokens = TOKENS.get(request.GET.get("theme", "light"), LIGHT)
        return HttpResponse(json.dumps(themed(draw(), tokens)), content_type=FORMS[form])
    content = data() if form == "csv" else rendered(themed(draw()), cast(Form, form))
    response = HttpResponse(content, content_type=FORMS[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response
