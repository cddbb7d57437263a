import gzip
import secrets
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection

from tests.processes import run_python

DUMPS = Path(__file__).parent / "dumps"


@contextmanager
def restored(dump, folder):
    if connection.vendor == "sqlite":
        yield sqlite_database(dump, folder)
    else:
        script = gzip.decompress(dump.read_bytes()).decode()
        with postgres_database() as url:
            with psycopg.connect(url, autocommit=True) as database:
                database.execute(script)
            yield url


def sqlite_database(dump, folder):
    file = folder / "restored.sqlite3"
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(gzip.decompress(dump.read_bytes()).decode())
    return f"sqlite:///{file}"


@contextmanager
def empty_database(folder):
    """A database without tables, of the kind that the tests run on, as DATABASE_URL names it."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{folder / 'empty.sqlite3'}"
    else:
        with postgres_database() as url:
            yield url


@contextmanager
def postgres_database():
    server = settings.DATABASES["default"]
    name = f"upgrade_{secrets.token_hex(4)}"
    host = f"{server['HOST'] or '127.0.0.1'}:{server['PORT'] or 5432}"
    account = server["USER"] + (f":{server['PASSWORD']}" if server["PASSWORD"] else "")
    address = f"postgres://{account}@{host}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as maintenance:
        maintenance.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"{address}/{name}"
        finally:
            maintenance.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def manage(database_url, *arguments):
    finished = run_python("manage.py", *arguments, DATABASE_URL=database_url, DEBUG="true")
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
