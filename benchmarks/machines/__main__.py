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

from cryptography.fernet import Fernet

from benchmarks.faults.__main__ import LEASE_SECONDS, on_postgres
from benchmarks.faults.records import replace_section, source
from benchmarks.machines.processes import Machines, lay_out

HEADING = "Two of each"
SERVER = "postgres://postgres@127.0.0.1:5432"
NAMES = (
    *("Seconds", "Kills", "Hangs", "Launches", "Answers", "Payments"),
    *("Pages asked for again", "Calls tried again", "Wrong at the end"),
)


def main() -> int:
    """One trial, printed as JSON."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="assay_machines_") as folder:
        record = _trial(options, Path(folder))
    sys.stdout.write(json.dumps(record) + "\n")
    if options.write:
        _write_section(record)
    return 0 if record["is_good"] else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--requesters", type=int, default=8)
    parser.add_argument("--thinking", type=float, default=6.0, help="a worker's pauses, in seconds")
    parser.add_argument("--between", type=float, default=12.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", help="a server that is not killed")
    parser.add_argument("--write", action="store_true", help="the table in docs/faults.md")
    return parser.parse_args()


def _trial(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    with ExitStack() as stack:
        machines = lay_out(folder, with_postgres=options.postgres is None)
        own = machines.postgres
        server = f"postgres://postgres@127.0.0.1:{own.port}" if own else options.postgres or SERVER
        stack.callback(_end, machines, folder)
        for store in machines.stores:
            store.start()
        name = f"assay_machines_{secrets.token_hex(4)}"
        on_postgres(server, f"CREATE DATABASE {name}")
        if own is None:
            stack.callback(on_postgres, server, f"DROP DATABASE {name} WITH (FORCE)")
        os.environ |= _environment(machines, f"{server}/{name}")
        return _run(options, machines)


def _run(options: argparse.Namespace, machines: Machines) -> dict[str, Any]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from benchmarks.machines.trial import Load, make_requesters, run_trial

    call_command("migrate", verbosity=0)
    load = Load(
        seconds=options.seconds,
        n_workers=options.workers,
        n_requesters=options.requesters,
        thinking_seconds=options.thinking,
        seconds_between=options.between,
        seed=options.seed,
    )
    requesters = make_requesters(load, machines.site_url)
    for process in (*machines.webs, *machines.workers, machines.balancer):
        process.start()
    outcome = run_trial(machines, load, requesters)
    for each in requesters:
        each.close()
    connections.close_all()
    is_killed = machines.postgres is not None
    return outcome.record() | {"is_postgresql_killed": is_killed, "load": vars(load)}


def _environment(machines: Machines, database_url: str) -> dict[str, str]:
    redis = f"redis://127.0.0.1:{machines.redis.port}"
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": database_url,
        "REDIS_URL": f"{redis}/0",
        "CACHE_URL": f"{redis}/1",
        "SITE_URL": machines.site_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "MARKETPLACE_OPERATOR_SECRET": secrets.token_urlsafe(32),
        "MARKETPLACE_FEE_SCHEDULE": "mturk",
        "API_READS_PER_MINUTE": "0",
        "API_WRITES_PER_MINUTE": "0",
        "WORK_LEASE_SECONDS": LEASE_SECONDS,
        "WORK_RETRY_SECONDS": "0.5",
        "WORK_GRACE_SECONDS": "2",
    }


def _end(machines: Machines, folder: Path) -> None:
    for process in machines.all:
        process.end()
    if sys.exc_info()[0] is not None:
        for log in sorted(folder.glob("*.log")):
            sys.stderr.write(f"== {log.name}\n{log.read_text()[-3000:]}\n")


def _write_section(record: dict[str, Any]) -> None:
    """Write the table into the document, beside what other trials wrote there."""
    counts = [sum(record[name].values()) for name in ("page_retries", "api_retries")]
    kills, hangs = (_in_words(record[name]) for name in ("kills", "hangs"))
    cells = [record["seconds"], kills, hangs, record["n_launches"], record["n_answers"]]
    cells += [record["n_payments"], *counts, len(record["faults"])]
    load = record["load"]
    lines = [
        f"Made by `python -m benchmarks.machines --seconds {load['seconds']:g}` on "
        f"{datetime.now(UTC):%Y-%m-%d} from {source()}. Two web servers behind a balancer, two RQ "
        "workers, PostgreSQL and Redis are processes of their own on one machine; each is killed "
        "(SIGKILL) whole in turn and started again after two seconds, then hung (SIGSTOP) for "
        f"longer than a lease, and so on. Meanwhile {load['n_workers']} workers answer HITs and "
        f"{load['n_requesters']} programs launch, collect, approve, reject, pay in part and pay "
        "bonuses over the API. Redis keeps nothing on a disk. At the end each answer that a worker "
        "was thanked for is there as it was sent and is a submission, each payment was made once, "
        "and both ledgers agree to the cent.",
        "",
        "| " + " | ".join(NAMES) + " |",
        "|" + "---|" * len(NAMES),
        "| " + " | ".join(map(str, cells)) + " |",
    ]
    replace_section(HEADING, lines)


def _in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items()) or "none"


if __name__ == "__main__":
    sys.exit(main())
