from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from replications.published_data import Published, PublishedCommand
from replications.rated_dialogues import read_topical_chat


class Command(PublishedCommand):
    help = (
        "Import Topical-Chat-USR as UniEval and G-Eval pass it around: a JSON array of responses "
        "with their mean ratings, and with metrics' scores where it has any."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--geval", type=Path, metavar="FILE", help="a JSON Lines file of G-Eval's samples"
        )

        parser.add_argument(
            "--speakers", action="store_true", help="begin the turns with A: and B: in turn"
        )

    def read(self, path: Path, **options: Any) -> Published:
        return read_topical_chat(path, options["geval"], speakers=options["speakers"])
