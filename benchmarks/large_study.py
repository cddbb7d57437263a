"""Import, export, first page and report of a study of 100,000 items: rates and memory.

    python -m benchmarks.large_study
    python -m benchmarks.large_study --items 2000 --database-url postgres://postgres@127.0.0.1/big

Two systems' responses to each item, each judged by two annotators under one question, and scored
by two metrics. Every step is a process of its own, so that its peak of memory is its own; half of
that is the site's code, which the first row says.
"""

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.commands import DATABASE, parse_options, run_again, say, say_head, say_row, source
from benchmarks.marketplace_site import describe_machine, fresh_database

SYSTEMS, ANNOTATORS, QUESTION = ("alpha", "beta"), ("a1", "a2", "a3"), "appropriateness"
RESPONSES, JUDGMENTS = "responses.csv", "judgments.csv"
ITEMS_STUDY, STUDY = "responses", "judged"
N_VISITS = 5
EXPORTS = ("items.csv", "judgments.csv", "judgments.parquet", "submissions.csv", "scores.csv")


def write_responses(path: Path, n_items: int) -> None:
    with path.open("w") as file:
        file.write("item,system,context,response\n")
        for item, name in product(range(n_items), SYSTEMS):
            file.write(f"item-{item:06},{name},What about {item}?,Let {name} wait {item}.\n")


def write_judgments(path: Path, n_items: int) -> None:
    with path.open("w") as file:
        file.write("item,candidate,question,annotator,value\n")
        for item in range(n_items):
            for (n, system), person in product(enumerate(SYSTEMS), range(2)):
                name = ANNOTATORS[(item + person) % len(ANNOTATORS)]
                value = (item * 37 + n * 23) % 81 + (item * 7 + person * 5 + n) % 19
                file.write(f"item-{item:06},{system},{QUESTION},{name},{value}\n")


def import_items(folder: Path) -> int:
    _command("import_responses", str(folder / RESPONSES), study=ITEMS_STUDY)
    return _study(ITEMS_STUDY).items.count() * len(SYSTEMS)


def import_judgments(folder: Path) -> int:
    from annotation.models import Judgment

    _command("import_judgments", str(folder / JUDGMENTS), study=STUDY)
    return Judgment.objects.of(_study(STUDY)).count()


def add_scores(folder: Path) -> int:
    from benchmarks.big_study import add_scores as write
    from metrics.models import Score

    write(_study(STUDY), ("length", "overlap"))
    return Score.objects.count()


def visit(folder: Path) -> int:
    client, path = _client(), f"/studies/{STUDY}/"
    seconds = []
    for _ in range(N_VISITS):
        began = time.perf_counter()
        assert client.get(path).status_code == 200
        seconds.append(time.perf_counter() - began)
    sys.stderr.write(f"first page, median: {1000 * median(seconds):.0f} ms\n")
    return N_VISITS


def export(folder: Path, name: str) -> int:
    """As a download from the page; the rate is of rows, where a line is one."""
    study = ITEMS_STUDY if name == "items.csv" else STUDY
    answer = _client().get(f"/studies/{study}/{name}")
    assert answer.status_code == 200
    if not name.endswith("parquet"):
        return sum(chunk.count(b"\n") for chunk in answer.streaming_content) - 1
    import pyarrow
    import pyarrow.parquet

    content = b"".join(answer.streaming_content)
    return pyarrow.parquet.read_metadata(pyarrow.BufferReader(content)).num_rows


def report(folder: Path) -> int:
    from annotation.models import Judgment

    _command("report", STUDY, output=folder / "report", format=["html"])
    return Judgment.objects.of(_study(STUDY)).count()


STEPS: dict[str, Callable[[Path], int]] = {
    "start": lambda folder: 0,
    "import responses": import_items,
    "import judgments": import_judgments,
    "(scores, in bulk)": add_scores,
    "first page": visit,
    **{f"export {name}": partial(export, name=name) for name in EXPORTS},
    "report": report,
}


def _command(name: str, *words: str, **options: Any) -> None:
    from django.core.management import call_command

    call_command(name, *words, stdout=sys.stderr, **options)


def _study(slug: str) -> Any:
    from annotation.models import Study

    return Study.objects.get(slug=slug)


def _client() -> Any:
    from django.test import Client

    from accounts.models import User
    from annotation.models import Study

    owner, _ = User.objects.get_or_create(username="owner")
    Study.objects.filter(owner=None).update(owner=owner)
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(owner)
    return client


def main() -> None:
    options = parse_options(
        __doc__,
        items=(100_000, "of each study"),
        **DATABASE,
        step=((None, *STEPS), "one step, on this database"),
        folder=(Path, "with the files"),
    )
    if options.step:
        _do(options.step, options.folder)
        return
    say(f"{describe_machine()}; commit {source()}\n")
    say_head("step", "rows", "s", "a second", "peak memory")
    with fresh_database(options.database_url), tempfile.TemporaryDirectory() as folder:
        write_responses(Path(folder, RESPONSES), options.items)
        write_judgments(Path(folder, JUDGMENTS), options.items)
        for step in STEPS:
            record = run_again("benchmarks.large_study", options, step=step, folder=folder)
            rate = f"{record['n'] / record['seconds']:,.0f}" if record["n"] else ""
            seconds, peak = f"{record['seconds']:.1f}", f"{record['peak_mb']:.0f} MB"
            say_row(step, f"{record['n']:,}", seconds, rate, peak)


def _do(step: str, folder: Path) -> None:
    import django

    django.setup()
    began = time.perf_counter()
    n = STEPS[step](folder)
    seconds = time.perf_counter() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(json.dumps({"n": n, "seconds": seconds, "peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
