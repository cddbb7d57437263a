"""Who may do what in a study, and invitations to a team or a study: links that hold once, a week.

Whoever manages a team makes links for a new password the same way.
"""

import hashlib
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_noop

from accounts.audit import record
from accounts.enrolment import add_address, create_user, password_link
from accounts.exceptions import InvalidAccount, RoleTooSmall
from accounts.jobs import send_later
from accounts.models import Membership, Team, User
from accounts.roles import PERMISSIONS, Permission, Role, permissions_of
from accounts.teams import invited_by, permissions_in_team, require_power, set_role
from annotation.exceptions import InvitationVoid, StudyUnfit, require
from annotation.models import Invitation, Study, StudyMembership, StudyQuerySet


def roles_in(study: Study, user: User) -> list[Role]:
    """The roles a user has in a study: by the team, and in this study alone.

    A study without a team is its owner's; a superuser owns them all. A rehearsal has the roles of
    its study.
    """
    if study.rehearsal_of is not None:
        return roles_in(study.rehearsal_of, user)
    if user.is_superuser or (study.team_id is None and study.owner_id == user.pk):
        return [Role.OWNER]
    by_team = Membership.objects.filter(team=study.team_id, user=user.pk).values_list("role")
    in_study = StudyMembership.objects.filter(study=study.pk, user=user.pk).values_list("role")
    return [Role(role) for (role,) in by_team.order_by().union(in_study.order_by())]


def with_roles_of(studies: StudyQuerySet, user: User) -> StudyQuerySet:
    """Prefetch what `loaded_roles` reads."""
    return studies.annotate(
        role_by_team=Subquery(
            Membership.objects.filter(team=OuterRef("team"), user=user.pk).values("role")[:1]
        ),
        role_in_study=Subquery(
            StudyMembership.objects.filter(study=OuterRef("pk"), user=user.pk).values("role")[:1]
        ),
    )


def loaded_roles(study: Study, user: User) -> list[Role]:
    """Like `roles_in`, without a query, for a study of `with_roles_of`."""
    if study.rehearsal_of is not None:
        return roles_in(study.rehearsal_of, user)
    if user.is_superuser or (study.team_id is None and study.owner_id == user.pk):
        return [Role.OWNER]
    names = (getattr(study, name) for name in ("role_by_team", "role_in_study"))
    return [Role(name) for name in dict.fromkeys(names) if name]


def permissions_in(study: Study, user: User) -> frozenset[Permission]:
    return permissions_of(*roles_in(study, user))


def loaded_permissions(study: Study, user: User) -> frozenset[Permission]:
    return permissions_of(*loaded_roles(study, user))


@transaction.atomic
def give_to_team(*, study: Study, team: Team, actor: User | None) -> None:
    locked = Study.objects.select_for_update().get(pk=study.pk)
    if locked.team_id not in (None, team.pk):
        raise StudyUnfit(
            f"Study '{study.slug}' belongs to team '{locked.team}' already.", code="other_team"
        )
    if actor and not (
        Permission.OWN in permissions_in(study, actor)
        and Permission.EDIT in permissions_in_team(team, actor)
    ):
        raise RoleTooSmall(_("Only the owner of a study gives it to a team, one they work in."))
    Study.objects.filter(pk=study.pk).update(team=team)
    study.refresh_from_db(fields=["team"])
    record(team=team, actor=actor, action="study.team", subject=study.slug)


@transaction.atomic
def set_study_role(
    *, study: Study, user: User, role: Role, actor: User | None, is_invited: bool = False
) -> StudyMembership:
    """Replace the role of a user in one study.

    Who accepts an invitation has the inviter as `actor`.
    """
    require(
        role in StudyMembership.ROLES,
        StudyUnfit(
            f"A {role.label} of one study alone is not possible; choose another role.",
            code="team_role",
        ),
    )
    require_study_manager(study, actor)
    member, _is_new = StudyMembership.objects.update_or_create(
        study=study, user=user, defaults={"role": role}
    )
    record(
        team=study.team,
        actor=user if is_invited else actor,
        action="study.role",
        subject=study.slug,
        details={"user": user.get_username(), "role": str(role)} | invited_by(actor, is_invited),
    )
    return member


@transaction.atomic
def remove_study_member(*, member: StudyMembership, actor: User | None) -> None:
    if actor is None or actor.pk != member.user_id:
        require_study_manager(member.study, actor)
    member.delete()
    record(
        team=member.study.team,
        actor=actor,
        action="study.role_ended",
        subject=member.study.slug,
        details={"user": member.user.get_username(), "former_role": member.role},
    )


def require_study_manager(study: Study, actor: User | None) -> None:
    require(
        not actor or Permission.MANAGE in permissions_in(study, actor),
        RoleTooSmall(_("Only owners and managers share a study.")),
    )


def record_in(
    study: Study, *, actor: AbstractBaseUser | None, action: str, details: dict[str, Any]
) -> None:
    if study.team is not None:
        record(
            team=study.team,
            actor=cast("User | None", actor),
            action=action,
            subject=study.slug,
            details=details,
        )


@transaction.atomic
def assign_owner(
    *, study: Study, owner: AbstractBaseUser, is_replacing: bool = False
) -> AbstractBaseUser | None:
    former = Study.objects.select_for_update().get(pk=study.pk).owner
    require(
        former in (None, owner) or is_replacing,
        StudyUnfit(
            f"Study '{study.slug}' belongs to '{former}'. Add --replace to give it to another "
            "user.",
            code="has_owner",
        ),
    )
    Study.objects.filter(pk=study.pk).update(owner=owner.pk)
    study.refresh_from_db(fields=["owner"])
    return former


def ownership_warning(study: Study) -> str | None:
    if study.owner_id is not None or study.team_id is not None:
        return None
    return (
        f"Study '{study.slug}' has no owner, so the console shows it to superusers only. Give it "
        f"one with `python manage.py assign_owner {study.slug} USER`."
    )


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
    require(
        Invitation.objects.open().filter(pk=invitation.pk).update(revoked_at=timezone.now()),
        InvitationVoid(_(VOID)),
    )
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
    require(
        address is not None,
        InvalidAccount(
            _("There is an account with the address %(email)s. Sign in with it.")
            % {"email": invitation.email}
        ),
    )
    join(token=token, user=user)
    Invitation.objects.filter(pk=invitation.pk).update(made_account=True)
    return user


def _claim(token: str, user: User) -> Invitation:
    invitation = invitation_of(token)
    require(
        Invitation.objects.open()
        .filter(pk=invitation.pk)
        .update(accepted_at=timezone.now(), accepted_by=user),
        InvitationVoid(_(VOID)),
    )
    return invitation


def _require_inviter(to: Team | Study | None, role: str, actor: User) -> None:
    if isinstance(to, Team):
        require_power(to, actor, Role(role))
    elif to is not None:
        require_study_manager(to, actor)
        require(
            role in StudyMembership.ROLES,
            StudyUnfit(_("Choose a role that is possible in one study alone."), code="team_role"),
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
    return _(
        "%(inviter)s invites you to %(name)s, as %(role)s. Join here, within a week:\n%(link)s\n\n"
        "The link is for you alone, and holds once."
    ) % {
        "inviter": invitation.invited_by.get_username(),
        "name": _name(invitation.team or invitation.study),
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
