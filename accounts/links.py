"""One-time links by which somebody sets a password, made for whoever may pass them on."""

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.urls import reverse

from accounts.models import User


def password_link(user: User) -> str:
    """The address where this user sets a new password: once, and within a day.

    It holds until the password changes or the user signs in.
    """
    key = default_token_generator.make_token(user)
    parts = {"uidb36": user_pk_to_url_str(user), "key": key}
    return absolute(reverse("account_reset_password_from_key", kwargs=parts))


def absolute(path: str) -> str:
    """An address of this site as it is known outside, whatever host a request named."""
    return f"{settings.SITE_URL}{path}"
