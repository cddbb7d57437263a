from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.account.views import (
    PasswordChangeView,
    PasswordResetDoneView,
    PasswordResetFromKeyDoneView,
    PasswordResetFromKeyView,
    PasswordResetView,
    ReauthenticateView,
)
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.audit import name_for_good, record
from accounts.enrolment import password_link
from accounts.models import User

# What the pages of one's own account share.


class OwnAccountMixin:
    # A page of one's own account, which somebody who came by a link and has no password lacks.
    section = "account"

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        require_password(request)
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return context | {"section": self.section, "sends_mail": settings.SENDS_MAIL}


def require_password(request: HttpRequest) -> User:
    if not request.user.is_authenticated or not request.user.has_usable_password():
        raise PermissionDenied(_("This account has no password, and so no pages of its own."))
    return request.user


class ChangePasswordView(OwnAccountMixin, PasswordChangeView):  # type: ignore[misc]
    """Change one's own password; all other sessions of the user end.

    Access: signed-in users, each their own; not participants of a panel, who have no password.
    """

    section = "password"
    template_name = "accounts/change_password.html"
    success_url = reverse_lazy("account_change_password")


@method_decorator(login_not_required, name="dispatch")
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


@method_decorator(login_not_required, name="dispatch")
class LinkSentView(PasswordResetDoneView):  # type: ignore[misc]
    """What to do next.

    Access: anybody.
    """

    template_name = "accounts/reset_password_sent.html"


@method_decorator(login_not_required, name="dispatch")
class SetPasswordView(PasswordResetFromKeyView):  # type: ignore[misc]
    """Set a new password by a link, which then holds no longer; all sessions of the user end.

    Access: whoever has a link that was not used.
    """

    template_name = "accounts/set_password.html"


@method_decorator(login_not_required, name="dispatch")
class PasswordSetView(PasswordResetFromKeyDoneView):  # type: ignore[misc]
    """The new password holds; sign in.

    Access: anybody.
    """

    template_name = "accounts/password_set.html"


class GivePasswordView(OwnAccountMixin, ReauthenticateView):  # type: ignore[misc]
    """Give the password once more before something that must not be done by a passer-by.

    Access: signed-in users, each their own.
    """

    template_name = "accounts/reauthenticate.html"


change_password = ChangePasswordView.as_view()
reset_password = RequestLinkView.as_view()
reset_password_sent = LinkSentView.as_view()
set_password = SetPasswordView.as_view()
password_set = PasswordSetView.as_view()
reauthenticate = GivePasswordView.as_view()


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
