import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.management.numbers import positive
from annotation.management.selection import add_where, values_by_column
from metrics.management.numbers import number
from validation.conclusions.drift import DriftColumns, drift_of_file

DRIFTED = 3
"""The exit code of a judge that moved; 1 and 2 are errors."""


class Command(BaseCommand):
    help = (
        "Whether a judge moved between two versions of its model or prompt, on anchor items "
        f"that both scored. Exits with {DRIFTED} where it did, for a pipeline to stop at."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help=".csv, .tsv or .jsonl, a row an anchor item")
        parser.add_argument("--before", required=True, metavar="COLUMN")
        parser.add_argument("--after", required=True, metavar="COLUMN")
        parser.add_argument(
            "--item",
            action="append",
            default=[],
            metavar="COLUMN",
            help="by which anchor items are told apart: one that comes twice is refused",
        )
        parser.add_argument("--human", metavar="COLUMN", help="ratings on the judge's scale")
        parser.add_argument(
            "--cluster", metavar="COLUMN", help="of items that are not independent of each other"
        )
        parser.add_argument(
            "--tolerance", type=number, default=0.0, help="a shift that does not matter (0)"
        )
        parser.add_argument(
            "--looks", type=positive, default=1, help="versions compared with the first so far"
        )
        add_where(parser)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        if options["tolerance"] < 0:
            raise CommandError("--tolerance must not be negative.")
        columns = DriftColumns(
            before=options["before"],
            after=options["after"],
            human=options["human"],
            item=tuple(options["item"]),
            cluster=options["cluster"],
            where=values_by_column(options["where"]),
        )
        result = drift_of_file(
            file, columns, tolerance=options["tolerance"], looks=options["looks"]
        )
        record, lines = result.record(), result.lines()
        text = json.dumps(record, indent=1) if options["json"] else "\n".join(lines)
        self.stdout.write(text)
        if result.has_drifted:
            sys.exit(DRIFTED)
