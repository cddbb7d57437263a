# Addresses by the names that django-allauth gives them, which it looks up itself.
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.generic import RedirectView

from lazy_views import LazyPackage

pages, allauth = LazyPackage("accounts.pages"), LazyPackage("allauth.account")

sign_in = login_not_required(
    RedirectView.as_view(pattern_name=settings.LOGIN_URL, query_string=True)
)

of_passwords: list[URLPattern | URLResolver] = [
    path("", pages.account.change_password, name="account_change_password"),
    path("reset/", pages.account.reset_password, name="account_reset_password"),
    # Access of these: everyone. A link can be used once; all sessions of the user end.
    path(
        "reset/sent/",
        allauth.views.PasswordResetDoneView.as_view(
            template_name="accounts/reset_password_sent.html"
        ),
        name="account_reset_password_done",
    ),
    path(
        "reset/done/",
        allauth.views.PasswordResetFromKeyDoneView.as_view(
            template_name="accounts/password_set.html"
        ),
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        allauth.views.PasswordResetFromKeyView.as_view(template_name="accounts/set_password.html"),
        name="account_reset_password_from_key",
    ),
]
of_the_second_factor: list[URLPattern | URLResolver] = [
    path("", pages.second_factor.second_factor, name="mfa_index"),
    # Access: whoever has just given the right password.
    path(
        "sign-in/",
        LazyPackage("allauth.mfa.base").views.AuthenticateView.as_view(
            template_name="accounts/give_code_to_sign_in.html"
        ),
        name="mfa_authenticate",
    ),
    path("again/", pages.second_factor.give_code, name="mfa_reauthenticate"),
    path("set-up/", pages.second_factor.set_up, name="mfa_activate_totp"),
    path("remove/", pages.second_factor.remove, name="mfa_deactivate_totp"),
    path("codes/", pages.second_factor.recovery_codes, name="mfa_view_recovery_codes"),
    path("codes/new/", pages.second_factor.new_recovery_codes, name="mfa_generate_recovery_codes"),
    path(
        "codes/file/", pages.second_factor.recovery_codes_file, name="mfa_download_recovery_codes"
    ),
]
of_the_account: list[URLPattern | URLResolver] = [
    path("", pages.account.account, name="account"),
    path("login/", sign_in, name="account_login"),
    path("again/", pages.account.reauthenticate, name="account_reauthenticate"),
    path("password/", include(of_passwords)),
    path("password-links/", pages.account.password_links, name="password_links"),
    path("tokens/", pages.account.tokens, name="api_tokens"),
    path("tokens/<int:token_id>/revoke/", pages.account.revoke, name="revoke_token"),
    path("email/", pages.account.email, name="account_email"),
    # Access of these: everyone.
    path(
        "email/sent/",
        allauth.views.EmailVerificationSentView.as_view(
            template_name="accounts/confirmation_sent.html",
            extra_context={"sends_mail": settings.SENDS_MAIL},
        ),
        name="account_email_verification_sent",
    ),
    path(
        "email/confirm/<str:key>/",
        allauth.views.ConfirmEmailView.as_view(template_name="accounts/confirm_email.html"),
        name="account_confirm_email",
    ),
    path("second-factor/", include(of_the_second_factor)),
    path("sessions/", pages.account.sessions, name="usersessions_list"),
    path("sessions/<int:session_id>/end/", pages.account.end_session, name="usersessions_end"),
]

urlpatterns: list[URLPattern | URLResolver] = [path("account/", include(of_the_account))]
