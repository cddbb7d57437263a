"""A marketplace of its own for a benchmark to run against: a fresh database, and the
servers that ``manage.py serve`` starts, on a free port of this machine. Both go at the end."""

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import django
import psycopg
import psycopg.sql
from cryptography.fernet import Fernet

CHECKOUT = Path(__file__).resolve().parent.parent
START_WITHIN_SECONDS = 120


@dataclass(frozen=True)
class Site:
    """Where the servers listen."""

    host: str
    port: int
    errors: Path

    @property
    def requester_url(self) -> str:
        """What boto3 calls the endpoint."""
        return f"http://{self.host}:{self.port}/requester"

    def faults(self) -> list[str]:
        """What the servers complained of: errors, and words of a busy or locked database."""
        words = ("Error", "locked", "deadlock", "Traceback")
        return [
            line for line in self.errors.read_text().splitlines() if any(w in line for w in words)
        ]


@contextlib.contextmanager
def fresh_site(database_url: str | None, *, processes: int, threads: int) -> Iterator[Site]:
    """Servers on a new database: an SQLite file, or the PostgreSQL database of this URL,
    which must not exist yet. Django is set up in this process too, to put things in."""
    with tempfile.TemporaryDirectory() as folder, _fresh_database(database_url, folder) as url:
        os.environ |= environment_of(url)
        django.setup()
        _migrate()
        with servers(Path(folder), processes=processes, threads=threads) as site:
            yield site
        _disconnect()


@contextlib.contextmanager
def fresh_database(database_url: str | None) -> Iterator[None]:
    """A new database, as of `fresh_site`, for this process alone."""
    with tempfile.TemporaryDirectory() as folder, _fresh_database(database_url, folder) as url:
        os.environ |= environment_of(url)
        django.setup()
        _migrate()
        yield
        _disconnect()


def describe_machine() -> str:
    """What the figures were measured on."""
    cores = os.cpu_count()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{cores} cores, Python {sys.version.split()[0]}, load average {load} at the start"


def environment_of(database_url: str) -> dict[str, str]:
    """What a site's processes need to know."""
    return {
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "SITE_URL": "http://127.0.0.1:8000",
        "ALLOWED_HOSTS": "127.0.0.1",
        "DEBUG": "False",
        "HTTPS": "False",
    }


@contextlib.contextmanager
def _fresh_database(database_url: str | None, folder: str) -> Iterator[str]:
    if database_url is None:
        yield f"sqlite:///{folder}/benchmark.sqlite3"
        return
    parts = urlsplit(database_url)
    name = psycopg.sql.Identifier(parts.path.lstrip("/"))
    server = urlunsplit(parts._replace(path="/postgres"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield database_url
        finally:
            connection.execute(psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def _migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _disconnect() -> None:
    from django.db import connections

    connections.close_all()


@contextlib.contextmanager
def servers(
    folder: Path, *, processes: int, threads: int, environment: Mapping[str, str] | None = None
) -> Iterator[Site]:
    """The web servers of a site, of this process's or of another environment."""
    from work.site import site_command

    site = Site("127.0.0.1", _free_port(), folder / "errors.log")
    command = site_command(f"{site.host}:{site.port}", processes=processes, threads=threads)
    with site.errors.open("w") as errors:
        env = os.environ | (environment or {})
        server = subprocess.Popen(command, cwd=CHECKOUT, env=env, stdout=errors, stderr=errors)
        try:
            _wait_for_answer(site, server)
            yield site
        finally:
            server.terminate()
            server.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for_answer(site: Site, server: subprocess.Popen[bytes]) -> None:
    patience = time.monotonic() + START_WITHIN_SECONDS
    while time.monotonic() < patience and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((site.host, site.port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"The servers did not start:\n{site.errors.read_text()}")
