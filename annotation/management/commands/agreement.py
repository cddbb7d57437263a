from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.plain_table import LabelsCommand, add_cluster, natural, reading_of
from annotation.plain_labels import agree_on_file


class Command(LabelsCommand):
    has_categories = True
    help = "How well the annotators of a file of labels agree; no database is needed."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_cluster(parser)
        parser.add_argument(
            "--level", choices=("nominal", "ordinal", "interval", "ratio"), required=True
        )
        parser.add_argument(
            "--ci", choices=("jackknife", "analytic", "bootstrap"), default="jackknife"
        )
        parser.add_argument("--seed", type=natural, default=0, help="of the bootstrap")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        reading = reading_of(options)
        self.write_result(
            agree_on_file(
                file,
                self.columns(options),
                level=options["level"],
                ci=options["ci"],
                seed=options["seed"],
                reading=reading,
            ),
            reading,
            options,
        )
