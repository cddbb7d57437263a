from ipaddress import ip_address
from typing import Any, cast

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.forms import LoginForm, ResetPasswordForm as AnyAddressForm
from allauth.core.internal import ratelimit
from django import forms
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.core import signing
from django.core.exceptions import ImproperlyConfigured
from django.forms import Field
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import get_random_string, salted_hmac
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.enrolment import absolute
from accounts.jobs import send_later
from accounts.models import User
from accounts.roles import Scope
from accounts.tokens import DAYS

# Browsers in which somebody has signed in before, known again by a signed cookie.
#
# A stranger's wrong guesses never count against such a browser, so nobody is locked out of the
# browser they always use (OWASP: "device cookies"). The cookie says nothing about who signed in to
# those who lack SECRET_KEY, and opens nothing by itself.

COOKIE = "assay_browser"
SALT = "accounts.adapter"
MAX_AGE_SECONDS = 180 * 86_400
# On a computer that many share, the last ones.
MAX_NAMES = 8


def known_browser(request: HttpRequest, username: str) -> str | None:
    content = _read(request)
    return content["id"] if _digest(username) in content["names"] else None


def remember_browser(request: HttpRequest, response: HttpResponse, username: str) -> None:
    content, digest = _read(request), _digest(username)
    names = [digest, *(name for name in content["names"] if name != digest)][:MAX_NAMES]
    response.set_cookie(
        COOKIE,
        signing.dumps({"id": content["id"] or get_random_string(22), "names": names}, salt=SALT),
        max_age=MAX_AGE_SECONDS,
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
        samesite="Lax",
    )


def _read(request: HttpRequest) -> dict[str, Any]:
    try:
        return cast(
            "dict[str, Any]",
            signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=MAX_AGE_SECONDS),
        )
    except signing.BadSignature:
        return {"id": None, "names": []}


def _digest(username: str) -> str:
    return salted_hmac(SALT, username.casefold(), algorithm="sha256").hexdigest()[:32]


# What pages make plain themselves, or what does not happen without a mail server.
SILENT = {"account/messages/logged_in.txt"}
OF_MAIL = {"account/messages/email_confirmation_sent.txt"}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    # Sign-in limits that no stranger can use against a person. From a browser that the person has
    # used before, wrong passwords count for that browser only. From any other they count for the
    # client's address (one password tried on many names), for the name at that address, and, at a
    # limit that a person never reaches, for the name.
    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        # Count an attempt beforehand; allauth takes it back where the password is right.
        username = str(credentials.get("username", "")).casefold()
        counted: list[ratelimit.SingleRateLimitUsage] = []
        for action, key in self._counts(request, username):
            usage = ratelimit.consume(request, app="allauth.account", action=action, key=key)
            # An attempt that is refused here tries no password, so no further limit counts it:
            # one address cannot use up what the name has for all addresses.
            if usage is None:
                raise self.validation_error("too_many_login_attempts")
            counted += usage.usage
        self._login_failed_rl_usage = ratelimit.RateLimitUsage(counted)

    def _counts(self, request: HttpRequest, username: str) -> list[tuple[str, str]]:
        browser = known_browser(request, username)
        if browser is not None:
            return [("login_failed_known_browser", f"{username}\0{browser}")]
        address = ratelimit.get_ip(request)
        return [("login_failed", f"{username}\0{address}"), ("login_failed_name", username)]

    def get_client_ip(self, request: HttpRequest) -> str:
        """The client's address: the connection's, where the request passed fewer proxies than
        the site has. An IPv4 client is itself, also on a socket of IPv6, and not the /64 network
        that all IPv4 addresses would share."""
        try:
            address = str(super().get_client_ip(request))
        except ImproperlyConfigured:
            address = request.META["REMOTE_ADDR"]
        return str(getattr(ip_address(address), "ipv4_mapped", None) or address)

    def post_login(
        self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any
    ) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **kwargs)
        remember_browser(request, response, user.get_username())
        return response

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        message = self.render_mail(template_prefix, email, {"email": email, **context})
        send_later(subject=message.subject, body=message.body, to=email)

    def get_reset_password_from_key_url(self, key: str) -> str:
        """The link in a mail names this site, never the host that the request named."""
        path = reverse("account_reset_password_from_key", kwargs={"uidb36": "UID", "key": "KEY"})
        return absolute(path.replace("UID-KEY", key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        return absolute(reverse("account_confirm_email", args=[emailconfirmation.key]))

    def respond_user_inactive(self, request: HttpRequest, user: AbstractBaseUser) -> HttpResponse:
        return render(request, "accounts/inactive.html", status=403)

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        message_context: dict[str, Any] | None = None,
        extra_tags: str = "",
        message: str | None = None,
    ) -> None:
        silent = SILENT if settings.SENDS_MAIL else SILENT | OF_MAIL
        if message_template not in silent:
            super().add_message(
                request, level, message_template, message_context, extra_tags, message
            )


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password, under the field names that HTML forms of this site always had."""

    fields: dict[str, Field]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        username = self.fields.pop("login")
        username.widget.attrs |= {"autofocus": True, "autocapitalize": "none"}
        self.fields = {"username": username, **self.fields}
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)

    def user_credentials(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("username", "password")}

    def clean(self) -> dict[str, Any]:
        self.cleaned_data["login"] = self.cleaned_data.get("username", "")
        return cast("dict[str, Any]", super().clean())


class ResetPasswordForm(AnyAddressForm):  # type: ignore[misc]
    """An e-mail address; only one that its owner has confirmed opens an account."""

    def clean_email(self) -> str:
        # Find whose it is, without saying so.
        email: str = self.cleaned_data["email"]
        self.users = list(
            User.objects.filter(
                is_active=True, emailaddress__email__iexact=email, emailaddress__verified=True
            )
        )
        return email


class TokenForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("What will use it, such as “nightly export”.")
    )
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        coerce=int,
        choices=[(days, format_lazy(_("{n} days"), n=days)) for days in DAYS],
        initial=90,
    )
    scopes = forms.MultipleChoiceField(
        label=_("What it may do, as far as the role allows"),
        choices=Scope.choices,
        initial=[Scope.READ],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    @property
    def values(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("name", "days", "scopes")}
