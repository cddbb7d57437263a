import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.numbers import natural
from annotation.management.plain_table import PlainTableCommand
from annotation.tables.agreement import agree_on_file


class Command(PlainTableCommand):
    help = "How well the annotators of a file of labels agree; no database is needed."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        levels = ("nominal", "ordinal", "interval", "ratio")
        parser.add_argument("--level", choices=levels, required=True)
        parser.add_argument(
            "--cluster", metavar="COLUMN", help="of items that are not independent of each other"
        )
        parser.add_argument(
            "--ci", choices=("jackknife", "analytic", "bootstrap"), default="jackknife"
        )
        parser.add_argument("--seed", type=natural, default=0, help="of the bootstrap")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        agreement = agree_on_file(
            file,
            self.columns(options),
            level=options["level"],
            ci=options["ci"],
            seed=options["seed"],
        )
        text = (
            json.dumps(agreement.record(), indent=1)
            if options["json"]
            else "\n".join(agreement.lines())
        )
        self.stdout.write(text)
