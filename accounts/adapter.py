"""What django-allauth does differently here: whose wrong passwords count against whom."""

from ipaddress import ip_address
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.internal import ratelimit
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.known_browsers import known_browser, remember_browser

APP = "allauth.account"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Sign-in limits that no stranger can use against a person.

    From a browser that the person has used before, wrong passwords count for that browser only.
    From any other they count for the client's address (one password tried on many names), for
    the name at that address, and, at a limit that a person never reaches, for the name.
    """

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count an attempt beforehand; allauth takes it back where the password is right."""
        username = str(credentials.get("username", "")).casefold()
        counted: list[ratelimit.SingleRateLimitUsage] = []
        for action, key in self._counts(request, username):
            usage = ratelimit.consume(request, app=APP, action=action, key=key)
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
        mapped = getattr(ip_address(address), "ipv4_mapped", None)
        return str(mapped or address)

    def post_login(
        self, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any
    ) -> HttpResponse:
        """Go on to where the person was going, and know their browser from now on."""
        response: HttpResponse = super().post_login(request, user, **kwargs)
        remember_browser(request, response, user.get_username())
        return response

    def respond_user_inactive(self, request: HttpRequest, user: AbstractBaseUser) -> HttpResponse:
        """Say so to somebody whose account was closed, and who knows its password."""
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
        """Leave out what the page itself makes plain: that one is signed in."""
        if message_template != "account/messages/logged_in.txt":
            super().add_message(
                request, level, message_template, message_context, extra_tags, message
            )
