"""Private pages are stored nowhere: not by proxies, not by a browser that others use next."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

NOT_STORED = "private, no-store"


def keep_private(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: no answer to a browser with a session is stored, unless its view says
    otherwise. Static files are answered before a request comes here."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        name = settings.SESSION_COOKIE_NAME
        if name in request.COOKIES or name in response.cookies:
            response.headers.setdefault("Cache-Control", NOT_STORED)
        return response

    return answer
