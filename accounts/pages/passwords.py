"""Passwords: changing one's own, setting a new one by a link, giving it once more."""

from allauth.account.views import (
    PasswordChangeView,
    PasswordResetDoneView,
    PasswordResetFromKeyDoneView,
    PasswordResetFromKeyView,
    PasswordResetView,
    ReauthenticateView,
)
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _

from accounts.pages.own import OwnAccountMixin


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
        """Refuse where nothing would be sent."""
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
