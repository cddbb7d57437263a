"""How the site connects to PostgreSQL, directly or by way of a pooler, and how long it waits."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured


def postgres_settings(*, is_pooled: bool, statement_seconds: float) -> dict[str, Any]:
    """What Django's settings of the database have beside its address.

    A pooler gives each transaction another connection, so that no cursor may outlive one, and it
    takes no options of a session.
    """
    if is_pooled and statement_seconds:
        raise ImproperlyConfigured(
            "DATABASE_STATEMENT_SECONDS cannot be set by way of a pooler (DATABASE_POOLER); set it "
            "in the database: ALTER ROLE assay SET statement_timeout = '30s'."
        )
    settings: dict[str, Any] = {
        "CONN_HEALTH_CHECKS": True,
        # The pooler keeps connections; this side gives each back after its request.
        "CONN_MAX_AGE": 0 if is_pooled else 60,
        "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
    }
    if statement_seconds:
        milliseconds = round(1000 * statement_seconds)
        settings["OPTIONS"] = {"options": f"-c statement_timeout={milliseconds}"}
    return settings
