"""Cycles and CreateHIT a second with one and with two web processes, and what each costs.

    python -m benchmarks.web_processes --database-url postgres://postgres@127.0.0.1/benchmark

A cycle is accept, page with its frame, and submit. Beside the rates, which share their cores with
the programs that measure: seconds of CPU of the web processes and of PostgreSQL, bytes of its log
(WAL), and bytes that its tables and indexes grow by; docs/scale.md counts with these.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from benchmarks.commands import parse_options, run_again, say, say_head, say_row, source
from benchmarks.marketplace_api import REQUESTERS, publish_at_once
from benchmarks.marketplace_site import (
    Site,
    cpu_seconds,
    describe_machine,
    enrol_requester,
    fresh_site,
    publish,
    sign_in_workers,
)
from benchmarks.marketplace_traffic import WARM_UP_SECONDS, work


@dataclass
class Cost:
    n: int = 0
    seconds: float = 0.0
    web_cpu_seconds: float = 0.0
    database_cpu_seconds: float = 0.0
    wal_bytes: int = 0
    stored_bytes: int = 0
    n_failures: int = 0

    def cells(self) -> list[str]:
        each = (
            *(1000 * self.web_cpu_seconds, 1000 * self.database_cpu_seconds),
            *(self.wal_bytes / 1024, self.stored_bytes / 1024),
        )
        rate, costs = f"{self.n / self.seconds:.1f}", [f"{value / self.n:.1f}" for value in each]
        return [rate, *costs, str(self.n_failures)]


def main() -> None:
    """A process for each number of processes, since each has a database of its own."""
    options = parse_options(
        __doc__,
        database_url=(str, "a PostgreSQL database to make"),
        workers=(50, "at once"),
        hits=(5_000, "in one group"),
        seconds=(20.0, "how long each part lasts"),
        processes=(int, "one case, printed as JSON"),
    )
    if options.processes:
        say(json.dumps(_measured(options)))
        return
    say(f"{describe_machine()}; commit {source()}\n")
    say_head(
        *("", "web processes", "a second", "ms of CPU, web", "ms of CPU, PostgreSQL"),
        *("KB of WAL", "KB stored", "failures"),
    )
    for processes in (1, 2):
        costs = run_again("benchmarks.web_processes", options, processes=processes)
        for name, values in costs.items():
            say_row(name, processes, *Cost(**values).cells())


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    database = urlsplit(options.database_url).path.lstrip("/")
    with fresh_site(options.database_url, processes=options.processes, threads=8) as site:
        keys = [enrol_requester(f"Lab {number}") for number in range(REQUESTERS)]
        group = publish(keys[0], hits=options.hits, max_assignments=1)
        sessions = sign_in_workers(options.workers)
        work(site, group, sessions, WARM_UP_SECONDS, 0.0)
        publish_at_once(site.requester_url, keys, WARM_UP_SECONDS)
        cycles, creations = Cost(seconds=options.seconds), Cost(seconds=options.seconds)
        with _counted(cycles, site, database):
            tally = work(site, group, sessions, options.seconds, 0.0)
            cycles.n, cycles.seconds = tally.cycles, tally.lasted
            cycles.n_failures = len(tally.failures)
        with _counted(creations, site, database):
            tally = publish_at_once(site.requester_url, keys, options.seconds)
            creations.n = tally.n_steps
            creations.n_failures = len(tally.failures)
    return {"cycle": asdict(cycles), "CreateHIT": asdict(creations)}


@contextmanager
def _counted(cost: Cost, site: Site, database: str) -> Iterator[None]:
    before = _counts(site, database)
    yield
    after = _counts(site, database)
    differences = [late - early for early, late in zip(before, after, strict=True)]
    cost.web_cpu_seconds, cost.database_cpu_seconds = differences[:2]
    cost.wal_bytes, cost.stored_bytes = map(int, differences[2:])


def _counts(site: Site, database: str) -> tuple[float, float, int, int]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_lsn() - '0/0', pg_database_size(current_database())")
        wal_bytes, stored_bytes = cursor.fetchone()
    web = cpu_seconds(f"--bind {site.host}:{site.port} ")
    return web, cpu_seconds(f" {database} "), int(wal_bytes), int(stored_bytes)


if __name__ == "__main__":
    main()
