"""Tokens that programs sign in with: made, displayed once, recognized, revoked.

A person's token acts as that person. A team's outlives who made it: it acts as a user of its own,
who cannot sign in and is a member of that team alone.
"""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from secrets import token_urlsafe
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.exceptions import InvalidToken
from accounts.models import ApiToken, Membership, Team, User
from accounts.roles import Role, Scope
from accounts.second_factor import has_second_factor, needs_second_factor
from accounts.teams import require_power
from error_codes import require

PREFIX = "assay_"
DAYS = (7, 30, 90, 365)
MOST_TOKENS = 50
# The time of the last use is written down so often at most: each is a write to the database.
PRECISION = timedelta(minutes=1)


class NewToken(NamedTuple):
    token: ApiToken
    text: str


@transaction.atomic
def create_personal_token(*, user: User, name: str, scopes: Sequence[str], days: int) -> NewToken:
    new = _create(user=user, team=None, name=name, scopes=scopes, days=days, created_by=user)
    _record_personal(user, "token.create", new.token)
    return new


@transaction.atomic
def create_team_token(
    *, team: Team, name: str, role: Role, scopes: Sequence[str], days: int, created_by: User
) -> NewToken:
    """A token that acts for a team in a role, which is none that its maker could not give."""
    require_power(team, created_by, role)
    require(
        role != Role.OWNER,
        InvalidToken(
            _("A team's token cannot be an owner; choose another role."), code="owner_role"
        ),
    )
    acts_as = User(username=f"{team.slug}-token-{token_urlsafe(6)}")
    acts_as.set_unusable_password()
    acts_as.save()
    Membership.objects.create(team=team, user=acts_as, role=role)
    new = _create(
        user=acts_as, team=team, name=name, scopes=scopes, days=days, created_by=created_by
    )
    details = _details(new.token) | {"role": str(role)}
    record(team=team, actor=created_by, action="token.create", subject=name, details=details)
    return new


@transaction.atomic
def revoke_token(*, token: ApiToken, actor: User) -> None:
    if not ApiToken.objects.standing().filter(pk=token.pk).update(revoked_at=timezone.now()):
        return
    if token.team is None:
        _record_personal(token.user, "token.revoke", token)
        return
    Membership.objects.filter(user=token.user_id).delete()
    User.objects.filter(pk=token.user_id).update(is_active=False)
    record(
        team=token.team,
        actor=actor,
        action="token.revoke",
        subject=token.name,
        details=_details(token),
    )


def usable_token(text: str) -> ApiToken | None:
    """The token of that text, whose use is remembered; None where it opens nothing (any more)."""
    now = timezone.now()
    tokens = ApiToken.objects.usable(now).select_related("user", "team")
    token = tokens.filter(digest=digest_of(text)).first()
    if token is None or (needs_second_factor(token.user) and not has_second_factor(token.user)):
        return None
    if token.last_used_at is None or token.last_used_at < now - PRECISION:
        ApiToken.objects.filter(
            Q(last_used_at=None) | Q(last_used_at__lt=now - PRECISION), pk=token.pk
        ).update(last_used_at=now)
    return token


def digest_of(text: str) -> str:
    """What is stored of a token, which is too long to be guessed: no slow hash is needed."""
    return sha256(text.encode()).hexdigest()


def _create(
    *,
    user: User,
    team: Team | None,
    name: str,
    scopes: Sequence[str],
    days: int,
    created_by: User,
) -> NewToken:
    require(days in DAYS, InvalidToken(_("A token is for 7, 30, 90 or 365 days."), code="days"))
    # Every token may read what its role may read.
    chosen = [scope.value for scope in Scope if scope in scopes or scope == Scope.READ]
    siblings = ApiToken.objects.filter(team=team) if team else ApiToken.objects.personal(user)
    if siblings.standing().count() >= MOST_TOKENS:
        text = _("There are too many tokens. Revoke those that are not needed.")
        raise InvalidToken(text, code="too_many")
    text = PREFIX + token_urlsafe(32)
    return NewToken(
        ApiToken.objects.create(
            user=user,
            team=team,
            name=name,
            prefix=text[: len(PREFIX) + 6],
            digest=digest_of(text),
            scopes=chosen,
            created_by=created_by,
            expires_at=timezone.now() + timedelta(days=days),
        ),
        text,
    )


def _record_personal(user: User, action: str, token: ApiToken) -> None:
    # In the log of each team that the token reaches; of nobody's team, in the site's.
    teams: list[Team | None] = [*Team.objects.filter(memberships__user=user).order_by("pk")]
    for team in teams or [None]:
        record(team=team, actor=user, action=action, subject=token.name, details=_details(token))


def _details(token: ApiToken) -> dict[str, object]:
    return {"token": token.prefix, "scopes": token.scopes, "until": token.expires_at.isoformat()}
