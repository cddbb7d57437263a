"""What the commands that read a plain table of labels have in common."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.management.selection import (
    add_item,
    add_where,
    item_columns,
    values_by_column,
)
from annotation.readers.labels import Columns


class PlainTableCommand(BaseCommand):
    """Read a file and compute; no database is asked, so none has to be there."""

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help=".csv, .tsv or .jsonl, a row a label")
        add_item(parser)
        for name in ("annotator", "value"):
            parser.add_argument(f"--{name}", required=True, metavar="COLUMN")
        add_where(parser)
        parser.add_argument("--json", action="store_true", help="for a program to read")

    def columns(self, options: dict[str, Any]) -> Columns:
        """Which columns hold what, as the options say."""
        return Columns(
            item=item_columns(options["item"]),
            annotator=options["annotator"],
            value=options["value"],
            cluster=options.get("cluster"),
            where=values_by_column(options["where"]),
        )
