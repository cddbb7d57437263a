"""The record of who did what, for operators. Rows are added here and never changed.

An action is named noun.verb (`key.revoke`, `requester.deposit`); the subject is the id of
what it was done to. No secrets and no answers go in.
"""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from marketplace import clock
from marketplace.models import AuditEntry, Requester
from marketplace.users import User


def note(
    action: str,
    *,
    subject: str = "",
    user: AbstractBaseUser | AnonymousUser | None = None,
    requester: Requester | None = None,
    detail: dict[str, Any] | None = None,
) -> AuditEntry:
    """Record an action; call it in the action's transaction."""
    return AuditEntry.objects.create(
        created_at=clock.now(),
        user=user if isinstance(user, User) else None,
        requester=requester,
        action=action,
        subject=subject[:200],
        detail=detail or {},
    )
