"""Links for a new password, made by those who manage the team of somebody who forgot theirs."""

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.exceptions import RoleTooSmall
from accounts.links import password_link
from accounts.models import Membership, User
from accounts.roles import Role
from accounts.teams import require_appointable
from annotation.models import Invitation


@transaction.atomic
def link_for_member(*, member: Membership, actor: User) -> str:
    """The link, for whoever makes it to pass on; RoleTooSmall where that is not theirs to do.

    Whoever has the link has the account. So a team's owners and managers make one only for an
    account that this team's invitation made, that is in no other team, and that opens no more
    than they may themselves; everybody else asks whoever runs the site.
    """
    if not actor.is_superuser:
        require_appointable(member.team, actor, Role(member.role))
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
    others = Membership.objects.filter(user=user).exclude(pk=member.pk)
    if user.is_staff or user.is_superuser or others.exists() or not invitations.exists():
        raise RoleTooSmall(
            _(
                "The account of %(name)s is not this team's alone. Whoever runs this site can make "
                "a link: python manage.py password_link %(name)s"
            )
            % {"name": user.get_username()}
        )
