"""Kill two web servers, two workers, PostgreSQL and Redis in turn while people work.

    python -m benchmarks.machines --seconds 120
    python -m benchmarks.machines --seconds 3600 --write       and its row in docs/faults.md

Each is a process with all that it starts, and is killed (SIGKILL) whole and started again two
seconds later; after the first round each is hung (SIGSTOP) for longer than a lease, too. A balancer
stands before the web servers. Redis keeps nothing on a disk, so that killed it has forgotten
everything. A trial is good when every answer that a worker was thanked for is there as it was sent,
collected and read, every payment made once, both ledgers agree, and nobody had to give up a page.

PostgreSQL is a cluster of its own in a temporary folder. Without an initdb, or with --postgres, a
database is made on a server that is there, which is not killed; the record says so.
"""

import argparse
import json
import os
import secrets
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.commands import parse_options, say, source
from benchmarks.faults.environment import FAST_JOBS, markdown_table, replace_section
from benchmarks.machines.processes import Machines, lay_out
from benchmarks.marketplace_site import create_database, environment_of, execute_on

HEADING = "Two of each"
SERVER = "postgres://postgres@127.0.0.1:5432"
NAMES = (
    *("Seconds", "Kills", "Hangs", "Launches", "Answers", "Payments"),
    *("Pages asked for again", "Calls tried again", "Wrong at the end"),
)


def main() -> int:
    options = parse_options(
        __doc__,
        seconds=(300.0, "of work"),
        workers=(200, "who answer"),
        requesters=(8, "programs over the API"),
        thinking=(6.0, "a worker's pauses, in seconds"),
        between=(12.0, "seconds between two kills"),
        seed=(1, "of answers and verdicts"),
        postgres=(str, "a server that is not killed"),
        write=(False, "the table in docs/faults.md"),
    )
    with tempfile.TemporaryDirectory(prefix="assay_machines_") as folder:
        record = _trial(options, Path(folder))
    say(json.dumps(record))
    if options.write:
        _write_section(record)
    return 0 if record["is_good"] else 1


def _trial(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    with ExitStack() as stack:
        machines = lay_out(folder, with_postgres=options.postgres is None)
        own = machines.postgres
        server = f"postgres://postgres@127.0.0.1:{own.port}" if own else options.postgres or SERVER
        stack.callback(_end, machines, folder)
        for store in machines.stores:
            store.start()
        name = f"assay_machines_{secrets.token_hex(4)}"
        if own:
            execute_on(f"{server}/postgres", "CREATE DATABASE {}", name)
        else:
            stack.enter_context(create_database(f"{server}/postgres", name))
        redis = f"redis://127.0.0.1:{machines.redis.port}"
        os.environ |= environment_of(f"{server}/{name}") | FAST_JOBS
        os.environ |= {
            "REDIS_URL": f"{redis}/0",
            "CACHE_URL": f"{redis}/1",
            "SITE_URL": machines.site_url,
            "MARKETPLACE_OPERATOR_SECRET": secrets.token_urlsafe(32),
            "MARKETPLACE_FEE_SCHEDULE": "mturk",
            "API_READS_PER_MINUTE": "0",
            "API_WRITES_PER_MINUTE": "0",
        }
        return _run(options, machines)


def _run(options: argparse.Namespace, machines: Machines) -> dict[str, Any]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from benchmarks.machines.trial import make_requesters, run_trial

    call_command("migrate", verbosity=0)
    requesters = make_requesters(options, machines.site_url)
    for process in (*machines.webs, *machines.workers, machines.balancer):
        process.start()
    outcome = run_trial(machines, options, requesters)
    for each in requesters:
        each.client.close()
    connections.close_all()
    facts = {"is_postgresql_killed": machines.postgres is not None, "load": vars(options)}
    return outcome.record() | facts


def _end(machines: Machines, folder: Path) -> None:
    for process in machines.all:
        process.end()
    if sys.exc_info()[0] is not None:
        for log in sorted(folder.glob("*.log")):
            sys.stderr.write(f"== {log.name}\n{log.read_text()[-3000:]}\n")


def _write_section(record: dict[str, Any]) -> None:
    counts = [sum(record[name].values()) for name in ("page_retries", "api_retries")]
    kills, hangs = (
        ", ".join(f"{each} {n}" for each, n in record[name].items()) or "none"
        for name in ("kills", "hangs")
    )
    cells = [record["seconds"], kills, hangs, record["n_launches"], record["n_answers"]]
    cells += [record["n_payments"], *counts, len(record["faults"])]
    load = record["load"]
    lines = [
        f"Made by `python -m benchmarks.machines --seconds {load['seconds']:g}` on "
        f"{datetime.now(UTC):%Y-%m-%d} from commit {source()}. Two web servers behind a balancer, "
        "two RQ workers, PostgreSQL and Redis are processes of their own on one machine; each is "
        "killed (SIGKILL) whole in turn and started again after two seconds, then hung (SIGSTOP) "
        f"for longer than a lease, and so on. Meanwhile {load['workers']} workers answer HITs and "
        f"{load['requesters']} programs launch, collect, approve, reject, pay in part and pay "
        "bonuses over the API. Redis keeps nothing on a disk. At the end each answer that a worker "
        "was thanked for is there as it was sent and is a submission, each payment was made once, "
        "and both ledgers agree to the cent.",
        "",
        *markdown_table(NAMES, [cells]),
    ]
    replace_section(HEADING, lines)


if __name__ == "__main__":
    sys.exit(main())
