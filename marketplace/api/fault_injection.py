"""For those who test their programs against this marketplace: a clock that can be set, and
faults that happen to the next calls of an operation. All of it is off, and none of its
tables is read, unless MARKETPLACE_TESTING is on.
"""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from marketplace import clock
from marketplace.api.authentication import throttled
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter, require
from marketplace.hits import lifecycle
from marketplace.models import ClockShift, Fault
from marketplace.notifications.delivery import send_due

ANY_OPERATION = "*"
MOST_SECONDS = 60.0
Kind = Fault.Kind


def before_operation(name: str) -> None:
    if not settings.MARKETPLACE_TESTING:
        return
    delay = _take(name, Kind.DELAY)
    if delay is not None:
        time.sleep(delay.delay_seconds)
    require(_take(name, Kind.THROTTLE) is None, throttled())


def must_drop(name: str) -> bool:
    return bool(settings.MARKETPLACE_TESTING and _take(name, Kind.DROP))


def _take(name: str, kind: Kind) -> Fault | None:
    for fault in Fault.objects.filter(
        kind=kind, operation__in=(name, ANY_OPERATION), remaining__gt=0
    ).order_by("pk"):
        if Fault.objects.filter(pk=fault.pk, remaining__gt=0).update(remaining=F("remaining") - 1):
            return fault
    return None


# The pages at /testing/, through which a program under test sets the marketplace's clock and asks
# for faults. Where MARKETPLACE_TESTING is off there are none.

View = Callable[[HttpRequest], JsonResponse]


def testing_only(*methods: str) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @csrf_exempt
        @login_not_required
        @require_http_methods(methods)
        @wraps(view)
        def guarded(request: HttpRequest) -> JsonResponse:
            require(settings.MARKETPLACE_TESTING, Http404("MARKETPLACE_TESTING is off."))
            try:
                return view(request)
            except InvalidParameter as error:
                return JsonResponse({"error": str(error)}, status=400)

        return guarded

    return decorate


@testing_only("GET", "POST", "DELETE")
def clock_page(request: HttpRequest) -> JsonResponse:
    """The marketplace's clock: POST `{"now": "2026-01-31T12:00:00Z"}` or
    `{"advance_seconds": 3600}`, DELETE for the machine's own time.

    Access: anybody, where MARKETPLACE_TESTING is on.
    """
    if request.method == "DELETE":
        ClockShift.objects.all().delete()
    elif request.method == "POST":
        _move_clock(read_object(request))
    return JsonResponse({"now": clock.now().isoformat()})


@testing_only("GET", "POST", "DELETE")
def faults_page(request: HttpRequest) -> JsonResponse:
    """Faults to come: POST `{"operation": "CreateHIT", "kind": "throttle", "times": 2}`, the
    kind being throttle, drop or delay (with `delay_seconds`), the operation * for any.

    Access: anybody, where MARKETPLACE_TESTING is on.
    """
    if request.method == "DELETE":
        Fault.objects.all().delete()
    elif request.method == "POST":
        _add_fault(read_object(request))
    faults = Fault.objects.filter(remaining__gt=0).order_by("pk")
    return JsonResponse(
        {"faults": list(faults.values("operation", "kind", "remaining", "delay_seconds"))}
    )


@testing_only("POST")
def sweep_page(request: HttpRequest) -> JsonResponse:
    """What the background worker does every minute, at once.

    Access: anybody, where MARKETPLACE_TESTING is on.
    """
    now = clock.now()
    return JsonResponse({"hits": lifecycle.sweep(now), "notifications": send_due(now)})


@transaction.atomic
def _move_clock(parameters: dict[str, Any]) -> None:
    seconds, timestamp = parameters.get("advance_seconds"), parameters.get("now")
    first = ClockShift.objects.first()
    try:
        if seconds is not None:
            ahead = (first.ahead if first else timedelta()) + timedelta(seconds=float(seconds))
        else:
            parsed = datetime.fromisoformat(str(timestamp))
            ahead = (parsed if parsed.tzinfo else timezone.make_aware(parsed)) - timezone.now()
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidParameter("Give advance_seconds, a number, or now, a date.") from error
    ClockShift.objects.all().delete()
    ClockShift.objects.create(ahead=ahead)


def _add_fault(parameters: dict[str, Any]) -> None:
    kind, operation = str(parameters.get("kind", "")), parameters.get("operation", ANY_OPERATION)
    try:
        times = int(parameters.get("times", 1))
        delay_seconds = float(parameters.get("delay_seconds", 0))
    except (ValueError, TypeError) as error:
        raise InvalidParameter("times and delay_seconds are numbers.") from error
    require(kind in Kind.values, InvalidParameter(f"kind must be one of {', '.join(Kind.values)}."))
    require(times >= 1, InvalidParameter("times must be at least 1."))
    require(
        0 <= delay_seconds <= MOST_SECONDS,
        InvalidParameter(f"delay_seconds must be from 0 to {MOST_SECONDS:g}."),
    )
    Fault.objects.create(
        operation=str(operation), kind=kind, remaining=times, delay_seconds=delay_seconds
    )


def disconnect(request: HttpRequest) -> HttpResponse:
    """Close the request's connection, like a network failure between commit and answer. If the
    server hides its socket, the response is shorter than announced, so the client fails, too."""
    connection = _socket_of(request.META)
    if connection is not None:
        with suppress(OSError):  # the client may have been quicker
            connection.shutdown(socket.SHUT_RDWR)
    return HttpResponse(b"{", headers={"Content-Length": "1024"})


def _socket_of(environ: dict[str, Any]) -> socket.socket | None:
    # Gunicorn names the socket; Django's own server reads the input from it.
    named = environ.get("gunicorn.socket")
    if isinstance(named, socket.socket):
        return named
    stream: Any = environ.get("wsgi.input")
    for _ in range(4):
        reader = getattr(getattr(stream, "_read", None), "__self__", None)
        sock = getattr(getattr(reader or stream, "raw", None), "_sock", None)
        if isinstance(sock, socket.socket):
            return sock
        stream = reader
    return None
