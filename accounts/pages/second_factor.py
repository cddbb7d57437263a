from typing import Any

from allauth.mfa.base.views import IndexView, ReauthenticateView
from allauth.mfa.recovery_codes.views import (
    DownloadRecoveryCodesView,
    GenerateRecoveryCodesView,
    ViewRecoveryCodesView,
)
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.usersessions.internal.flows.sessions import end_other_sessions
from django.http import HttpResponse

from accounts.pages.account import own_account_page
from accounts.second_factor import record_code


class SetUpView(ActivateTOTPView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        # Count the code for this session, and end all others, in which none was given.
        response: HttpResponse = super().form_valid(form)
        record_code(self.request, self.request.user)
        end_other_sessions(self.request, self.request.user)
        return response


SECTION = "second_factor"

# Access: signed-in users, each their own.
second_factor = own_account_page(IndexView, "second_factor.html", section=SECTION)
# Access: signed-in users with a second factor, each their own.
give_code = own_account_page(ReauthenticateView, "reauthenticate.html")
# Access of the others: signed-in users, each their own, after giving their password again.
set_up = own_account_page(SetUpView, "set_up_second_factor.html", section=SECTION)
# Operators cannot remove it.
remove = own_account_page(DeactivateTOTPView, "remove_second_factor.html", section=SECTION)
recovery_codes = own_account_page(ViewRecoveryCodesView, "recovery_codes.html", section=SECTION)
new_recovery_codes = own_account_page(
    GenerateRecoveryCodesView, "new_recovery_codes.html", section=SECTION
)
recovery_codes_file = own_account_page(DownloadRecoveryCodesView, "recovery_codes.txt")
