from collections.abc import Sequence
from typing import cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from accounts.models import ApiToken, Membership, RowOfTeam, Team, TeamRowQuerySet, User
from accounts.roles import Permission, Role, permissions_of
from accounts.teams import permissions_in_team


def person(request: HttpRequest) -> User:
    return cast(User, request.user)


def within_scopes(
    request: HttpRequest, permissions: frozenset[Permission]
) -> frozenset[Permission]:
    """Of these permissions, those that a token's scopes reach; all of them in a browser."""
    token = getattr(request, "auth", None)
    return permissions & token.permissions if isinstance(token, ApiToken) else permissions


def require_permission(request: HttpRequest, roles: Sequence[Role], permission: Permission) -> None:
    # 403 where the roles, or a token's scopes, are too small; otherwise what they allow is on the
    # request from then on, for the page's buttons.
    permissions = within_scopes(request, permissions_of(*roles))
    if permission not in permissions:
        raise PermissionDenied(refusal_of(roles, permission))
    request.permissions = permissions  # type: ignore[attr-defined]


def refusal_of(roles: Sequence[Role], permission: Permission) -> str:
    if permission in permissions_of(*roles):
        return _("The token's scopes do not allow this.")
    return _("Your role here does not allow this; a manager can change it. {roles}").format(
        roles=" ".join(f"{role.label}: {role.summary}" for role in roles)
    )


def team_for(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW
) -> tuple[Team, frozenset[Permission]]:
    """The team of that slug and what one may do in it.

    404 for whoever is not in it, 403 where their role is too small.
    """
    team = get_object_or_404(Team.objects.of(person(request)), slug=slug)
    permissions = within_scopes(request, permissions_in_team(team, person(request)))
    if permission not in permissions:
        members = Membership.objects.filter(team=team, user=person(request).pk)
        raise PermissionDenied(refusal_of([Role(member.role) for member in members], permission))
    return team, permissions


def team_row_for(
    request: HttpRequest, rows: TeamRowQuerySet[RowOfTeam], permission: Permission, **lookup: object
) -> RowOfTeam:
    """404 for whoever may not see the row, 403 where their role is too small."""
    user = person(request)
    row = get_object_or_404(rows.visible_to(user).with_role_of(user), **lookup)
    role: str = row.user_role  # type: ignore[attr-defined]
    require_permission(request, [Role(role)], permission)
    return row


def page_permissions(request: HttpRequest) -> frozenset[Permission]:
    return cast("frozenset[Permission]", request.permissions)  # type: ignore[attr-defined]


def may(request: HttpRequest, permission: Permission) -> bool:
    return permission in page_permissions(request)


def may_of(request: HttpRequest) -> dict[str, bool]:
    return {permission.value: True for permission in page_permissions(request)}


def require_spending(request: HttpRequest) -> None:
    if not may(request, Permission.SPEND):
        raise PermissionDenied(_("Your role does not allow spending; a manager can change it."))
