"""Accounts to look around with, which many may share: they see what their roles allow, and change
nothing."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _

from accounts.models import User

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Its pages say from where an account is used: whoever shares it would read that of the others.
ACCOUNT = "/account/"
# To leave, or to sign in as somebody else.
OPEN_NAMES = ("login", "logout")


def keep_read_only(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: refuse what a read-only account would change, whatever its roles.

    It goes by the method, so that no view has to think of it: those that change something take
    no GET.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        if _changes(request) and _is_read_only(request) and not _is_open(request):
            raise PermissionDenied(_("This account is for looking around: it changes nothing."))
        return get_response(request)

    return answer


def _changes(request: HttpRequest) -> bool:
    return request.method not in SAFE_METHODS or request.path.startswith(ACCOUNT)


def _is_read_only(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_read_only


def _is_open(request: HttpRequest) -> bool:
    try:
        name = resolve(request.path_info).url_name or ""
    except Resolver404:
        return False
    return name.endswith(OPEN_NAMES) and not request.path.startswith(ACCOUNT)
