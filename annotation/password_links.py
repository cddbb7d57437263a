"""Links for a new password, made by those who manage the team of somebody who forgot theirs."""

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.exceptions import RoleTooSmall
from accounts.links import password_link
from accounts.models import Membership, User
from accounts.roles import Role
from accounts.teams import require_appointable
from annotation.models import Invitation, Study

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
    if user.is_staff or user.is_superuser or not invitations.exists() or _is_elsewhere(member):
        raise RoleTooSmall(
            _(
                "The account of %(name)s is not this team's alone. Whoever runs this site can make "
                "a link: python manage.py password_link %(name)s"
            )
            % {"name": user.get_username()}
        )


def _is_elsewhere(member: Membership) -> bool:
    """Whether the account opens another team, another team's study, or another site's pages."""
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
