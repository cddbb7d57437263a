from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from replications.published_data import Published, PublishedCommand
from replications.rated_dialogues import read_dstc9


class Command(PublishedCommand):
    help = (
        "Import DSTC9's interactive evaluation: whole dialogues with a table of ratings, "
        "or last turns with mean ratings."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--ratings",
            type=Path,
            metavar="FILE",
            help="the raters' table, beside a file of whole dialogues",
        )

    def read(self, path: Path, **options: Any) -> Published:
        return read_dstc9(path, options["ratings"])
