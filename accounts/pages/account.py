from collections.abc import Callable
from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.account.models import EmailAddress
from allauth.account.views import (
    EmailView,
    PasswordChangeView,
    PasswordResetView,
    ReauthenticateView,
)
from allauth.usersessions.internal.flows.sessions import end_sessions
from allauth.usersessions.models import UserSession
from allauth.usersessions.views import ListUserSessionsView
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.adapter import TokenForm
from accounts.audit import name_for_good, record
from accounts.enrolment import password_link
from accounts.exceptions import AccountsError
from accounts.models import ApiToken, Membership, User
from accounts.second_factor import has_second_factor, needs_second_factor
from accounts.tokens import create_personal_token, revoke_token
from encryption import UndecryptableSecret, decrypt, encrypt


def own_account_page(
    view: Any, template: str, *, section: str = "account", **arguments: Any
) -> Callable[..., HttpResponseBase]:
    """A class-based page of one's own account, which users without a password do not have."""

    def show(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        page = view.as_view(
            template_name=f"accounts/{template}",
            extra_context={
                "section": section,
                "sends_mail": settings.SENDS_MAIL,
                "needs_second_factor": needs_second_factor(require_password(request)),
            },
            **arguments,
        )
        response: HttpResponseBase = page(request, *args, **kwargs)
        return response

    return show


def require_password(request: HttpRequest) -> User:
    if not request.user.is_authenticated or not request.user.has_usable_password():
        raise PermissionDenied(_("This account has no password, and so no pages of its own."))
    return request.user


# Access: signed-in users, each their own; not participants of a panel, who have no password. All
# other sessions of the user end.
change_password = own_account_page(
    PasswordChangeView,
    "change_password.html",
    section="password",
    success_url=reverse_lazy("account_change_password"),
)
# Access: signed-in users, each their own. Before something that must not be done by a passer-by.
reauthenticate = own_account_page(ReauthenticateView, "reauthenticate.html")


class RequestLinkView(PasswordResetView):  # type: ignore[misc]
    """Have a link for a new password sent; the answer is the same for every address.

    Access: anybody. Without a mail server the page says who can make such a link.
    """

    template_name = "accounts/reset_password.html"
    extra_context = {"sends_mail": settings.SENDS_MAIL}

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if not settings.SENDS_MAIL:
            raise PermissionDenied(_("This site has no mail server, so it cannot send links."))
        response: HttpResponseBase = super().post(request, *args, **kwargs)
        return response


reset_password = RequestLinkView.as_view()


# Links for new passwords, which operators make where the site has no mail server.


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@reauthentication_required  # type: ignore[untyped-decorator]
def password_links(request: HttpRequest) -> HttpResponse:
    """Make a link for a user's new password, displayed once, for the operator to pass on.

    Access: operators, who gave their password again; not for the accounts of other operators.
    """
    actor = request.user
    if not isinstance(actor, User) or not actor.is_staff:
        raise PermissionDenied(_("Operators of the site make links for new passwords."))
    context = {"section": "password_links", "username": request.POST.get("username", "").strip()}
    if request.method == "POST":
        user = User.objects.filter(username=context["username"], is_active=True).first()
        if user is None:
            messages.error(request, _("There is no such user."))
        elif user.is_staff or user.is_superuser or not user.has_usable_password():
            messages.error(
                request,
                _("For this account no link is made here. Use the command password_link."),
            )
        else:
            record(
                team=None, actor=actor, action="member.password_link", subject=name_for_good(user)
            )
            context["link"] = password_link(user)
    return render(request, "accounts/password_links.html", context)


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """What the account has: addresses, second factor, sessions, teams.

    Access: signed-in users, each their own.
    """
    user = require_password(request)
    return render(
        request,
        "accounts/account.html",
        {
            "section": "account",
            "address": EmailAddress.objects.get_primary(user),
            "has_second_factor": has_second_factor(user),
            "needs_second_factor": needs_second_factor(user),
            "n_sessions": len(UserSession.objects.purge_and_list(user)),
            "memberships": Membership.objects.filter(user=user).select_related("team"),
        },
    )


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
    return render(
        request,
        "accounts/tokens.html",
        {
            "section": "tokens",
            "tokens": ApiToken.objects.personal(user).standing(),
            "form": form,
            "text": text_once(request, OWN),
        },
    )


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
