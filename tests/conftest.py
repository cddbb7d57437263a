"""Fixtures every room may use."""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

pytest_plugins = ["tests.browsers"]

CACHE_NUMBERS = count()
SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def pytest_collection_finish() -> None:
    """Keep absl, which an oracle imports, from closing pytest's capture of the errors.

    It holds on to the stream there was at its import, and closes it when logging is set up anew.
    """
    if absl_logging := sys.modules.get("absl.logging"):
        absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Let SQLite keep the tests' database in a file, as the site does.

    Django would keep it in memory and lend the test's own connection to a live server's
    threads; one that a browser holds open then outlives the loan, and fails the next test.
    On PostgreSQL the first fixture gives each of xdist's processes a database of its own.
    """
    if connection.vendor == "sqlite":
        file = tmp_path_factory.mktemp("database") / "test.sqlite3"
        connection.settings_dict["TEST"]["NAME"] = str(file)
        # Nobody needs this file after a power cut.
        connection.settings_dict["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let PostgreSQL drop the tests' database though a live server's thread is still in it.

    Such a thread ends when its client, a browser perhaps, lets go of the connection.
    """
    yield
    if connection.vendor == "postgresql":
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture(autouse=True)
def private_cache(settings: Any) -> None:
    """Let each test count for itself: a new cache in memory, which needs no database."""
    location = f"test-{next(CACHE_NUMBERS)}"
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": location,
        }
    }


@pytest.fixture
def shared_data() -> Path:
    """The research data beside the checkout; a test that needs it skips, and says so, without."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"research data is not at {SHARED_DATA}")
    return SHARED_DATA
