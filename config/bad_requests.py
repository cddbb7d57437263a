"""The page of a request that Django refuses before a view sees it: what to change, where known."""

from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import (
    DisallowedHost,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils.translation import gettext as _


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Access: everyone. Django's handler of status 400."""
    # Without the request, whose host or form may be what is wrong.
    page = render_to_string("400.html", {"reason": _reason(exception)})
    return HttpResponse(page, status=HTTPStatus.BAD_REQUEST)


def say_what_buttons_take(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: a page for who opens an address that only a button sends something to.

    The sign-in leads there whoever pressed it when their session was over.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        is_opened = request.method == "GET" and request.accepts("text/html")
        if is_opened and isinstance(response, HttpResponseNotAllowed) and not response.content:
            response.content = render_to_string("405.html").encode()
        return response

    return answer


def _reason(exception: Exception) -> str:
    if isinstance(exception, TooManyFilesSent):
        n = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        return _(
            "At most {n} files can be sent at a time, and none of these is stored. Go back, and "
            "send them in parts."
        ).format(n=n)
    if isinstance(exception, TooManyFieldsSent):
        most = f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,}"
        text = _("A form can have {n} fields at most, and nothing of this one is stored.")
        return text.format(n=most)
    if isinstance(exception, RequestDataTooBig):
        n = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
        return _(
            "What is typed into a form can be {n} MiB at most, and nothing of it is stored. Send "
            "it as a file where the page takes one."
        ).format(n=n)
    if isinstance(exception, MultiPartParserError):
        return _(
            "The form that was sent cannot be read, and nothing of it is stored. Where it had "
            "files, their names may be too long: give them shorter ones, and send them again."
        )
    if isinstance(exception, DisallowedHost):
        return _("This site is not served at the address by which it was asked.")
    return _(
        "What was sent is not what a page of this site sends. Go back, load the page again, and "
        "try again."
    )
