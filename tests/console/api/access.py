"""Who may what at addresses of the API that are about one thing of a team, tried one by one."""

from collections.abc import Callable, Iterable, Mapping

from django.test import Client

from accounts.models import User
from accounts.roles import PERMISSIONS, SCOPES, Permission, Role, Scope
from tests.console.api.conftest import program_of
from tests.console.test_role_matrix import browser

Addresses = Callable[[], Iterable[tuple[str, str, Permission]]]
"""Each with a method and the permission that it takes."""
Status = Callable[[Client, str, str], int]
"""Of a client's request by a method."""


def assert_roles_may(users: Mapping[str, User], addresses: Addresses, status_of: Status) -> None:
    """In a browser and by a token, each role may what it is permitted; one that is blind sees none
    of it."""
    for role in Role:
        permissions = PERMISSIONS[role]
        for client in (browser(users[role.value]), program_of(users[role.value], *Scope)):
            for where, method, permission in addresses():
                status = status_of(client, where, method)
                if Permission.VIEW_SYSTEMS not in permissions:
                    assert status == 404, (role, where)
                else:
                    allowed = permission in permissions
                    assert (status in (200, 202)) == allowed, (role, where, status)
                    assert allowed or status == 403, (role, where, status)


def assert_scopes_may(users: Mapping[str, User], addresses: Addresses, status_of: Status) -> None:
    """Tokens may what their scope says; another team's see nothing, and nobody is asked to sign
    in."""
    for scope in Scope:
        allowed = SCOPES[scope] | SCOPES[Scope.READ]
        client = program_of(users["owner"], scope)
        for where, method, permission in addresses():
            status = status_of(client, where, method)
            assert (status in (200, 202)) == (permission in allowed), (scope, where, status)
    for where, method, _permission in addresses():
        assert status_of(program_of(users["other_team"], *Scope), where, method) == 404
        assert status_of(browser(None), where, method) == 401
