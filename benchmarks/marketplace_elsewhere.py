"""A marketplace in processes and on a PostgreSQL database of its own, and a requester's site in
this process on another: they share nothing but HTTP, as two sites of two owners do."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django
import psycopg
import psycopg.sql

from benchmarks.marketplace_site import CHECKOUT, Site, environment_of, servers


@dataclass(frozen=True)
class Marketplace:
    """Where it listens, and how other programs on its machine see it."""

    site: Site
    environment: Mapping[str, str]
    database: str

    def cpu_seconds(self) -> tuple[float, float]:
        """Of its web servers, and of PostgreSQL for both sites."""
        own = f"--bind {self.site.host}:{self.site.port} "
        return cpu_seconds(own), cpu_seconds(f" {self.database}")

    def run(self, *words: str) -> str:
        """What a program prints that runs beside the marketplace, on its database."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=CHECKOUT,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout


@contextlib.contextmanager
def requester_and_marketplace(
    server: str, *, processes: int, threads: int, deposit_usd: int
) -> Iterator[Marketplace]:
    """Both sites on fresh databases; Django is set up in this process for the requester's, whose
    own connection has the money."""
    name = f"assay_benchmark_{secrets.token_hex(4)}"
    own, other = f"{server}/{name}", f"{server}/{name}_marketplace"
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.enter_context(_database(server, name))
        os.environ |= environment_of(own)
        django.setup()
        _migrate()
        stack.enter_context(_database(server, f"{name}_marketplace", template=name))
        env = environment_of(other)
        site = stack.enter_context(
            servers(Path(folder), processes=processes, threads=threads, environment=env)
        )
        marketplace = Marketplace(site, env, name)
        _connect(marketplace, deposit_usd)
        yield marketplace
        _disconnect()


def cpu_seconds(words: str) -> float:
    """Of the processes whose command line has these words."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if words in command:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _connect(marketplace: Marketplace, deposit_usd: int) -> None:
    from django.conf import settings

    printed = marketplace.run(
        "manage.py", "create_requester", "Benchmark lab", f"--deposit={deposit_usd}", "--json"
    )
    key: dict[str, Any] = json.loads(printed)
    settings.MARKETPLACE_ENDPOINT_URL = marketplace.site.requester_url
    settings.MARKETPLACE_ACCESS_KEY_ID = key["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = key["secret_access_key"]


@contextlib.contextmanager
def _database(server: str, name: str, *, template: str = "template1") -> Iterator[None]:
    words = [psycopg.sql.Identifier(each) for each in (name, template)]
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*words))
        try:
            yield
        finally:
            drop = psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)")
            connection.execute(drop.format(words[0]))


def _migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    _disconnect()


def _disconnect() -> None:
    from django.db import connections

    connections.close_all()
