"""A new site's tables are made at once, and are those that its migrations lead to."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from config.new_database import is_empty
from tests.processes import run_python

WAYS = ("whole", "stepwise")


@pytest.fixture
def databases(tmp_path) -> Iterator[dict[str, str]]:
    """An empty database for each way, of the kind that the tests run on."""
    if connection.vendor == "sqlite":
        yield {way: f"sqlite:///{tmp_path / way}.sqlite3" for way in WAYS}
        return
    server = urlsplit(os.environ["DATABASE_URL"])
    names = {way: f"assay_new_{way}_{os.getpid()}" for way in WAYS}
    with psycopg.connect(server.geturl(), autocommit=True) as postgres:
        for name in names.values():
            postgres.execute(f"CREATE DATABASE {name}")
        try:
            yield {way: server._replace(path=f"/{name}").geturl() for way, name in names.items()}
        finally:
            for name in names.values():
                postgres.execute(f"DROP DATABASE {name}")


def schema_of(way: str, url: str) -> dict[str, object]:
    done = run_python("-m", "tests.config.schema_of", way, DATABASE_URL=url)
    record: dict[str, object] = json.loads(done.stdout)
    return record


@pytest.mark.slow
def test_tables_that_are_made_at_once_are_those_of_all_migrations(databases):
    with ThreadPoolExecutor() as both:
        whole, stepwise = both.map(lambda way: schema_of(way, databases[way]), WAYS)
    assert whole == stepwise


@pytest.mark.django_db
def test_a_database_with_tables_is_migrated_as_ever():
    assert not is_empty(connection)
    call_command("migrate", verbosity=0)
    call_command("migrate", check_unapplied=True)
