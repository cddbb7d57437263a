"""Sessions that nobody uses end after a while, where the site sets a limit."""

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest
from django.http.response import HttpResponseBase

SEEN_AT = "seen_at"
# The time is written down so often at most: each is a write to the database.
PRECISION_SECONDS = 60


def end_idle_sessions(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: sign out who has not used the site for SESSION_IDLE_MINUTES.

    What a page asks for by itself, as one that follows a job does, is no use of the site; what it
    stores while somebody writes is.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        limit_seconds = settings.SESSION_IDLE_MINUTES * 60
        if limit_seconds and request.user.is_authenticated:
            idle_seconds = time.time() - request.session.get(SEEN_AT, 0)
            if SEEN_AT in request.session and idle_seconds > limit_seconds:
                logout(request)
            elif idle_seconds > PRECISION_SECONDS and not _is_by_itself(request):
                request.session[SEEN_AT] = int(time.time())
        return get_response(request)

    return answer


def _is_by_itself(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers and request.method == "GET"
