from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from annotation.management.importer import ImportCommand, add_ends_argument, with_ends
from annotation.readers.drafts import StudyDraft
from annotation.readers.mturk_batch import read_mturk_batch
from annotation.readers.pooled_batch import is_pooled_batch, read_pooled_batch


class Command(ImportCommand):
    help = (
        "Import a Mechanical Turk batch results CSV: responses that were rated (Input.*, Answer.*, "
        "WorkerId, ...), or targets with their pools (Input.target1, Input.top1, ..., top1, ...)."
    )

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
        if is_pooled_batch(path):
            _require_no_layout(options)
            draft = read_pooled_batch(path)
        else:
            draft = read_mturk_batch(
                path,
                context=options["context"],
                item=tuple(options["item"] or ()),
                condition=options["condition"],
            )
            draft = replace(draft, questions=with_ends(draft.questions, options))
        return replace(draft, submissions=()) if options["items_only"] else draft


def _require_no_layout(options: dict[str, Any]) -> None:
    for name in ("context", "condition", "item", "ends"):
        if options[name]:
            raise CommandError(f"--{name}: this batch shows targets and pools.", returncode=2)
