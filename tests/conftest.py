import gc
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker

from config.pseudo_locale import install_pseudo_locale, remove_pseudo_locale
from tests.pictures import write_index

pytest_plugins = ["tests.browsers", "tests.emptied_tables", "tests.firefox"]

# A machine that is busy with the next process's tests is slow, which is no fault of the example.
hypothesis_settings.register_profile("no deadline", deadline=None)
hypothesis_settings.load_profile("no deadline")

CACHE_NUMBERS = count()
HAS_MODELS = find_spec("torch") is not None
# They import torch or the bundled encoder themselves. Other tests of models skip when they run.
TESTS_OF_MODELS = [
    "metrics/scorers/test_embedding.py",
    "simulation/test_checkpoints.py",
    "simulation/test_trained_recommenders.py",
]
collect_ignore = [] if HAS_MODELS else TESTS_OF_MODELS
PAGES = re.compile(
    r"tests/(accounts/|console/test_(?!openapi)|marketplace/|hits/test_worker_page|retrieval/pages/)"
)
DATABASE = {"db", "transactional_db", "live_server", "stored_for_module"}
SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    help = "Show translatable texts with accents in tests of pages."
    parser.addoption("--pseudo-locale", action="store_true", help=help)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        write_index()


def pytest_collection_finish() -> None:
    """Keep absl, which an oracle imports, from closing pytest's capture of the errors, and gather
    garbage less often.

    absl holds on to the stream there was at its import, and closes it when logging is set up anew.
    """
    if absl_logging := sys.modules.get("absl.logging"):
        absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__
    # What the modules hold stays to the end: to look through it again and again for garbage takes
    # a tenth of the tests' time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Let SQLite keep the tests' database in a file, as the site does.

    Django would keep it in memory and lend the test's own connection to a live server's
    threads; one that a browser holds open then outlives the loan, and fails the next test.
    On PostgreSQL the first fixture gives each of xdist's processes a database of its own.
    Nobody needs either after a power cut.
    """
    if connection.vendor == "sqlite":
        file = tmp_path_factory.mktemp("database") / "test.sqlite3"
        connection.settings_dict["TEST"]["NAME"] = str(file)
        connection.settings_dict["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
    else:
        connection.settings_dict["OPTIONS"]["options"] = "-c synchronous_commit=off"


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
    location = f"test-{next(CACHE_NUMBERS)}"
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": location,
        }
    }


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Hashing slowly is Django's to test; of what a module stores, too."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(scope="module")
def stored_for_module(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What a fixture of a module stores, its tests read, and is gone after them.

    What a test changes of it is undone with the test's own transaction.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _pages_in_pseudo_locale(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--pseudo-locale") and PAGES.match(request.node.nodeid):
        request.getfixturevalue("_pseudo_locale")


@pytest.fixture
def _pseudo_locale(settings: Any) -> Iterator[None]:
    install_pseudo_locale()
    yield
    if not settings.PSEUDO_LOCALE:
        remove_pseudo_locale()


@pytest.fixture
def shared_data() -> Path:
    """The research data beside the checkout; a test that needs it skips, and says so, without."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"research data is not at {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session", autouse=True)
def calls_one_by_one() -> Iterator[None]:
    """A marketplace in this very process is called in this thread, which has the database's
    transaction; what threads do is tested over the network (tests/hits/test_calls.py)."""
    with override_settings(MARKETPLACE_REQUESTS_AT_ONCE=1):
        yield


@contextmanager
def skipped_without_models() -> Iterator[None]:
    """Skip tests of models if the libraries that run them are not installed (`MODELS=0`)."""
    try:
        yield
    except Exception as error:
        # A test may have expected another error.
        causes = f"{error} {error.__context__}"
        if HAS_MODELS or "No module named" not in causes:
            raise
        pytest.skip(causes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    with skipped_without_models():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    with skipped_without_models():
        return (yield)


def uses_the_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    markers = map(item.get_closest_marker, ("django_db", "each_database"))
    return any(markers) or bool(DATABASE & fixtures)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests that do not use the database, and begin with the slow ones, so that no process is
    left with one at the end."""
    for item in items:
        if not uses_the_database(item):
            item.add_marker("once")
    yield
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
