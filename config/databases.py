"""How the site connects to SQLite, or to PostgreSQL directly or by way of a pooler, and how long it
waits."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

POOL_WAIT_SECONDS = 10
# Of a statement's time: one that only waited for others is told from one that is too slow.
LOCK_SHARE = 0.8
# A background worker has one for its job, and one for the heartbeat beside it.
SMALLEST_POOL = 2


def sqlite_settings() -> dict[str, Any]:
    """What Django's settings of the database have beside its file."""
    return {
        # Readers never wait for the writer, and a writer waits its turn instead of failing.
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 60,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        "CONN_MAX_AGE": 60,
    }


def postgres_settings(
    *, is_pooled: bool, statement_seconds: float, pool_size: int = 0
) -> dict[str, Any]:
    """What Django's settings of the database have beside its address.

    A pooler gives each transaction another connection, so that no cursor may outlive one, and it
    takes no options of a session. A pool of this process's own has so many connections for all
    of its threads; each has one for the time of a request.
    """
    if pool_size and is_pooled:
        raise ImproperlyConfigured(
            "DATABASE_POOL_SIZE is a pool in each process, and DATABASE_POOLER one outside of all; "
            "set one of them."
        )
    if 0 < pool_size < SMALLEST_POOL:
        raise ImproperlyConfigured(
            f"DATABASE_POOL_SIZE is {pool_size}; it must be {SMALLEST_POOL} or more, or 0 for none."
        )
    if is_pooled and statement_seconds:
        raise ImproperlyConfigured(
            "DATABASE_STATEMENT_SECONDS cannot be set by way of a pooler (DATABASE_POOLER); set it "
            "in the database: ALTER ROLE assay SET statement_timeout = '30s'."
        )
    options: dict[str, Any] = {}
    if statement_seconds:
        milliseconds = round(1000 * statement_seconds)
        lock_milliseconds = round(LOCK_SHARE * milliseconds)
        limits = {"statement_timeout": milliseconds, "lock_timeout": lock_milliseconds}
        options["options"] = " ".join(f"-c {name}={limit}" for name, limit in limits.items())
    if pool_size:
        options["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": POOL_WAIT_SECONDS}
    return {
        "CONN_HEALTH_CHECKS": True,
        # The pool keeps connections; this side gives each back after its request.
        "CONN_MAX_AGE": 0 if is_pooled or pool_size else 60,
        "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
        "OPTIONS": options,
    }
