"""Teams and who is in them."""

from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.exceptions import InvalidTeam, LastOwner
from accounts.models import Membership, Team, User
from accounts.roles import Permission, Role, permissions_of


def permissions_in_team(team: Team, user: User) -> frozenset[Permission]:
    """What a user may do in a team, and in all of its studies; nothing where not a member."""
    if user.is_superuser:
        return frozenset(Permission)
    roles = Membership.objects.filter(team=team, user=user.pk).values_list("role", flat=True)
    return permissions_of(*roles)


@transaction.atomic
def create_team(*, name: str, owner: User) -> Team:
    """A team of one, its owner."""
    slug = slugify(name)[:80]
    if not slug:
        raise InvalidTeam(_("A team's name needs a letter or a digit."))
    try:
        with transaction.atomic():
            team = Team.objects.create(name=name.strip(), slug=slug)
    except IntegrityError as error:
        raise InvalidTeam(_("There is a team named “{name}” already.").format(name=name)) from error
    Membership.objects.create(team=team, user=owner, role=Role.OWNER)
    record(team=team, actor=owner, action="team.create", subject=team.name)
    return team


@transaction.atomic
def set_role(*, team: Team, user: User, role: Role, actor: User | None) -> Membership:
    """Make a user a member, or a member something else; the last owner stays one."""
    Team.objects.select_for_update().get(pk=team.pk)
    member = Membership.objects.filter(team=team, user=user).first()
    former = member.role if member else ""
    if member and member.role == Role.OWNER != role:
        _require_another_owner(member)
    member = member or Membership(team=team, user=user)
    member.role = role
    member.save()
    record(
        team=team,
        actor=actor,
        action="member.role",
        subject=user.get_username(),
        details={"role": str(role), "former_role": former},
    )
    return member


@transaction.atomic
def remove_member(*, member: Membership, actor: User | None) -> None:
    """End a membership; a team keeps an owner."""
    Team.objects.select_for_update().get(pk=member.team_id)
    if member.role == Role.OWNER:
        _require_another_owner(member)
    member.delete()
    record(
        team=member.team,
        actor=actor,
        action="member.remove",
        subject=member.user.get_username(),
        details={"former_role": member.role},
    )


def _require_another_owner(member: Membership) -> None:
    owners = Membership.objects.filter(team=member.team, role=Role.OWNER)
    if not owners.exclude(pk=member.pk).exists():
        raise LastOwner(_("A team needs an owner. Make somebody else an owner first."))
