from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from annotation.management.importer import ImportCommand, add_ends_argument, with_ends
from annotation.readers.drafts import StudyDraft
from annotation.readers.mturk_batch import read_mturk_batch


class Command(ImportCommand):
    help = "Import a Mechanical Turk batch results CSV (Input.*, Answer.*, WorkerId, ...)."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--context", metavar="COLUMN", help="input column of the context")
        parser.add_argument("--condition", metavar="COLUMN", help="input column of the condition")
        parser.add_argument(
            "--item", action="append", metavar="COLUMN", help="input columns that name an item"
        )
        parser.add_argument(
            "--items-only", action="store_true", help="leave the submitted answers out"
        )
        add_ends_argument(parser, "its ratings")

    def read(self, path: Path, **options: Any) -> StudyDraft:
        draft = read_mturk_batch(
            path,
            context=options["context"],
            item=tuple(options["item"] or ()),
            condition=options["condition"],
        )
        draft = replace(draft, questions=with_ends(draft.questions, options))
        return replace(draft, submissions=()) if options["items_only"] else draft
