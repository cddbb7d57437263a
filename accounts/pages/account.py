"""The account itself: its first page, its e-mail addresses, its sessions."""

from allauth.account.models import EmailAddress
from allauth.account.views import ConfirmEmailView, EmailVerificationSentView, EmailView
from allauth.usersessions.internal.flows.sessions import end_sessions
from allauth.usersessions.models import UserSession
from allauth.usersessions.views import ListUserSessionsView
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Membership
from accounts.pages.passwords import OwnAccountMixin, require_password
from accounts.second_factor import has_second_factor, needs_second_factor


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


class AddressesView(OwnAccountMixin, EmailView):  # type: ignore[misc]
    """E-mail addresses: added, confirmed by a link, one of them primary.

    Access: signed-in users, each their own; changes ask for the password again.
    """

    section = "email"
    template_name = "accounts/email.html"
    success_url = reverse_lazy("account_email")


@method_decorator(login_not_required, name="dispatch")
class ConfirmAddressView(ConfirmEmailView):  # type: ignore[misc]
    """Confirm an address by the link that was sent to it.

    Access: whoever has the link.
    """

    template_name = "accounts/confirm_email.html"


@method_decorator(login_not_required, name="dispatch")
class ConfirmationSentView(EmailVerificationSentView):  # type: ignore[misc]
    """Where to look for the link.

    Access: anybody.
    """

    template_name = "accounts/confirmation_sent.html"
    extra_context = {"sends_mail": settings.SENDS_MAIL}


class SessionsView(OwnAccountMixin, ListUserSessionsView):  # type: ignore[misc]
    """Where one is signed in; all other sessions can be ended.

    Access: signed-in users, each their own.
    """

    section = "sessions"
    template_name = "accounts/sessions.html"
    success_url = reverse_lazy("usersessions_list")


@require_POST
def end_session(request: HttpRequest, session_id: int) -> HttpResponse:
    """End one of one's own sessions.

    Access: signed-in users, each their own.
    """
    user = require_password(request)
    session = get_object_or_404(UserSession, user=user, pk=session_id)
    end_sessions(request, [session])
    messages.success(request, _("The session was ended."))
    return redirect("usersessions_list")


email = AddressesView.as_view()
confirm_email = ConfirmAddressView.as_view()
confirmation_sent = ConfirmationSentView.as_view()
sessions = SessionsView.as_view()
