from typing import Any, cast

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.exceptions import RoleTooSmall
from accounts.models import Membership, Team, User
from accounts.roles import Permission, Role, permissions_of
from accounts.teams import invited_by, permissions_in_team
from annotation.exceptions import StudyUnfit
from annotation.models import Study, StudyMembership
from annotation.models.studies import StudyQuerySet


def roles_in(study: Study, user: User) -> list[Role]:
    """The roles a user has in a study: by the team, and in this study alone.

    A study without a team is its owner's; a superuser owns them all.
    """
    if user.is_superuser or (study.team_id is None and study.owner_id == user.pk):
        return [Role.OWNER]
    by_team = Membership.objects.filter(team=study.team_id, user=user.pk).values_list("role")
    in_study = StudyMembership.objects.filter(study=study.pk, user=user.pk).values_list("role")
    return [Role(role) for (role,) in by_team.order_by().union(in_study.order_by())]


def with_roles_of(studies: StudyQuerySet, user: User) -> StudyQuerySet:
    """Prefetch what `loaded_roles` reads."""
    by_team = Membership.objects.filter(team=OuterRef("team"), user=user.pk)
    in_study = StudyMembership.objects.filter(study=OuterRef("pk"), user=user.pk)
    return studies.annotate(
        role_by_team=Subquery(by_team.values("role")[:1]),
        role_in_study=Subquery(in_study.values("role")[:1]),
    )


def loaded_roles(study: Study, user: User) -> list[Role]:
    """Like `roles_in`, without a query, for a study of `with_roles_of`."""
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
    """A study cannot move from one team to another."""
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
    if role not in StudyMembership.ROLES:
        raise StudyUnfit(
            f"A {role.label} of one study alone is not possible; choose another role.",
            code="team_role",
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
    if actor and Permission.MANAGE not in permissions_in(study, actor):
        raise RoleTooSmall(_("Only owners and managers share a study."))


def record_in(
    study: Study, *, actor: AbstractBaseUser | None, action: str, details: dict[str, Any]
) -> None:
    """Append to the log of the study's team, if it has a team."""
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
    """Return the former owner, who is replaced only if `is_replacing`."""
    former = Study.objects.select_for_update().get(pk=study.pk).owner
    if former not in (None, owner) and not is_replacing:
        raise StudyUnfit(
            f"Study '{study.slug}' belongs to '{former}'. Add --replace to give it to another "
            "user.",
            code="has_owner",
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
