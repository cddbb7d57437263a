from typing import Any

from allauth.mfa.base.views import AuthenticateView, IndexView, ReauthenticateView
from allauth.mfa.recovery_codes.views import (
    DownloadRecoveryCodesView,
    GenerateRecoveryCodesView,
    ViewRecoveryCodesView,
)
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.usersessions.internal.flows.sessions import end_other_sessions
from django.http import HttpResponse

from accounts.models import User
from accounts.pages.passwords import OwnAccountMixin
from accounts.second_factor import needs_second_factor, record_code


class SecondFactorView(OwnAccountMixin, IndexView):  # type: ignore[misc]
    """Whether there is a second factor, and what can be done about it.

    Access: signed-in users, each their own.
    """

    section = "second_factor"
    template_name = "accounts/second_factor.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        user = self.request.user
        needs = isinstance(user, User) and needs_second_factor(user)
        return super().get_context_data(**kwargs) | {"needs_second_factor": needs}


class CodeView(AuthenticateView):  # type: ignore[misc]
    """The second step of signing in.

    Access: whoever has just given the right password.
    """

    template_name = "accounts/give_code_to_sign_in.html"


class GiveCodeView(OwnAccountMixin, ReauthenticateView):  # type: ignore[misc]
    """Give a code once more before something that must not be done by a passer-by.

    Access: signed-in users with a second factor, each their own.
    """

    template_name = "accounts/reauthenticate.html"


class SetUpView(OwnAccountMixin, ActivateTOTPView):  # type: ignore[misc]
    """Connect an authenticator app.

    Access: signed-in users, each their own, after giving their password again.
    """

    section = "second_factor"
    template_name = "accounts/set_up_second_factor.html"

    def form_valid(self, form: Any) -> HttpResponse:
        # Count the code for this session, and end all others, in which none was given.
        response: HttpResponse = super().form_valid(form)
        record_code(self.request, self.request.user)
        end_other_sessions(self.request, self.request.user)
        return response


class RemoveView(OwnAccountMixin, DeactivateTOTPView):  # type: ignore[misc]
    """Do without a second factor again; operators cannot.

    Access: signed-in users, each their own, after giving their password again.
    """

    section = "second_factor"
    template_name = "accounts/remove_second_factor.html"


class RecoveryCodesView(OwnAccountMixin, ViewRecoveryCodesView):  # type: ignore[misc]
    """The recovery codes that were not used.

    Access: signed-in users, each their own, after giving their password again.
    """

    section = "second_factor"
    template_name = "accounts/recovery_codes.html"


class NewRecoveryCodesView(OwnAccountMixin, GenerateRecoveryCodesView):  # type: ignore[misc]
    """New recovery codes in place of the old ones.

    Access: signed-in users, each their own, after giving their password again.
    """

    section = "second_factor"
    template_name = "accounts/new_recovery_codes.html"


class RecoveryCodesFileView(OwnAccountMixin, DownloadRecoveryCodesView):  # type: ignore[misc]
    """The recovery codes as a file.

    Access: signed-in users, each their own, after giving their password again.
    """

    template_name = "accounts/recovery_codes.txt"


second_factor = SecondFactorView.as_view()
give_code_to_sign_in = CodeView.as_view()
give_code = GiveCodeView.as_view()
set_up = SetUpView.as_view()
remove = RemoveView.as_view()
recovery_codes = RecoveryCodesView.as_view()
new_recovery_codes = NewRecoveryCodesView.as_view()
recovery_codes_file = RecoveryCodesFileView.as_view()
