"""A site of its own for a trial, and the sections of docs/faults.md."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.commands import free_port
from benchmarks.marketplace_site import environment_of, new_database

DOCUMENT = Path("docs/faults.md")
SEVERAL_PROCESSES = {"WEB_PROCESSES": "2", "WORKER_PROCESSES": "3"}
# Jobs are taken over soon, so that a trial sees many of them killed.
FAST_JOBS = {"WORK_LEASE_SECONDS": "4", "WORK_RETRY_SECONDS": "0.5", "WORK_GRACE_SECONDS": "2"}


def run_on_a_new_site(
    run: Callable[[int, Path], Any], *, database: str, postgres: str, **variables: str
) -> dict[str, Any]:
    port, name = free_port(), f"assay_trial_{token_hex(4)}"
    database_url = f"{postgres}/{name}" if database == "postgresql" else None
    with TemporaryDirectory(prefix=name) as folder, new_database(database_url, folder) as url:
        site = {"SITE_URL": f"http://127.0.0.1:{port}"}
        os.environ |= environment_of(url) | FAST_JOBS | SEVERAL_PROCESSES | site | variables
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", run_syncdb=True, verbosity=0)
        log = Path(folder, "site.log")
        outcome = run(port, log)
        connections.close_all()
        if not outcome.is_good:
            sys.stderr.write(log.read_text()[-8000:])
    return {"database": database} | outcome.record()


def replace_section(heading: str, lines: Sequence[str]) -> None:
    """Write a section of the document in place of the one with this heading, or at the end."""
    first, *sections = DOCUMENT.read_text().split("\n## ")
    texts = {text.partition("\n")[0]: text.partition("\n")[2].strip() for text in sections}
    texts[heading] = "\n".join(lines)
    parts = [first.strip(), *(f"## {name}\n\n{text}" for name, text in texts.items())]
    DOCUMENT.write_text("\n\n".join(parts) + "\n")


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [titles, ["---"] * len(titles), *rows]
    return [f"| {' | '.join(map(str, cells))} |" for cells in lines]
