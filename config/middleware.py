"""Requests that are refused or left idle, pages that are not stored, and pages of errors."""

import sqlite3
import sys
import time
from collections.abc import Callable
from http import HTTPStatus

import psycopg
import redis
from django.conf import settings
from django.contrib.auth import logout
from django.core.exceptions import (
    DisallowedHost,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils.translation import gettext as _


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Access: everyone. Django's handler of status 400."""
    # Without the request, whose host or form may be what is wrong.
    return HttpResponse(
        render_to_string("400.html", {"reason": _reason(exception)}), status=HTTPStatus.BAD_REQUEST
    )


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
        return _("A form can have {n} fields at most, and nothing of this one is stored.").format(
            n=f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,}"
        )
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


def keep_private(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: no answer to a browser with a session is stored, unless its view says
    otherwise. Static files are answered before a request comes here."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        name = settings.SESSION_COOKIE_NAME
        if name in request.COOKIES or name in response.cookies:
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return answer


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
            elif idle_seconds > PRECISION_SECONDS and (
                "HX-Request" not in request.headers or request.method != "GET"
            ):
                request.session[SEEN_AT] = int(time.time())
        return get_response(request)

    return answer


# About what PostgreSQL takes to start, and a balancer to notice.
SECONDS_UNTIL_NEXT_TRY = 5
# Of connections that were ended, refused for the time being, or too many, and of a statement that
# waited for others' locks until its time was over (PostgreSQL, appendix A).
AWAY = {"57P01", "57P02", "57P03", "53300", "55P03"}
OF_CONNECTIONS = "08"
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN}
# The byte of an extended code of SQLite that is the kind of error.
PRIMARY = 0xFF


def server_error(request: HttpRequest) -> HttpResponse:
    """Access: everyone. Django's handler of status 500, while the error is handled."""
    if is_away(sys.exc_info()[1]):
        return HttpResponse(
            render_to_string("503.html"),
            status=HTTPStatus.SERVICE_UNAVAILABLE,
            headers={"Retry-After": str(SECONDS_UNTIL_NEXT_TRY)},
        )
    return HttpResponse(render_to_string("500.html"), status=HTTPStatus.INTERNAL_SERVER_ERROR)


def is_away(error: BaseException | None) -> bool:
    """Whether the database or Redis did not answer, and may in a moment; a statement that is wrong,
    or that ran out of its time by its own work, is another matter."""
    if isinstance(error, redis.ConnectionError | redis.TimeoutError):
        return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    cause = error.__cause__
    if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        state = cause.sqlstate
        return state is None or state in AWAY or state.startswith(OF_CONNECTIONS)
    if isinstance(cause, sqlite3.OperationalError):
        return cause.sqlite_errorcode & PRIMARY in BUSY
    return False
