"""How long files take to import, and how much memory.

    python -m benchmarks.imports
    python -m benchmarks.imports --items 2500 --database-url postgres://postgres@127.0.0.1/benchmark

An uploaded file of 200,000 responses is stored, read, mapped, previewed and imported, step by
step, as the pages and their background worker do it. A file of judgments (items x 4 candidates x
2 questions x 5 annotators), one of a tenth of it, and one of responses to 100,000 items, each
imported by a process of its own, so that its peak of memory is its own.

A CSV file of 1,000,000 rows of labels is read by column and by row, and by pandas in the same
process, in seconds of CPU time.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks.commands import CHECKOUT, DATABASE, parse_options, say
from benchmarks.marketplace_site import describe_machine, fresh_database

SYSTEMS, QUESTIONS, N_ANNOTATORS = ("alpha", "beta", "gamma", "delta"), ("wit", "tone"), 5
# Says its own peak when all is done; of a child, only the largest of all can be asked for.
CHILD = """
import resource, sys, time
import django
from django.core.management import call_command
django.setup()
begun = time.process_time()
call_command(*sys.argv[1:])
cpu = time.process_time() - begun
sys.stdout.write(f"{cpu} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}")
"""

# CPU time of reading one file, the best of some in turn, and the memory before pandas reads.
READ = """
import resource, sys, time
from pathlib import Path
import django
import pandas as pd
import pyarrow.csv
django.setup()
from annotation.readers.coded_table import read_table
from annotation.readers.tables import each_row

path = Path(sys.argv[1])

def seconds(read):
    began = time.process_time()
    n = read()
    assert n == int(sys.argv[2]), n
    return time.process_time() - began

def with_pandas():
    return len(pd.read_csv(path, dtype=str, keep_default_na=False))

def by_column():
    return len(read_table(path))

def by_row():
    return sum(1 for row in each_row(path))

first = seconds(by_column)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
columns, pandas = zip(*[(seconds(by_column), seconds(with_pandas)) for _ in range(3)])
rows = seconds(by_row)
sys.stdout.write(f"{min(first, *columns)} {rows} {min(pandas)} {peak}")
"""
# The steps of an upload, each in a process of its own: what is stored between them is in the
# database alone.
UPLOAD = """
import resource, sys, time
import django
django.setup()
from pathlib import Path
from django.core.files import File
from accounts.models import User
from annotation.models import Upload
from annotation.readers.mapping import ColumnMapping
from annotation.uploads import jobs_of_upload, request_import, request_reading
from annotation.uploads import set_mapping, store_upload
from annotation.pages.previews import preview_of
from work.execution import run_job

step, path = sys.argv[1:]
user = User.objects.get_or_create(username="benchmark")[0]
upload = Upload.objects.order_by("pk").last()
uses = {"dialogue": "item", "bot": "system", "history": "context", "text": "response"}
began = time.perf_counter()
if step == "store":
    with open(path, "rb") as content:
        store_upload(file=File(content, name="responses.csv"), uploaded_by=user, title="Upload")
elif step == "read":
    request_reading(upload=upload, requested_by=user)
    run_job(jobs_of_upload(upload).first().pk)
elif step == "map and preview":
    set_mapping(upload=upload, mapping=ColumnMapping.of({"uses": uses}))
    assert preview_of(upload).is_possible
else:
    request_import(upload=upload, requested_by=user)
    run_job(jobs_of_upload(upload).first().pk)
seconds = time.perf_counter() - began
sys.stdout.write(f"{seconds} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}")
"""
UPLOAD_STEPS = ("store", "read", "map and preview", "import")


def write_upload(path: Path, n_rows: int) -> int:
    with path.open("w") as file:
        file.write("dialogue;bot;history;text\n")
        for row in range(n_rows):
            item, bot = divmod(row, 2)
            file.write(f"dialogue-{item:06};bot-{bot};What about {item}?;Let us wait, {row}.\n")
    return n_rows


def uploaded(path: Path) -> Iterator[tuple[str, float, float]]:
    """Seconds and megabytes of each step of an upload."""
    for step in UPLOAD_STEPS:
        seconds, peak = run_child(UPLOAD, step, str(path)).split()[-2:]
        yield step, float(seconds), float(peak)


def run_child(script: str, *arguments: str) -> str:
    command, env = [sys.executable, "-c", script], os.environ | {"PYTHONPATH": str(CHECKOUT)}
    return subprocess.check_output([*command, *arguments], text=True, cwd=CHECKOUT, env=env)


def write_judgments(path: Path, n_items: int) -> int:
    with path.open("w") as file:
        file.write("item,candidate,question,annotator,value\n")
        people, systems = range(N_ANNOTATORS), enumerate(SYSTEMS)
        cells = list(product(people, systems, QUESTIONS))
        for item in range(n_items):
            for person, (system, name), question in cells:
                value = (item * 37 + system * 11 + person * 7 + len(question)) % 101
                file.write(f"item-{item:06},{name},{question},a{person},{value}\n")
    return n_items * len(cells)


def write_labels(path: Path, n_rows: int) -> int:
    with path.open("w") as file:
        file.write("item,annotator,label,comment\n")
        for row in range(n_rows):
            item, person = divmod(row, N_ANNOTATORS)
            comment = f"quoted, {row % 100}" if row % 10 == 0 else f"Words about it {row % 1000}"
            cell = f'"{comment}"' if "," in comment else comment
            file.write(f"item-{item:06},a{person},{row * 37 % 5},{cell}\n")
    return n_rows


def write_responses(path: Path, n_items: int, systems: Sequence[str] = ("alpha",)) -> int:
    with path.open("w") as file:
        file.write("item,system,context,response\n")
        for item in range(n_items):
            for name in systems:
                file.write(f"item-{item:06},{name},What about {item}?,Let {name} wait {item}.\n")
    return n_items * len(systems)


def imported(command: str, path: Path, slug: str) -> tuple[float, float, float]:
    """Seconds, seconds of CPU, and megabytes of an import, in a process of its own."""
    began = time.perf_counter()
    cpu, peak = run_child(CHILD, command, str(path), "--study", slug).split()[-2:]
    return time.perf_counter() - began, float(cpu), float(peak)


def main() -> None:
    options = parse_options(
        __doc__,
        items=(25_000, "of the file of judgments"),
        upload_rows=(200_000, "of the uploaded file"),
        responses=(100_000, "items with responses"),
        label_rows=(1_000_000, "of the file of labels"),
        **DATABASE,
    )
    say(describe_machine())
    write_candidates = partial(write_responses, systems=SYSTEMS)
    cases = [
        ("import_judgments", write_judgments, options.items // 10),
        ("import_judgments", write_judgments, options.items),
        ("import_responses", write_responses, options.responses),
        ("import_responses", write_candidates, options.responses),
        ("import_items", write_candidates, options.responses),
    ]
    with fresh_database(options.database_url), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload.csv"
        n_rows = write_upload(path, options.upload_rows)
        for step, seconds, peak in uploaded(path):
            say(f"upload of {n_rows:,} rows, {step}: {seconds:.2f} s, peak memory {peak:.0f} MB")
        path = Path(folder) / "labels.csv"
        n_rows = write_labels(path, options.label_rows)
        numbers = run_child(READ, str(path), str(n_rows)).split()[-4:]
        columns, rows, pandas, peak = map(float, numbers)
        say(
            f"{n_rows:,} rows of CSV in CPU time: columns {columns:.2f} s, rows {rows:.2f} s,"
            f" pandas {pandas:.2f} s; columns / pandas {columns / pandas:.2f},"
            f" peak memory of columns {peak:.0f} MB"
        )
        for number, (command, write, n_items) in enumerate(cases):
            path = Path(folder) / f"{number}.csv"
            n_rows = write(path, n_items)
            seconds, cpu, peak = imported(command, path, f"study-{number}")
            say(
                f"{command}: {n_rows:,} rows of {n_items:,} items in {seconds:.1f} s"
                f" ({cpu:.1f} s of CPU), peak memory {peak:.0f} MB"
            )


if __name__ == "__main__":
    main()
