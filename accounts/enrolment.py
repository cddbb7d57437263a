import uuid
from typing import Any

from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress
from allauth.account.utils import user_pk_to_url_str
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import CASCADE, ForeignObjectRel, QuerySet
from django.urls import reverse

from accounts.audit import record
from accounts.exceptions import ErasureRefused, InvalidAccount, NameTaken
from accounts.models import Membership, User
from accounts.roles import Role
from error_codes import CodedText


def create_user(*, username: str, password: str | None, is_staff: bool = False) -> User:
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
    parts = {"uidb36": user_pk_to_url_str(user), "key": default_token_generator.make_token(user)}
    return absolute(reverse("account_reset_password_from_key", kwargs=parts))


def absolute(path: str) -> str:
    return f"{settings.SITE_URL}{path}"


# Whose account it is decides there: a worker's has books, and a page of its own for this.
MARKETPLACE = "marketplace"
HIDDEN_COLUMNS = ("password", "digest", "data", "session_key")


def export_user(user: User) -> dict[str, list[dict[str, Any]]]:
    """Every row that refers to the user, by table; without what opens an account."""
    rows: dict[str, QuerySet[Any]] = {"User": User.objects.filter(pk=user.pk)}
    for relation in _relations():
        name = f"{relation.related_model.__name__}.{relation.field.name}"
        rows[name] = _rows(relation, user)
    return {name: [_record(row) for row in found.values()] for name, found in rows.items()}


@transaction.atomic
def erase_user(user: User) -> None:
    locked = User.objects.select_for_update().get(pk=user.pk)
    if reasons := erasure_obstacles(locked):
        raise ErasureRefused(" ".join(reasons), code=reasons[0].code)
    for session in UserSession.objects.filter(user=locked):
        session.end()
    for relation in _relations():
        if getattr(relation, "on_delete", None) is CASCADE:
            _rows(relation, locked).delete()
    locked.username = f"erased-{uuid.uuid4().hex}"
    locked.first_name = locked.last_name = locked.email = ""
    locked.last_login = None
    locked.is_active = locked.is_staff = locked.is_superuser = False
    locked.set_unusable_password()
    locked.save()
    record(team=None, actor=None, action="erase user", subject=locked.username)


def erasure_obstacles(user: User) -> list[CodedText]:
    reasons: list[CodedText] = []
    for relation in _relations():
        if relation.related_model._meta.app_label == MARKETPLACE and _rows(relation, user).exists():
            text = (
                f"{user.username} has an account at the marketplace too, as a worker or a "
                "requester. Workers erase theirs under Your data, or `erase_worker` does; take a "
                "requester's user away from the requester first."
            )
            reasons.append(CodedText(text, "marketplace_account"))
            break
    for membership in Membership.objects.filter(user=user, role=Role.OWNER).select_related("team"):
        others = Membership.objects.filter(team=membership.team, role=Role.OWNER)
        if not others.exclude(user=user).exists():
            text = f"{membership.team.name} has no other owner: make somebody its owner."
            reasons.append(CodedText(text, "last_owner"))
    return reasons


def _relations() -> list[ForeignObjectRel]:
    return [
        relation
        for relation in User._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel)
        and relation.related_model._meta.auto_created is False
    ]


def _rows(relation: ForeignObjectRel, user: User) -> QuerySet[Any]:
    found: QuerySet[Any] = relation.related_model._base_manager.filter(
        **{relation.field.name: user.pk}
    )
    return found.order_by("pk")


def _record(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in row.items()
        if name not in HIDDEN_COLUMNS and not name.startswith("encrypted")
    }
