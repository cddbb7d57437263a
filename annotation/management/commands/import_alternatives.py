from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.importer import ImportCommand, add_protocol_argument
from annotation.readers.drafts import StudyDraft
from annotation.readers.item_files import read_alternatives


class Command(ImportCommand):
    help = (
        "Import a JSON Lines file of targets and their pools "
        "(item, target{title,image}, candidates[{key,title,image}])."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_protocol_argument(parser)
        parser.add_argument(
            "--allow-target-in-pool",
            action="store_true",
            help="take pools that hold their own target's picture",
        )
        parser.add_argument(
            "--allow-same-pictures",
            action="store_true",
            help="take pools that hold one picture several times",
        )

    def read(self, path: Path, **options: Any) -> StudyDraft:
        return read_alternatives(
            path,
            allows_target=options["allow_target_in_pool"],
            allows_repeats=options["allow_same_pictures"],
        )
