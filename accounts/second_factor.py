from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import Resolver404, resolve, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

import encryption
from accounts.models import User

FACTORS = [Authenticator.Type.TOTP]
# What an operator without a second factor may open: the pages that set one up.
OPEN_PREFIXES = ("account", "mfa_", "usersessions_")
SAFE_METHODS = ("GET", "HEAD")
# Its views say who may read by themselves, and so pass for public ones.
API = "/api/"


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """What codes rest on is encrypted at rest, and an operator keeps the second factor."""

    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text)

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return not needs_second_factor(authenticator.user)


def needs_second_factor(user: User) -> bool:
    return (user.is_staff or user.is_superuser) and not settings.OPERATORS_WITHOUT_SECOND_FACTOR


def has_second_factor(user: User) -> bool:
    return bool(is_mfa_enabled(user, FACTORS))


def is_verified(request: HttpRequest, user: User) -> bool:
    return any(record["method"] == "mfa" for record in get_authentication_records(request, user))


def record_code(request: HttpRequest, user: User) -> None:
    record_authentication(request, user, "mfa", type=Authenticator.Type.TOTP.value)


class SecondFactorOfOperators:
    """Middleware: an operator's session opens no page before a code was given in it.

    It looks at the session, not at how it began, so that no way of signing in goes around it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, kwargs: object
    ) -> HttpResponse | None:
        user = request.user
        is_public = not getattr(view, "login_required", True) and not request.path.startswith(API)
        if not isinstance(user, User) or is_public or not needs_second_factor(user):
            return None
        name = request.resolver_match.view_name if request.resolver_match else ""
        has_factor = has_second_factor(user)
        if _is_open(name, has_factor) or (has_factor and is_verified(request, user)):
            return None
        if request.method not in SAFE_METHODS or request.path.startswith(API):
            raise PermissionDenied(_("Operators sign in with a second factor. Set one up first."))
        return _lead(request, has_factor)


def _is_open(name: str, has_factor: bool) -> bool:
    # Once there is a factor, even its own pages, such as that of recovery codes, need a code.
    if name.endswith("logout"):
        return True
    return name == "mfa_reauthenticate" if has_factor else name.startswith(OPEN_PREFIXES)


def _lead(request: HttpRequest, has_factor: bool) -> HttpResponse:
    if has_factor:
        here = urlencode({"next": request.get_full_path()})
        return redirect(f"{reverse('mfa_reauthenticate')}?{here}")
    messages.warning(request, _("Operators sign in with a second factor. Set one up first."))
    return redirect("mfa_activate_totp")


READING_METHODS = ("GET", "HEAD", "OPTIONS")
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
        changes = request.method not in READING_METHODS or request.path.startswith(ACCOUNT)
        is_refused = changes and isinstance(request.user, User) and request.user.is_read_only
        if is_refused and not _is_for_leaving(request):
            raise PermissionDenied(_("This account is for looking around: it changes nothing."))
        return get_response(request)

    return answer


def _is_for_leaving(request: HttpRequest) -> bool:
    try:
        name = resolve(request.path_info).url_name or ""
    except Resolver404:
        return False
    return name.endswith(OPEN_NAMES) and not request.path.startswith(ACCOUNT)
