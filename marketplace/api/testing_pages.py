"""The pages at /testing/, through which a program under test sets the marketplace's clock and
asks for faults. Where MARKETPLACE_TESTING is off there are none."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from marketplace import clock
from marketplace.api import fault_injection
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter
from marketplace.hits import lifecycle
from marketplace.models import Fault
from marketplace.notifications.delivery import send_due

View = Callable[[HttpRequest], JsonResponse]


def testing_only(*methods: str) -> Callable[[View], View]:
    """A page that is only there where MARKETPLACE_TESTING is on, for programs without a session."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @login_not_required
        @require_http_methods(methods)
        @wraps(view)
        def guarded(request: HttpRequest) -> JsonResponse:
            if not fault_injection.is_testing():
                raise Http404("MARKETPLACE_TESTING is off.")
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
        fault_injection.reset_clock()
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
        fault_injection.clear_faults()
    elif request.method == "POST":
        fault_injection.add_fault(_fault(read_object(request)))
    faults = Fault.objects.filter(remaining__gt=0).order_by("pk")
    fields = ("operation", "kind", "remaining", "delay_seconds")
    return JsonResponse({"faults": list(faults.values(*fields))})


@testing_only("POST")
def sweep_page(request: HttpRequest) -> JsonResponse:
    """What the background worker does every minute, at once.

    Access: anybody, where MARKETPLACE_TESTING is on.
    """
    now = clock.now()
    return JsonResponse({"hits": lifecycle.sweep(now), "notifications": send_due(now)})


def _move_clock(parameters: dict[str, Any]) -> None:
    seconds, timestamp = parameters.get("advance_seconds"), parameters.get("now")
    try:
        if seconds is not None:
            fault_injection.advance_clock(timedelta(seconds=float(seconds)))
            return
        parsed = datetime.fromisoformat(str(timestamp))
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidParameter("Give advance_seconds, a number, or now, a date.") from error
    fault_injection.set_clock(parsed if parsed.tzinfo else timezone.make_aware(parsed))


def _fault(parameters: dict[str, Any]) -> fault_injection.FaultValues:
    try:
        return fault_injection.FaultValues(
            operation=str(parameters.get("operation", fault_injection.ANY_OPERATION)),
            kind=str(parameters.get("kind", "")),
            times=int(parameters.get("times", 1)),
            delay_seconds=float(parameters.get("delay_seconds", 0)),
        )
    except (ValueError, TypeError) as error:
        raise InvalidParameter("times and delay_seconds are numbers.") from error
