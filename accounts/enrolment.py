"""New users, who are made by whoever runs the site."""

from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.urls import reverse

from accounts.exceptions import InvalidAccount, NameTaken
from accounts.models import User


def create_user(*, username: str, password: str | None, is_staff: bool = False) -> User:
    """A user who can sign in with this password, or once a link has set one.

    Staff are the marketplace's operators.
    """
    user = User(username=username, is_staff=is_staff)
    try:
        user.full_clean(exclude=["password"], validate_unique=False, validate_constraints=False)
        if password is not None:
            validate_password(password, user)
    except ValidationError as error:
        raise InvalidAccount(" ".join(error.messages)) from error
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise NameTaken(f"There is a user named '{username}' already.") from error
    return user


def set_password(*, user: User, password: str) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])


def add_address(*, user: User, email: str, is_verified: bool = False) -> EmailAddress | None:
    """Give a new user an e-mail address; None where another account has confirmed it."""
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidAccount(f"'{email}' is not a valid e-mail address.") from error
    if EmailAddress.objects.filter(email=email, verified=True).exists():
        return None
    address = EmailAddress.objects.create(user=user, email=email, verified=is_verified)
    address.set_as_primary()
    return address


# One-time links by which somebody sets a password, made for whoever may pass them on.


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
