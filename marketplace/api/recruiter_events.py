"""Where recruiters send their news (docs/recruiting.md)."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from marketplace.api.authentication import read_body
from marketplace.exceptions import ProtocolError
from marketplace.recruiting.calls import receive_event
from marketplace.recruiting.records import NotVerified

MOST_BYTES = 64 * 1024


@csrf_exempt
@login_not_required
@require_POST
@never_cache
def recruiter_events(request: HttpRequest, connection_id: str) -> HttpResponse:
    """Take an event, and do no more than write it down.

    Access: whoever signs with the secret of the connection's workspace.
    """
    try:
        body = read_body(request)
        if len(body) > MOST_BYTES:
            return HttpResponse(status=413)
        receive_event(connection_id, request.headers, body)
    except ProtocolError as error:
        return HttpResponse(status=error.status)
    except NotVerified:
        return HttpResponse(status=401)
    return HttpResponse(status=200)
