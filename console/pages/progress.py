from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def progress_page(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, is_over: bool
) -> HttpResponse:
    """The notice of a job, which its page asks for while the job runs. The last answer has the
    header HX-Refresh, at which `static/reload.js` updates the rest of the page as well."""
    response = render(request, template, context)
    if is_over and request.headers.get("HX-Request"):
        response["HX-Refresh"] = "true"
    return response
