import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.plain_table import PlainTableCommand
from annotation.management.selection import item_columns, values_by_column
from validation.conclusions.components import RatingColumns, components_of_file


class Command(PlainTableCommand):
    help = (
        "Where the variation of ratings comes from (items, systems, annotators, what they "
        "share), and what more items or annotators would buy."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--system", metavar="COLUMN")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        columns = RatingColumns(
            item=item_columns(options["item"]),
            annotator=options["annotator"],
            value=options["value"],
            system=options["system"],
            where=values_by_column(options["where"]),
        )
        result = components_of_file(file, columns)
        record, lines = result.record(), result.lines()
        text = json.dumps(record, indent=1) if options["json"] else "\n".join(lines)
        self.stdout.write(text)
