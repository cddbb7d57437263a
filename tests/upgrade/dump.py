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

ROOT = Path(__file__).resolve().parents[2]
DUMPS = Path(__file__).parent / "dumps"
COMMAND = "from tests.upgrade.summary import print_summary; print_summary()"


def main(version: str) -> None:
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


def _populate(database_url: str, folder: str) -> dict[str, object]:
    _manage(database_url, "migrate", "--verbosity", "0")
    _manage(database_url, "demo", "--output", f"{folder}/output")
    summary: dict[str, object] = json.loads(
        _manage(database_url, "shell", "--no-imports", "-c", COMMAND)
    )
    return summary


def _manage(database_url: str, *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    environment = os.environ | {"DATABASE_URL": database_url, "DEBUG": "true"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def _pg_dump(url: str) -> str:
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
    script = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    # Lines that begin with a backslash are psql's own.
    return "\n".join(line for line in script.splitlines() if not line.startswith("\\"))


def _write(name: str, script: str) -> None:
    (DUMPS / name).write_bytes(gzip.compress(script.encode(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
