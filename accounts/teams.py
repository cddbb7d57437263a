from decimal import Decimal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.exceptions import InvalidTeam, LastOwner, RoleTooSmall
from accounts.models import Membership, Team, User
from accounts.names import require_visible
from accounts.roles import PERMISSIONS, Permission, Role, permissions_of
from error_codes import require


def permissions_in_team(team: Team, user: User) -> frozenset[Permission]:
    if user.is_superuser:
        return frozenset(Permission)
    return permissions_of(
        *Membership.objects.filter(team=team, user=user.pk).values_list("role", flat=True)
    )


def appointable_roles(permissions: frozenset[Permission]) -> list[Role]:
    if Permission.MANAGE not in permissions:
        return []
    return [role for role in Role if role != Role.OWNER or Permission.OWN in permissions]


def may_create_teams(user: User) -> bool:
    """Whether a user may create teams: everyone if the site's setting says so, else operators."""
    return bool(settings.MARKETPLACE_REQUESTER_SIGN_UP) or _is_operator(user)


def may_connect_this_site(team: Team, user: User) -> bool:
    return team.can_connect_this_site or may_create_teams(user)


def _is_operator(user: User) -> bool:
    return user.is_staff or user.is_superuser


def create_own_team(*, name: str, owner: User) -> Team:
    require(
        may_create_teams(owner),
        RoleTooSmall(
            _("Only operators of this site create teams. Ask one of them for a team."),
            code="operators_only",
        ),
    )
    return create_team(name=name, owner=owner, can_connect_this_site=_is_operator(owner))


@transaction.atomic
def create_team(*, name: str, owner: User, can_connect_this_site: bool = True) -> Team:
    """A team of one, its owner, for commands. Pages and the API call `create_own_team`."""
    try:
        require_visible(name.strip())
    except ValidationError as error:
        raise InvalidTeam(error.message, code=error.code or "") from error
    slug = slugify(name)[:80]
    require(slug, InvalidTeam(_("A team's name needs a letter or a digit."), code="no_letters"))
    try:
        with transaction.atomic():
            team = Team.objects.create(
                name=name.strip(), slug=slug, can_connect_this_site=can_connect_this_site
            )
    except IntegrityError as error:
        raise InvalidTeam(
            _("There is a team named “{name}” already.").format(name=name), code="taken"
        ) from error
    Membership.objects.create(team=team, user=owner, role=Role.OWNER)
    record(team=team, actor=owner, action="team.create", subject=team.name)
    return team


@transaction.atomic
def set_role(
    *, team: Team, user: User, role: Role, actor: User | None, is_invited: bool = False
) -> Membership:
    """Make a user a member, or a member something else; the last owner stays one.

    Whoever does it needs the role for it (RoleTooSmall); no actor means a command. Who accepts an
    invitation does it by themselves, with the power of the inviter, who is the actor.
    """
    Team.objects.select_for_update().get(pk=team.pk)
    member = Membership.objects.filter(team=team, user=user).first()
    former = member.role if member else ""
    require_power(team, actor, former, role)
    if actor == user and former and not PERMISSIONS[role] <= PERMISSIONS[Role(former)]:
        raise RoleTooSmall(
            _("Nobody gives themselves a larger role; ask another owner."), code="own_role"
        )
    if member and former == role:
        return member
    if member and member.role == Role.OWNER != role:
        _require_another_owner(member)
    member = member or Membership(team=team, user=user)
    member.role = role
    member.save()
    record(
        team=team,
        actor=user if is_invited else actor,
        action="member.role",
        subject=user.get_username(),
        details={"role": str(role), "former_role": former} | invited_by(actor, is_invited),
    )
    return member


def invited_by(actor: User | None, is_invited: bool) -> dict[str, str]:
    return {"invited_by": actor.get_username()} if is_invited and actor else {}


@transaction.atomic
def remove_member(*, member: Membership, actor: User | None) -> None:
    """End a membership, one's own or another's; a team keeps an owner."""
    Team.objects.select_for_update().get(pk=member.team_id)
    member.refresh_from_db()
    if actor is None or actor.pk != member.user_id:
        require_power(member.team, actor, member.role)
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


@transaction.atomic
def set_wage_floor(*, team: Team, wage_floor_usd: Decimal | None, actor: User | None) -> None:
    # Set the least pay an hour under which pages warn; None for none.
    team.wage_floor_usd = wage_floor_usd
    team.full_clean(validate_unique=False, validate_constraints=False)
    team.save(update_fields=["wage_floor_usd"])
    floor = None if wage_floor_usd is None else str(wage_floor_usd)
    record(team=team, actor=actor, action="team.wage_floor", details={"wage_floor_usd": floor})


def require_power(team: Team, actor: User | None, *roles: str) -> None:
    """RoleTooSmall if the actor may not give or take these roles; None is a command."""
    if actor is None:
        return
    allowed = appointable_roles(permissions_in_team(team, actor))
    if not allowed:
        text = _("Only owners and managers of a team change who is in it.")
        raise RoleTooSmall(text, code="not_manager")
    if any(role and role not in allowed for role in roles):
        text = _("Only an owner appoints owners, or changes an owner's role.")
        raise RoleTooSmall(text, code="not_owner")


def _require_another_owner(member: Membership) -> None:
    require(
        Membership.objects.filter(team=member.team, role=Role.OWNER).exclude(pk=member.pk).exists(),
        LastOwner(_("A team needs an owner. Make somebody else an owner first.")),
    )
