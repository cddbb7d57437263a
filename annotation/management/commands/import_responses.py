from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from annotation.management.importer import (
    ImportCommand,
    add_ends_argument,
    add_protocol_argument,
    with_ends,
)
from annotation.readers.drafts import QuestionDraft, StudyDraft
from annotation.readers.item_files import APPROPRIATENESS, read_responses
from error_codes import require

LONGEST_NAME = 64


class Command(ImportCommand):
    help = (
        "Import a CSV or JSON Lines file of responses "
        "(item, system, context, response, and optionally reference, condition)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_protocol_argument(parser)
        parser.add_argument(
            "--question",
            action="append",
            metavar="NAME=WORDING",
            help="rated 0-100; may be given several times (default: appropriateness)",
        )
        add_ends_argument(parser, "every --question")

    def read(self, path: Path, **options: Any) -> StudyDraft:
        require(
            not options["ends"] or options["question"],
            CommandError("--ends goes with --question, whose ends it names.", returncode=2),
        )
        questions = with_ends([_question(text) for text in options["question"] or ()], options)
        names = [question.name for question in questions]
        if twice := [name for name in names if names.count(name) > 1]:
            raise CommandError(f"--question names '{twice[0]}' twice.", returncode=2)
        if questions and options["protocol"]:
            raise CommandError(
                "--question and --protocol both say what is asked; give one of them.", returncode=2
            )
        default = () if options["protocol"] else (APPROPRIATENESS,)
        return read_responses(path, questions or default)


def _question(text: str) -> QuestionDraft:
    name, equals, wording = text.partition("=")
    require(
        name.strip() and equals and wording.strip(),
        CommandError(f"--question '{text}' is not of the form NAME=WORDING.", returncode=2),
    )
    require(
        len(name.strip()) <= LONGEST_NAME,
        CommandError(
            f"--question '{text[:40]}': a name has {LONGEST_NAME} characters at most.", returncode=2
        ),
    )
    return QuestionDraft(name=name.strip(), wording=wording.strip())
