"""Makes the dumps of a release: `python -m tests.upgrade.dump VERSION`.

The samples go through the whole loop (`manage.py demo`) in a new SQLite database and in a new
PostgreSQL one, which POSTGRES_URL names without the database. Needs `pg_dump`.
"""

import gzip
import json
import os
import secrets
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg

from tests.upgrade.databases import DUMPS, manage

COMMAND = "from tests.upgrade.dump import print_summary; print_summary()"


def print_summary():
    """In a process of the site, which imports this module by COMMAND."""
    from annotation.frames import judgment_frame
    from annotation.models import Study, Submission
    from marketplace.models import LedgerEntry
    from metrics.models import Score

    studies = {}
    for study in Study.objects.order_by("slug"):
        values = judgment_frame(study)["value"]
        studies[study.slug] = {
            "items": study.items.count(),
            "submissions": Submission.objects.of(study).count(),
            "judgments": len(values),
            "sum": round(float(values.sum()), 6),
            "scores": Score.objects.filter(run__study=study).count(),
        }
    print(json.dumps({"studies": studies, "ledger_entries": LedgerEntry.objects.count()}))  # noqa: T201


def main(version):
    server = os.environ.get("POSTGRES_URL", "postgres://postgres@127.0.0.1:5432").rstrip("/")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demo.sqlite3"
        summary = _populate(f"sqlite:///{file}", folder)
        with closing(sqlite3.connect(file)) as database:
            _write(f"{version}.sqlite.sql.gz", "\n".join(database.iterdump()))
        name = f"dump_{secrets.token_hex(4)}"
        with psycopg.connect(f"{server}/postgres", autocommit=True) as maintenance:
            maintenance.execute(f'CREATE DATABASE "{name}"')
            try:
                _populate(f"{server}/{name}", folder)
                _write(f"{version}.postgresql.sql.gz", _pg_dump(f"{server}/{name}"))
            finally:
                maintenance.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    (DUMPS / f"{version}.json").write_text(json.dumps(summary, indent=1) + "\n")


def _populate(database_url, folder):
    manage(database_url, "migrate", "--verbosity", "0")
    manage(database_url, "demo", "--output", f"{folder}/output")
    return json.loads(manage(database_url, "shell", "--no-imports", "-c", COMMAND))


def _pg_dump(url):
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
    script = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    # Lines that begin with a backslash are psql's own.
    return "\n".join(line for line in script.splitlines() if not line.startswith("\\"))


def _write(name, script):
    (DUMPS / name).write_bytes(gzip.compress(script.encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
