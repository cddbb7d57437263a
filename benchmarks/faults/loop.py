"""Run the whole loop of a study while processes are killed and the marketplace's answers fail.

    python -m benchmarks.faults.loop                       many seeds, the table in docs/faults.md
    python -m benchmarks.faults.loop --database sqlite --hits 40 --seed 3

A trial is good when each planned HIT is there once, each answer stored once, each intended payment
made exactly once, both ledgers agree to the cent and balance, the audit log holds, no job waits.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from benchmarks.faults.__main__ import LEASE_SECONDS, free_port, on_postgres
from benchmarks.faults.records import replace_section, source

HEADING = "The whole loop"
COLUMNS = (
    *("database", "seed", "n_hits", "n_answers", "n_payments", "n_kills", "n_line_faults"),
    *("n_presses_again", "n_double_messages", "n_faults", "seconds"),
)
NAMES = (
    *("Database", "Seed", "HITs", "Answers", "Payments", "Kills", "Calls lost, doubled or cut"),
    *("Buttons pressed again", "Messages twice", "Wrong at the end", "Seconds"),
)


def main() -> int:
    """One trial, or many of them and their table."""
    options = _options()
    # So that a trial that is ended takes its site along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended."))
    if options.seed is not None:
        record = _one(options)
        sys.stdout.write(json.dumps(record) + "\n")
        return 0 if record["is_good"] else 1
    databases = [options.database] if options.database else ["sqlite", "postgresql"]
    records = []
    for database in databases:
        for seed in range(1, options.seeds + 1):
            records.append(_in_a_process(options, database, seed))
            sys.stderr.write(json.dumps(records[-1]) + "\n")
    write_section(records)
    return 0 if all(record["is_good"] for record in records) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--database", choices=["sqlite", "postgresql"])
    parser.add_argument("--hits", type=int, default=500)
    parser.add_argument("--seed", type=int, help="one trial, printed as JSON")
    parser.add_argument("--seeds", type=int, default=5, help="so many trials for each database")
    parser.add_argument("--postgres", default="postgres://postgres@127.0.0.1:5432")
    return parser.parse_args()


def _in_a_process(options: argparse.Namespace, database: str, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.faults.loop", "--database", database]
    command += ["--seed", str(seed), "--hits", str(options.hits), "--postgres", options.postgres]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    record: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return record


def _one(options: argparse.Namespace) -> dict[str, Any]:
    database, name = options.database or "sqlite", f"assay_loop_{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix=name) as folder:
        url, port = f"sqlite:///{folder}/loop.sqlite3", free_port()
        if database == "postgresql":
            url = f"{options.postgres}/{name}"
            on_postgres(options.postgres, f"CREATE DATABASE {name}")
        os.environ |= _environment(url, port)
        try:
            return {"database": database} | _trial(options, port, Path(folder) / "site.log")
        finally:
            if database == "postgresql":
                on_postgres(options.postgres, f"DROP DATABASE {name} WITH (FORCE)")


def _environment(url: str, port: int) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": url,
        "SITE_URL": f"http://127.0.0.1:{port}",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "MARKETPLACE_FEE_SCHEDULE": "mturk",
        "WORK_LEASE_SECONDS": LEASE_SECONDS,
        "WORK_RETRY_SECONDS": "0.5",
        "WORK_GRACE_SECONDS": "2",
    }


def _trial(options: argparse.Namespace, port: int, log: Path) -> dict[str, Any]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from benchmarks.faults.loop_trial import run_loop_trial

    call_command("migrate", verbosity=0)
    outcome = run_loop_trial(n_hits=options.hits, seed=options.seed, port=port, log=log)
    connections.close_all()
    if not outcome.is_good:
        sys.stderr.write(log.read_text()[-8000:])
    return outcome.record()


def write_section(records: list[dict[str, Any]]) -> None:
    """Write the table into the document, beside what other trials wrote there."""
    lines = [
        f"Made by `python -m benchmarks.faults.loop` on {datetime.now(UTC):%Y-%m-%d} from "
        f"{source()}. HITs are published, given a second assignment, answered by four simulated "
        "workers, collected, approved, rejected, paid in part, paid bonuses, overridden and closed "
        "by two people who press every button twice at the same moment. Meanwhile web and queue "
        "workers are killed (SIGKILL) every few seconds, and one call to the marketplace in six is "
        "lost, done and not answered, done twice, cut short or refused. A button is pressed again "
        "where its job failed. Messages know no token in the Requester API, and may come twice.",
        "",
        "| " + " | ".join(NAMES) + " |",
        "|" + "---|" * len(NAMES),
    ]
    for record in records:
        counts = {
            "n_kills": sum(record["kills"].values()),
            "n_line_faults": sum(record["line_faults"].values()),
            "n_faults": len(record["faults"]),
        }
        cells = [str((record | counts)[name]) for name in COLUMNS]
        lines.append("| " + " | ".join(cells) + " |")
    replace_section(HEADING, lines)


if __name__ == "__main__":
    sys.exit(main())
