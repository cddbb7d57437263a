import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.exceptions import AnnotationError
from annotation.management.plain_table import PlainTableCommand
from annotation.tables.aggregation import aggregate_file
from presentation.files import write_whole
from stats.aggregation import METHODS


class Command(PlainTableCommand):
    help = "One label an item from a file of many annotators' labels; no database is needed."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--method", choices=list(METHODS), required=True)
        parser.add_argument(
            "--repeats",
            choices=["refuse", "count"],
            help="what an annotator says of an item again (dawid_skene counts it, others refuse)",
        )
        parser.add_argument(
            "--output", type=Path, metavar="FILE", help="of labels: .json, or else CSV"
        )

    def handle(self, *args: Any, file: Path, output: Path | None, **options: Any) -> None:
        if output is not None and output.resolve() == file.resolve():
            raise AnnotationError(
                f"{output} holds the labels themselves; name another --output.",
                code="output_is_input",
            )
        aggregation = aggregate_file(
            file, self.columns(options), method=options["method"], repeats=options["repeats"]
        )
        if output is not None:
            write_whole(output, aggregation.content(output))
        if options["json"]:
            self.stdout.write(json.dumps(aggregation.record(), indent=1))
        else:
            self.stdout.write(
                aggregation.sentence() if output is None else f"{output}: {aggregation.sentence()}"
            )
