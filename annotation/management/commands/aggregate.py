from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.exceptions import AnnotationError, require
from annotation.management.plain_table import LabelsCommand, reading_of
from annotation.plain_labels import aggregate_file
from annotation.readers.policies import REPEATS
from presentation.files import write_whole
from stats.aggregation import METHODS


class Command(LabelsCommand):
    has_categories = True
    repeats = (*REPEATS, "count")
    help = "One label an item from a file of many annotators' labels; no database is needed."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--method", choices=list(METHODS), required=True)
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help="of labels: .json, or else CSV"
        )

    def handle(self, *args: Any, file: Path, output: Path | None, **options: Any) -> None:
        require(
            output is None or output.resolve() != file.resolve(),
            AnnotationError(
                f"{output} holds the labels themselves; name another --output.",
                code="output_is_input",
            ),
        )
        reading = reading_of(options)
        aggregation = aggregate_file(
            file, self.columns(options), method=options["method"], reading=reading
        )
        if output is not None:
            write_whole(output, aggregation.content(output))
            if not options["json"]:
                self.stdout.write(f"{output}: ", ending="")
        self.write_result(aggregation, reading, options)
