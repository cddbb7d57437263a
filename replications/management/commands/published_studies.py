import json
import re
from collections import Counter
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from replications.management.commands.reproduce import cell_values, json_cells
from replications.manifests import Manifest, ReproducedCell, paper_names, read_manifest
from replications.published_data import DatasetIncomplete

BEGIN, END = "<!-- gallery: python manage.py published_studies -->", "<!-- end of gallery -->"
HEAD = (
    *("table", "row", "column", "level", "published", "computed", "verdict"),
    *("raters' mean", "n"),
)
Papers = list[tuple[Manifest, list[ReproducedCell]]]


class Command(BaseCommand):
    help = (
        "Compute the tables of all published studies whose data a folder contains, beside the "
        "published values. `reproduce` computes one of them."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="with a folder for each study's data")
        parser.add_argument(
            "--page",
            type=Path,
            metavar="FILE",
            help="put the tables into this page, between the two comments that docs/gallery.md has",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, folder: Path, page: Path | None, **options: Any) -> None:
        papers, missing = reproduce_all(folder)
        cells = [cell for _, of_paper in papers for cell in of_paper]
        if options["json"]:
            self.stdout.write(json.dumps({"rows": json_cells(cells), "missing": missing}, indent=1))
            return
        if page:
            page.write_text(with_tables(page.read_text("utf-8"), papers), "utf-8")
        self.stdout.write(_summary(cells) if page else write_tables(papers))
        for name in missing:
            self.stderr.write(f"{folder} does not contain {name}. Its tables are left out.")


def reproduce_all(folder: Path) -> tuple[Papers, list[str]]:
    """The papers whose data are there, with their cells, and the files that are missing.

    Raises DatasetIncomplete if no paper's data are there.
    """
    papers: Papers = []
    missing: list[str] = []
    for manifest in map(read_manifest, paper_names()):
        lacking = manifest.missing_files(folder / manifest.folder)
        missing += [f"{manifest.folder}/{name}" for name in lacking]
        try:
            papers.append((manifest, manifest.reproduce(folder / manifest.folder)))
        except DatasetIncomplete:
            continue
    if not papers:
        raise DatasetIncomplete(f"{folder} has none of the data: {', '.join(missing)}.")
    return papers, missing


def with_tables(text: str, papers: Papers) -> str:
    """Replace the tables between two comments of the page; CommandError if they are missing."""
    if not (BEGIN in text and END in text):
        raise CommandError(f"The page has no line {BEGIN} or {END}.", returncode=2)
    pattern = re.compile(f"({re.escape(BEGIN)}\n).*?({re.escape(END)})", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}\n{write_tables(papers)}\n{match[2]}", text)


def write_tables(papers: Papers) -> str:
    return "\n".join(line for paper in papers for line in _lines(*paper))


def _lines(manifest: Manifest, cells: list[ReproducedCell]) -> Iterator[str]:
    yield f"## {manifest.short_title}\n"
    yield f"[{manifest.title}]({manifest.url}), [data]({manifest.data}).\n\n{manifest.design}\n"
    # Tables without a published value may be long. `reproduce` prints them.
    shown = {cell.table for cell in cells if cell.verdict != "not compared"}
    shown = shown or {cell.table for cell in cells}
    rows = [_cells(cell) for cell in cells if cell.table in shown]
    yield from (f"| {' | '.join(line)} |" for line in [HEAD, ("---",) * len(HEAD), *rows])
    yield ""
    for reason in dict.fromkeys((cell.table, cell.reason) for cell in cells if cell.reason):
        yield "- Explained in {}: {}".format(*reason)
    for one in manifest.not_here:
        yield f"- Not computed: {one['what']}. {one['why']}"
    for signature in dict.fromkeys(cell.signature for cell in cells if cell.table in shown):
        yield f"- `{signature}`"
    yield ""


def _cells(cell: ReproducedCell) -> tuple[str, ...]:
    mean = "" if isnan(cell.ratings_mean) else f"{cell.ratings_mean:.2f}, "
    return (
        *(cell.table, cell.row, cell.column, cell.level),
        *cell_values(cell),
        cell.verdict,
        f"{mean}{cell.raters}",
        "" if cell.n is None else str(cell.n),
    )


def _summary(cells: list[ReproducedCell]) -> str:
    counts = Counter(cell.verdict for cell in cells)
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
