from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.account.views import EmailView
from allauth.usersessions.internal.flows.sessions import end_sessions
from allauth.usersessions.models import UserSession
from allauth.usersessions.views import ListUserSessionsView
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.adapter import TokenForm
from accounts.exceptions import AccountsError
from accounts.models import ApiToken, Membership
from accounts.pages.passwords import own_account_page, require_password
from accounts.second_factor import has_second_factor, needs_second_factor
from accounts.tokens import create_personal_token, revoke_token
from encryption import UndecryptableSecret, decrypt, encrypt


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """What the account has: addresses, second factor, sessions, teams.

    Access: signed-in users, each their own.
    """
    user = require_password(request)
    context = {
        "section": "account",
        "address": EmailAddress.objects.get_primary(user),
        "has_second_factor": has_second_factor(user),
        "needs_second_factor": needs_second_factor(user),
        "n_sessions": len(UserSession.objects.purge_and_list(user)),
        "memberships": Membership.objects.filter(user=user).select_related("team"),
    }
    return render(request, "accounts/account.html", context)


# Access: signed-in users, each their own; changes ask for the password again.
email = own_account_page(
    EmailView, "email.html", section="email", success_url=reverse_lazy("account_email")
)
# Access: signed-in users, each their own. All other sessions can be ended.
sessions = own_account_page(
    ListUserSessionsView,
    "sessions.html",
    section="sessions",
    success_url=reverse_lazy("usersessions_list"),
)


@require_POST
def end_session(request: HttpRequest, session_id: int) -> HttpResponse:
    """End one of one's own sessions.

    Access: signed-in users, each their own.
    """
    end_sessions(
        request, [get_object_or_404(UserSession, user=require_password(request), pk=session_id)]
    )
    messages.success(request, _("The session was ended."))
    return redirect("usersessions_list")


# The tokens of one's own programs: made, displayed once, revoked.

OWN = "new-token"


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required  # type: ignore[untyped-decorator]
def tokens(request: HttpRequest) -> HttpResponse:
    """Access: signed-in users, each their own, who gave their password again."""
    user = require_password(request)
    form = TokenForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            display_once(request, OWN, create_personal_token(user=user, **form.values).text)
            return redirect("api_tokens")
        except AccountsError as refused:
            form.add_error(None, str(refused))
    context = {
        "section": "tokens",
        "tokens": ApiToken.objects.personal(user).standing(),
        "form": form,
    }
    return render(request, "accounts/tokens.html", context | {"text": text_once(request, OWN)})


def display_once(request: HttpRequest, name: str, text: str) -> None:
    # Keep a new token's text, encrypted, for the page that follows: reloading that page then makes
    # no second token.
    request.session[name] = encrypt(text)


def text_once(request: HttpRequest, name: str) -> str:
    stored = request.session.pop(name, None) if request.method == "GET" else None
    try:
        return decrypt(stored) if stored else ""
    except UndecryptableSecret:
        return ""


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Access: signed-in users, each their own."""
    user = require_password(request)
    revoke_token(token=get_object_or_404(ApiToken.objects.personal(user), pk=token_id), actor=user)
    messages.success(request, _("The token was revoked."))
    return redirect("api_tokens")
