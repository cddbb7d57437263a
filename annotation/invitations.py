"""Inviting people to a team or to one study: by a link that holds once, and for a week.

Whoever manages a team makes links for a new password the same way.
"""

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from accounts.audit import record
from accounts.enrolment import add_address, create_user, password_link
from accounts.exceptions import InvalidAccount, RoleTooSmall
from accounts.jobs import send_later
from accounts.models import Membership, Team, User
from accounts.roles import PERMISSIONS, Role
from accounts.teams import require_power, set_role
from annotation.access import require_study_manager, set_study_role
from annotation.exceptions import InvitationVoid, StudyUnfit
from annotation.models import Invitation, Study, StudyMembership

HOLDS = timedelta(days=7)
TOKEN_BYTES = 32
VOID = gettext_noop(
    "This invitation does not hold: it was used or taken back, or is older than a week."
)


@transaction.atomic
def invite(
    *, to: Team | Study, email: str, role: Role, actor: User, link_of: Callable[[str], str]
) -> str:
    """Invite somebody, and return the link, which `link_of` makes of a token and nothing stores.

    On a site that has a mail server it is sent instead, and nothing is returned.
    """
    email = email.strip().lower()
    _require_address(email)
    _require_inviter(to, role, actor)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    invitation = Invitation.objects.create(
        **({"team": to} if isinstance(to, Team) else {"study": to}),
        role=role,
        email=email,
        token_hash=_hash(token),
        was_mailed=settings.SENDS_MAIL,
        invited_by=actor,
        expires_at=timezone.now() + HOLDS,
    )
    _record(invitation, actor, "member.invite")
    link = link_of(token)
    if not settings.SENDS_MAIL:
        return link
    send_later(
        subject=_("Assay: an invitation to %(name)s") % {"name": _name(to)},
        body=_message(invitation, link),
        to=email,
    )
    return ""


@transaction.atomic
def revoke(*, invitation: Invitation, actor: User) -> None:
    if not Invitation.objects.open().filter(pk=invitation.pk).update(revoked_at=timezone.now()):
        raise InvitationVoid(_(VOID))
    _record(invitation, actor, "member.invitation_revoked")


def invitation_of(token: str) -> Invitation:
    """The invitation of a link; InvitationVoid where it does not hold.

    It holds no longer than whoever invited may still do so.
    """
    rows = Invitation.objects.open().select_related("team", "study", "invited_by")
    invitation = rows.filter(token_hash=_hash(token)).first()
    if invitation is None or not invitation.invited_by.is_active:
        raise InvitationVoid(_(VOID))
    try:
        _require_inviter(
            invitation.team or invitation.study, invitation.role, invitation.invited_by
        )
    except (RoleTooSmall, StudyUnfit) as error:
        raise InvitationVoid(_(VOID)) from error
    return invitation


@transaction.atomic
def join(*, token: str, user: User) -> Invitation:
    invitation = _claim(token, user)
    members: QuerySet[Any] = (
        StudyMembership.objects.filter(study=invitation.study, user=user)
        if invitation.team is None
        else Membership.objects.filter(team=invitation.team, user=user)
    )
    member = members.first()
    role = Role(invitation.role)
    # A larger role that one has stays.
    if member is None or PERMISSIONS[role] > PERMISSIONS[Role(member.role)]:
        given: dict[str, Any] = {"user": user, "role": role, "actor": invitation.invited_by}
        if invitation.team is not None:
            set_role(team=invitation.team, is_invited=True, **given)
        elif invitation.study is not None:
            set_study_role(study=invitation.study, is_invited=True, **given)
    _record(invitation, user, "member.join")
    return invitation


@transaction.atomic
def join_with_new_account(*, token: str, username: str, password: str) -> User:
    """Make an account with the invitation's address, and accept it.

    The address counts as confirmed where the link came by mail, not where somebody passed it on.
    """
    invitation = invitation_of(token)
    user = create_user(username=username, password=password)
    address = add_address(user=user, email=invitation.email, is_verified=invitation.was_mailed)
    if address is None:
        raise InvalidAccount(
            _("There is an account with the address %(email)s. Log in with it.")
            % {"email": invitation.email}
        )
    join(token=token, user=user)
    Invitation.objects.filter(pk=invitation.pk).update(made_account=True)
    return user


def _claim(token: str, user: User) -> Invitation:
    invitation = invitation_of(token)
    claimed = {"accepted_at": timezone.now(), "accepted_by": user}
    if not Invitation.objects.open().filter(pk=invitation.pk).update(**claimed):
        raise InvitationVoid(_(VOID))
    return invitation


def _require_inviter(to: Team | Study | None, role: str, actor: User) -> None:
    if isinstance(to, Team):
        require_power(to, actor, Role(role))
    elif to is not None:
        require_study_manager(to, actor)
        if role not in StudyMembership.ROLES:
            raise StudyUnfit(
                _("Choose a role that is possible in one study alone."), code="team_role"
            )


def _require_address(email: str) -> None:
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidAccount(
            _("'%(email)s' is not a valid e-mail address.") % {"email": email}
        ) from error


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _record(invitation: Invitation, actor: User, action: str) -> None:
    study = invitation.study
    record(
        team=invitation.team or (study.team if study else None),
        actor=actor,
        action=action,
        subject=study.slug if study else invitation.email,
        details={"email": invitation.email, "role": str(invitation.role)},
    )


def _message(invitation: Invitation, link: str) -> str:
    to = invitation.team or invitation.study
    return _(
        "%(inviter)s invites you to %(name)s, as %(role)s. Join here, within a week:\n%(link)s\n\n"
        "The link is for you alone, and holds once."
    ) % {
        "inviter": invitation.invited_by.get_username(),
        "name": _name(to),
        "role": invitation.get_role_display(),
        "link": link,
    }


def _name(to: Team | Study | None) -> str:
    return " ".join((to.title if isinstance(to, Study) else str(to)).split())


# Whose rows are looked at here, or belong to any account; another's are of another site.
APPS_OF_TEAMS = {
    *("account", "mfa", "usersessions", "accounts", "work"),
    *("annotation", "hits", "validation", "console"),
}


@transaction.atomic
def link_for_member(*, member: Membership, actor: User) -> str:
    """The link, for whoever makes it to pass on; RoleTooSmall where that is not theirs to do.

    Whoever has the link has the account. So a team's owners and managers make one only for an
    account that this team's invitation made, that is in no other team, and that opens no more
    than they may themselves; everybody else asks whoever runs the site.
    """
    if not actor.is_superuser:
        require_power(member.team, actor, Role(member.role))
        _require_of_this_team(member)
    record(
        team=member.team,
        actor=actor,
        action="member.password_link",
        subject=member.user.get_username(),
    )
    return password_link(member.user)


def _require_of_this_team(member: Membership) -> None:
    user = member.user
    invitations = Invitation.objects.filter(team=member.team, accepted_by=user, made_account=True)
    if user.is_staff or user.is_superuser or not invitations.exists() or _is_elsewhere(member):
        raise RoleTooSmall(
            _(
                "The account of %(name)s is not this team's alone. Whoever runs this site can make "
                "a link: python manage.py password_link %(name)s"
            )
            % {"name": user.get_username()}
        )


def _is_elsewhere(member: Membership) -> bool:
    user = member.user
    teams = Membership.objects.filter(user=user).exclude(pk=member.pk)
    own = Q(owner=user) | Q(memberships__user=user)
    studies = Study.objects.filter(own).exclude(team=member.team)
    return teams.exists() or studies.exists() or _is_on_other_sites(user)


def _is_on_other_sites(user: User) -> bool:
    """Whether an app that this one does not know keeps something of the person's, such as a
    worker's earnings."""
    return any(
        relation.related_model._default_manager.filter(**{relation.field.name: user}).exists()
        for relation in user._meta.related_objects
        if relation.related_model._meta.app_label not in APPS_OF_TEAMS
    )
