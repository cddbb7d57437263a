"""What tests over the network leave behind is deleted where there is something.

Django truncates every table after each such test, which takes PostgreSQL seconds, and waits for
locks with whatever a browser that has just gone still asks for.
"""

import time

import pytest
from django.db import connection, transaction
from django.test import TransactionTestCase

# What migrations wrote: no test changes it.
KEPT = {"django_migrations", "django_content_type", "auth_permission"}
PATIENCE_SECONDS = 10
BUSY = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend' AND state <> 'idle'
"""


@pytest.fixture(scope="session", autouse=True)
def quick_flush():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", delete_all_rows)
        yield


def delete_all_rows(_):
    wait_for_requests()
    with transaction.atomic(), connection.cursor() as cursor:
        for table in filled_tables() - KEPT:
            # Foreign keys are looked at in the end, when the other table is empty too.
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


def filled_tables():
    with connection.cursor() as cursor:
        tables = connection.introspection.django_table_names(only_existing=True)
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {connection.ops.quote_name(table)})"
                for table in tables
            )
        )
        return {table for (table,) in cursor.fetchall()}


def wait_for_requests():
    """Wait until a live server's threads have answered: their page may be closed already."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while connection.vendor == "postgresql" and time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(BUSY)
            if cursor.fetchone() == (0,):
                return
        time.sleep(0.02)
