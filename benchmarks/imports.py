"""How long files take to import, and how much memory.

    python -m benchmarks.imports
    python -m benchmarks.imports --items 2500 --database-url postgres://postgres@127.0.0.1/benchmark

A file of judgments (items x 4 candidates x 2 questions x 5 annotators), one of a tenth of it, and
one of responses to 100,000 items, each imported by a process of its own, so that its peak of
memory is its own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.marketplace_site import CHECKOUT, describe_machine, fresh_database

SYSTEMS, QUESTIONS, N_ANNOTATORS = ("alpha", "beta", "gamma", "delta"), ("wit", "tone"), 5
# Says its own peak when all is done; of a child, only the largest of all can be asked for.
CHILD = """
import resource, sys
import django
from django.core.management import call_command
django.setup()
call_command(*sys.argv[1:])
sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


def write_judgments(path: Path, n_items: int) -> int:
    """A row a judgment, all of an item together; return how many rows."""
    n_rows = 0
    with path.open("w") as file:
        file.write("item,candidate,question,annotator,value\n")
        for item in range(n_items):
            for person in range(N_ANNOTATORS):
                for system, name in enumerate(SYSTEMS):
                    for question in QUESTIONS:
                        value = (item * 37 + system * 11 + person * 7 + len(question)) % 101
                        file.write(f"item-{item:06},{name},{question},a{person},{value}\n")
                        n_rows += 1
    return n_rows


def write_responses(path: Path, n_items: int) -> int:
    """A row an item."""
    with path.open("w") as file:
        file.write("item,system,context,response\n")
        for item in range(n_items):
            file.write(f"item-{item:06},alpha,What about {item}?,Let us wait for {item}.\n")
    return n_items


def imported(command: str, path: Path, slug: str) -> tuple[float, float]:
    """Seconds and megabytes of an import, in a process of its own."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, command, str(path), "--study", slug],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
    )
    return time.perf_counter() - began, float(done.stdout.splitlines()[-1])


def main() -> None:
    """Write the files, import each, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=25_000)
    parser.add_argument("--responses", type=int, default=100_000)
    parser.add_argument("--database-url", help="a PostgreSQL database to make (default: SQLite)")
    options = parser.parse_args()
    sys.stdout.write(f"{describe_machine()}\n")
    cases = [
        ("import_judgments", write_judgments, options.items // 10),
        ("import_judgments", write_judgments, options.items),
        ("import_responses", write_responses, options.responses),
    ]
    with fresh_database(options.database_url), tempfile.TemporaryDirectory() as folder:
        for number, (command, write, n_items) in enumerate(cases):
            path = Path(folder) / f"{number}.csv"
            n_rows = write(path, n_items)
            seconds, peak = imported(command, path, f"study-{number}")
            sys.stdout.write(
                f"{command}: {n_rows:,} rows of {n_items:,} items in {seconds:.1f} s,"
                f" peak memory {peak:.0f} MB\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
