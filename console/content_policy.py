"""What a browser may load for the console's pages: this site's own files, and nothing inline."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


def console_content_policy(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: the policy for every answer of the console that has none of its own."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        match = request.resolver_match
        if match and match.app_names[:1] == ["console"]:
            response.headers.setdefault("Content-Security-Policy", POLICY)
        return response

    return answer
