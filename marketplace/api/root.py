"""The Requester API at `/` of host names that have nothing else (MARKETPLACE_API_HOSTS)."""

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase

from marketplace.exceptions import ProtocolError


def answer_at_root(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: these hosts have only the API. It comes before HSTS, which would apply to every
    service of the host name."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _answer(request) if _is_api_host(request) else get_response(request)

    return answer


def _answer(request: HttpRequest) -> HttpResponseBase:
    # Imported at the first request to such a name: every process has this middleware.
    from marketplace.api.dispatch import refusal, requester_api

    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        return refusal(ProtocolError("AccessDeniedException", "Use HTTPS.", status=403))
    if request.method != "POST" or request.path != "/":
        return refusal(
            ProtocolError(
                "UnknownOperationException",
                "The Requester API is the only thing here: POST to /.",
                status=404,
            )
        )
    return requester_api(request)


def _is_api_host(request: HttpRequest) -> bool:
    try:
        host, _port = split_domain_port(request.get_host())
    except DisallowedHost:
        return False
    return host.removesuffix(".") in settings.MARKETPLACE_API_HOSTS
