"""Kill web, worker and supervisor processes at random while jobs of each queue run.

    python -m benchmarks.faults                        the table of docs/faults.md, 200 kills each
    python -m benchmarks.faults --database sqlite --queue rq --kills 20 --json

Databases: sqlite, and postgresql at --postgres (a database of its own is made and dropped).
Queues: database, and rq at --redis. A trial is good when every job was done once or failed with
a reason, no job was run by two processes at once, and no process was left over.
"""

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.faults.records import DOCUMENT, source

LEASE_SECONDS = "4"


def main() -> int:
    options = _options()
    if options.database and options.queue:
        record = _one(options)
        sys.stdout.write(json.dumps(record) + "\n")
        return 0 if record["is_good"] else 1
    records = []
    for database in ("sqlite", "postgresql"):
        for queue in ("database", "rq"):
            records.append(_in_a_process(options, database, queue))
            sys.stderr.write(json.dumps(records[-1]) + "\n")
    # What other trials wrote after the first part stays.
    rest = DOCUMENT.read_text().partition("\n## ")
    DOCUMENT.write_text(_document(records) + "".join(rest[1:]))
    return 0 if all(record["is_good"] for record in records) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--database", choices=["sqlite", "postgresql"])
    parser.add_argument("--queue", choices=["database", "rq"])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", default="postgres://postgres@127.0.0.1:5432")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379/9")
    parser.add_argument("--json", action="store_true", help="(always, of one trial)")
    return parser.parse_args()


def _in_a_process(options: argparse.Namespace, database: str, queue: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.faults", "--database", database]
    command += ["--queue", queue, "--kills", str(options.kills), "--seed", str(options.seed)]
    command += ["--postgres", options.postgres, "--redis", options.redis]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    record: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return record


def _one(options: argparse.Namespace) -> dict[str, Any]:
    name = f"assay_faults_{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix=name) as folder:
        url = f"sqlite:///{folder}/faults.sqlite3"
        if options.database == "postgresql":
            url = f"{options.postgres}/{name}"
            on_postgres(options.postgres, f"CREATE DATABASE {name}")
        port = free_port()
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "benchmarks.faults.settings",
            "DATABASE_URL": url,
            "TASKS_BACKEND": options.queue,
            "REDIS_URL": options.redis,
            "RQ_PREFIX": f"{name}-",
            "SITE_URL": f"http://127.0.0.1:{port}",
            "SECRET_KEY": secrets.token_urlsafe(50),
            "WORK_LEASE_SECONDS": LEASE_SECONDS,
            "WORK_RETRY_SECONDS": "0.5",
            "WORK_GRACE_SECONDS": "2",
            "PYTHONWARNINGS": "",
        }
        try:
            return _trial(options, port, Path(folder) / "site.log")
        finally:
            if options.database == "postgresql":
                on_postgres(options.postgres, f"DROP DATABASE {name} WITH (FORCE)")


def _trial(options: argparse.Namespace, port: int, log: Path) -> dict[str, Any]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from benchmarks.faults.trial import run_trial

    call_command("migrate", run_syncdb=True, verbosity=0)
    outcome = run_trial(n_kills=options.kills, seed=options.seed, port=port, log=log)
    connections.close_all()
    if not outcome.is_good:
        sys.stderr.write(log.read_text()[-8000:])
    return {"database": options.database, "queue": options.queue} | outcome.record()


def on_postgres(server: str, statement: str) -> None:
    """Run a statement outside any transaction."""
    import psycopg

    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(statement.encode())


def free_port() -> int:
    """A port of this machine that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _document(records: list[dict[str, Any]]) -> str:
    lines = [
        "# Killing the site at random",
        "",
        f"Made by `make long` on {datetime.now(UTC):%Y-%m-%d} from {source()}. Web servers, "
        "their workers, the workers of the queues and `serve` itself are killed (SIGKILL) at "
        "random while jobs of each queue run; a killed `serve` is started again. Each job's "
        "effects are counted in the transactions that its lease guards. Supervisor, web server and "
        "workers are the site's own; the apps that are slow to load are left out.",
        "",
        "| Database | Queue | Kills | Jobs | Done once | Failed with a reason | Begun more than "
        "once | Effects twice or missing | Run by two at once | Unfinished | Processes left over |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        wrong = record["n_doubled_effects"] + record["n_missing_effects"]
        cells = [record[name] for name in ("database", "queue", "n_kills", "n_jobs", "n_done")]
        cells += [record["n_failed"], record["n_repeated"], wrong, record["n_runs_at_once"]]
        cells += [record["n_unfinished"], record["n_orphans"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
