from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.importer import ImportCommand
from annotation.readers.drafts import StudyDraft
from annotation.readers.item_files import QUESTIONS, read_crs_arena


class Command(ImportCommand):
    help = (
        "Import CRSArena-Eval's crs_arena_eval.json, labelled dialogues with conversational "
        "recommenders, as a study with judgments."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--level",
            choices=list(QUESTIONS),
            default="turns",
            help="what is judged: the assistant's turns, or dialogues as a whole (default: turns)",
        )

    def read(self, path: Path, **options: Any) -> StudyDraft:
        return read_crs_arena(path, options["level"])
