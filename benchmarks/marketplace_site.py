"""A marketplace of its own for a benchmark to run against: a fresh database, and the
servers that ``manage.py serve`` starts, on a free port of this machine. Both go at the end."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit, urlunsplit

import django
import psycopg
import psycopg.sql
from cryptography.fernet import Fernet

from benchmarks.commands import CHECKOUT, free_port, is_listening, parse_options

START_WITHIN_SECONDS = 120


@dataclass(frozen=True)
class Site:
    host: str
    port: int
    errors: Path

    @property
    def requester_url(self) -> str:
        return f"http://{self.host}:{self.port}/requester"

    def faults(self) -> list[str]:
        words = ("Error", "locked", "deadlock", "Traceback")
        return [
            line for line in self.errors.read_text().splitlines() if any(w in line for w in words)
        ]


@contextlib.contextmanager
def fresh_site(database_url: str | None, *, processes: int, threads: int) -> Iterator[Site]:
    """Servers on a new database: an SQLite file, or the PostgreSQL database of this URL,
    which must not exist yet. Django is set up in this process too, to put things in."""
    with (
        fresh_database(database_url) as folder,
        servers(folder, processes=processes, threads=threads) as site,
    ):
        yield site


@contextlib.contextmanager
def fresh_database(database_url: str | None) -> Iterator[Path]:
    """Yield a temporary folder; Django is set up on a new, migrated database."""
    with tempfile.TemporaryDirectory() as folder, new_database(database_url, folder) as url:
        os.environ |= environment_of(url)
        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield Path(folder)
        _disconnect()


def describe_machine() -> str:
    cores = os.cpu_count()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{cores} cores, Python {sys.version.split()[0]}, load average {load} at the start"


def environment_of(database_url: str) -> dict[str, str]:
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
def new_database(database_url: str | None, folder: str) -> Iterator[str]:
    if database_url is None:
        yield f"sqlite:///{folder}/benchmark.sqlite3"
        return
    parts = urlsplit(database_url)
    with create_database(urlunsplit(parts._replace(path="/postgres")), parts.path.lstrip("/")):
        yield database_url


@contextlib.contextmanager
def create_database(server: str, name: str, *, template: str = "template1") -> Iterator[None]:
    execute_on(server, "CREATE DATABASE {} TEMPLATE {}", name, template)
    try:
        yield
    finally:
        execute_on(server, "DROP DATABASE {} WITH (FORCE)", name)


def execute_on(server: str, statement: LiteralString, *names: str) -> None:
    words = [psycopg.sql.Identifier(each) for each in names]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL(statement).format(*words))


def _disconnect() -> None:
    from django.db import connections

    connections.close_all()


@contextlib.contextmanager
def servers(
    folder: Path, *, processes: int, threads: int, environment: Mapping[str, str] | None = None
) -> Iterator[Site]:
    from work.site import site_command

    site = Site("127.0.0.1", free_port(), folder / "errors.log")
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


def _wait_for_answer(site: Site, server: subprocess.Popen[bytes]) -> None:
    patience = time.monotonic() + START_WITHIN_SECONDS
    while time.monotonic() < patience and server.poll() is None:
        if is_listening(site.port):
            return
        time.sleep(0.1)
    raise RuntimeError(f"The servers did not start:\n{site.errors.read_text()}")


PAGE = "<p>Read the dialogue, then rate how well the response continues it.</p>\n" * 100
QUESTION = f"""<HTMLQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd">
<HTMLContent><![CDATA[<!doctype html><title>Rate a response</title>{PAGE}
<form method="post" action="/mturk/externalSubmit"><input name="assignmentId" type="hidden">
<input name="rating" type="number" min="1" max="5"><button>Submit</button></form>]]></HTMLContent>
<FrameHeight>450</FrameHeight></HTMLQuestion>"""
HITS_PER_TRANSACTION = 500


@dataclass(frozen=True)
class Keys:
    access_key_id: str
    secret_access_key: str


def enrol_requester(name: str = "Benchmark lab") -> Keys:
    from marketplace.people.enrolment import issue_access_key

    key = issue_access_key(name=name, deposit_usd=Decimal(1_000_000))
    return Keys(key.access_key_id, key.secret_access_key)


def publish(keys: Keys, *, hits: int, max_assignments: int) -> str:
    from django.db import transaction

    from marketplace.hits.creation import (
        HitTypeValues,
        HitValues,
        create_hit_type,
        create_hit_with_hit_type,
    )
    from marketplace.models import Requester

    requester = Requester.objects.get(access_keys__access_key_id=keys.access_key_id)
    type_values = HitTypeValues("Rate a response", "One rating.", "", Decimal("0.05"), 3600, 86_400)
    hit_type = create_hit_type(requester=requester, values=type_values)
    values = HitValues(QUESTION, max_assignments, 86_400, "", None)
    for first in range(0, hits, HITS_PER_TRANSACTION):
        with transaction.atomic():
            for _ in range(first, min(first + HITS_PER_TRANSACTION, hits)):
                create_hit_with_hit_type(requester=requester, hit_type=hit_type, values=values)
    return f"/worker/groups/{hit_type.public_id}/"


def sign_in_workers(count: int) -> list[str]:
    from django.test import Client

    from accounts.models import User
    from marketplace.people.enrolment import open_worker_account

    keys = []
    for number in range(count):
        user = User.objects.create(username=f"worker{number}", password="!")
        open_worker_account(user=user)
        browser = Client()
        browser.force_login(user)
        keys.append(browser.cookies["sessionid"].value)
    return keys


def hand_in(count: int) -> str:
    from accounts.models import User
    from marketplace.hits.assignments import accept_hit, submit_assignment
    from marketplace.models import Hit
    from marketplace.people.enrolment import open_worker_account

    hit = Hit.objects.get()
    for number in range(count):
        worker = open_worker_account(user=User.objects.create(username=f"rater{number}"))
        assignment = accept_hit(worker=worker, hit=hit)
        submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])
    return hit.public_id


@dataclass(frozen=True)
class Marketplace:
    site: Site
    environment: Mapping[str, str]
    database: str

    def cpu_seconds(self) -> tuple[float, float]:
        """Of its web servers, and of PostgreSQL for both sites."""
        return cpu_seconds(f"--bind {self.site.host}:{self.site.port} "), cpu_seconds(
            f" {self.database}"
        )

    def run(self, *words: str) -> str:
        """Run a Python program on the marketplace's database; return what it prints."""
        command, env = [sys.executable, *words], os.environ | self.environment
        return subprocess.check_output(command, cwd=CHECKOUT, env=env, text=True)


@contextlib.contextmanager
def requester_and_marketplace(
    server: str, *, processes: int, threads: int, deposit_usd: int
) -> Iterator[Marketplace]:
    """Both sites on fresh databases; Django is set up in this process for the requester's, whose
    own connection has the money."""
    name = f"assay_benchmark_{secrets.token_hex(4)}"
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(fresh_database(f"{server}/{name}"))
        _disconnect()
        stack.enter_context(
            create_database(f"{server}/postgres", f"{name}_marketplace", template=name)
        )
        env = environment_of(f"{server}/{name}_marketplace")
        site = stack.enter_context(
            servers(folder, processes=processes, threads=threads, environment=env)
        )
        marketplace = Marketplace(site, env, name)
        _connect(marketplace, deposit_usd)
        yield marketplace


def cpu_seconds(words: str) -> float:
    """Of the processes whose command line has these words."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if words in (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode():
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _connect(marketplace: Marketplace, deposit_usd: int) -> None:
    from django.conf import settings

    command = ("manage.py", "create_requester", "Benchmark lab", f"--deposit={deposit_usd}")
    key = json.loads(marketplace.run(*command, "--json"))
    settings.MARKETPLACE_ENDPOINT_URL = marketplace.site.requester_url
    settings.MARKETPLACE_ACCESS_KEY_ID = key["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = key["secret_access_key"]


def answer_hits(share: float) -> None:
    from accounts.models import User
    from marketplace.hits.assignments import accept_hit, submit_assignment
    from marketplace.models import Hit
    from marketplace.people.enrolment import open_worker_account

    user, is_new = User.objects.get_or_create(username="rater")
    worker = open_worker_account(user=user) if is_new else user.worker_account
    hits = Hit.objects.filter(status=Hit.Status.ASSIGNABLE).order_by("pk")
    for hit in hits[: round(share * hits.count())]:
        assignment = accept_hit(worker=worker, hit=hit)
        fields = [("answer", [json.dumps(_answer(hit.question))])]
        submit_assignment(public_id=assignment.public_id, fields=fields)


def _answer(question: str) -> dict[str, Any]:
    """What the page of an Assay study posts: the lowest value for everything."""
    from hits.crowd.replay import Page
    from marketplace.documents.questions import parse_question

    task = json.loads(Page(parse_question(question, allow_http=True).content).task or "{}")
    judgments = [
        {"candidate": key, "question": each["name"], "value": each["min"], "seconds": 2.5}
        for key in task["candidates"]
        for each in task["questions"]
    ]
    return {
        "version": task["version"],
        "item": task["item"],
        "order": task["candidates"],
        "judgments": judgments,
        "justification": "",
        "comment": "",
        "active_seconds": 10,
        "pasted": False,
    }


def main() -> None:
    """Let simulated workers answer HITs that can still be taken, as each HIT's page asks."""
    options = parse_options(main.__doc__, share=(1.0, "of the HITs that are open"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    answer_hits(options.share)


if __name__ == "__main__":
    main()
