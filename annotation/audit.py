"""What is done in a study, in the audit log of the team that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from accounts.audit import record
from accounts.models import User

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

    from annotation.models import Study


def record_in(
    study: Study, *, actor: AbstractBaseUser | None, action: str, details: dict[str, Any]
) -> None:
    """Append an entry to the team's log; a study of nobody but its owner has none."""
    if study.team is not None:
        record(
            team=study.team,
            actor=cast("User | None", actor),
            action=action,
            subject=study.slug,
            details=details,
        )
