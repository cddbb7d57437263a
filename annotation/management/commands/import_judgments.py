from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from annotation.management.importer import ImportCommand
from annotation.management.plain_table import add_policies, reading_of
from annotation.models import Question
from annotation.readers.drafts import StudyDraft
from annotation.readers.judgments import read_judgments
from annotation.readers.policies import REPEATS
from annotation.readers.rows import MOST


class Command(ImportCommand):
    help = (
        "Import a long CSV of judgments made elsewhere "
        "(item, annotator, value, and optionally candidate, question, round, condition)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_policies(parser, repeats=REPEATS, has_categories=True)
        parser.add_argument("--level", choices=Question.Level.values, default="interval")
        parser.add_argument(
            "--scale",
            nargs=2,
            type=float,
            metavar=("LOW", "HIGH"),
            help="of the values (default: what those in the file span)",
        )

    def read(self, path: Path, **options: Any) -> StudyDraft:
        scale = options["scale"]
        if scale and not -MOST <= scale[0] < scale[1] <= MOST:
            raise CommandError(
                f"--scale: LOW must be below HIGH, and both within {MOST:g} of zero.", returncode=2
            )
        return read_judgments(
            path,
            level=options["level"],
            scale=scale and tuple(scale),
            reading=reading_of(options),
        )
