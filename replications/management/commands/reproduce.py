import json
from collections import Counter
from dataclasses import asdict
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from presentation.numbers import plain_values
from presentation.text_tables import text_table
from replications.manifests import Manifest, ReproducedCell, paper_names, read_manifest

HEAD = ("row", "column", "published", "computed", "verdict")


class Command(BaseCommand):
    help = (
        "Compute a paper's tables from its authors' data, or from yours in the same files, and "
        "print them beside the published values. Without DATA, show what the paper needs."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paper", metavar="PAPER", choices=paper_names(), help="%(choices)s")
        parser.add_argument("data", metavar="DATA", nargs="?", type=Path, help="folder of the data")
        parser.add_argument("--json", action="store_true", help="print the cells as JSON")

    def handle(self, *args: Any, paper: str, data: Path | None, **options: Any) -> None:
        manifest = read_manifest(paper)
        cells = manifest.reproduce(data) if data else []
        if options["json"]:
            content = {"paper": plain_values(asdict(manifest)), "cells": json_cells(cells)}
            self.stdout.write(json.dumps(content, indent=1))
        else:
            self.stdout.write(_text(manifest, cells))
        for name in manifest.missing_files(data) if data else ():
            self.stderr.write(f"{data} does not contain {name}. Its tables are left out.")


def json_cells(cells: list[ReproducedCell]) -> list[dict[str, Any]]:
    return [plain_values(asdict(cell)) for cell in cells]


def cell_values(cell: ReproducedCell) -> tuple[str, str]:
    """The published and the computed value, "" and "undefined" where there is none."""
    published, computed = (f"{value:.{cell.decimals}f}" for value in (cell.published, cell.value))
    return (
        "" if isnan(cell.published) else published,
        "undefined" if isnan(cell.value) else computed,
    )


def _text(manifest: Manifest, cells: list[ReproducedCell]) -> str:
    parts = [f"{manifest.title}\n{manifest.url}\n\n{manifest.design}\nData: {manifest.data}"]
    captions = {table.name: table.caption for table in manifest.tables}
    for name, of_table in groupby(cells, key=lambda cell: cell.table):
        group = list(of_table)
        rows = [(cell.row, cell.column, *cell_values(cell), cell.verdict) for cell in group]
        reasons = dict.fromkeys(f"Explained: {cell.reason}" for cell in group if cell.reason)
        parts.append("\n".join([f"{name}. {captions[name]}", text_table(HEAD, rows), *reasons]))
    if cells:
        counts = Counter(cell.verdict for cell in cells)
        parts.append(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    else:
        parts.append("\n".join(f"{table.name}: {table.caption}" for table in manifest.tables))
    parts.append(
        "\n".join(
            ["Not computed:", *(f"- {one['what']}: {one['why']}" for one in manifest.not_here)]
        )
    )
    return "\n\n".join(parts)
