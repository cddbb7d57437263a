import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from annotation.management.plain_table import (
    TableCommand,
    add_cluster,
    add_item,
    each_once,
    positive,
    reading_of,
)
from metrics.management.options import number
from presentation.numbers import group_values
from validation.conclusions.judges import DriftColumns, drift_of_file

# Exit code for a judge that drifted; 1 and 2 are errors.
DRIFTED = 3


class Command(TableCommand):
    help = (
        "Whether a judge moved between two versions of its model or prompt, on anchor items "
        f"that both scored. Exits with {DRIFTED} where it did, for a pipeline to stop at."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_item(parser)
        add_cluster(parser)
        parser.add_argument("--before", required=True, metavar="COLUMN")
        parser.add_argument("--after", required=True, metavar="COLUMN")
        parser.add_argument("--human", metavar="COLUMN", help="ratings on the judge's scale")
        parser.add_argument(
            "--tolerance", type=number, default=0.0, help="a shift that does not matter (0)"
        )
        parser.add_argument(
            "--looks", type=positive, default=1, help="versions compared with the first so far"
        )

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        if options["tolerance"] < 0:
            raise CommandError("--tolerance must not be negative.")
        columns = DriftColumns(
            before=options["before"],
            after=options["after"],
            human=options["human"],
            item=each_once(options["item"]),
            cluster=options["cluster"],
            where=group_values(options["where"]),
        )
        reading = reading_of(options)
        result = drift_of_file(
            file,
            columns,
            tolerance=options["tolerance"],
            looks=options["looks"],
            reading=reading,
        )
        self.write_result(result, reading, options)
        if result.has_drifted:
            sys.exit(DRIFTED)
