"""The page of an unexpected error; where the database or Redis does not answer, that it is worth
waiting."""

from __future__ import annotations

import sqlite3
import sys
from http import HTTPStatus

import psycopg
import redis
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

SECONDS_UNTIL_NEXT_TRY = 5
"""About what PostgreSQL takes to start, and a balancer to notice."""
# Of connections that were ended, refused for the time being, or too many, and of a statement that
# waited for others' locks until its time was over (PostgreSQL, appendix A).
AWAY = {"57P01", "57P02", "57P03", "53300", "55P03"}
OF_CONNECTIONS = "08"
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN}
PRIMARY = 0xFF
"""The byte of an extended code of SQLite that is the kind of error."""


def server_error(request: HttpRequest) -> HttpResponse:
    """Access: everyone. Django's handler of status 500, while the error is handled."""
    if is_away(sys.exc_info()[1]):
        headers = {"Retry-After": str(SECONDS_UNTIL_NEXT_TRY)}
        page = render_to_string("503.html")
        return HttpResponse(page, status=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)
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
