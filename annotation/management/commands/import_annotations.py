import json as json_format
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from annotation.exceptions import FileFaults, require
from annotation.imports import ImportResult, import_study
from annotation.management.importer import StudyImportCommand, owner_named, team_named
from annotation.management.plain_table import add_policies, column_and_value, reading_of
from annotation.models import Question
from annotation.readers.drafts import StudyDraft
from annotation.readers.policies import REPEATS
from annotation.readers.rows import MOST
from annotation.readers.tool_exports.entries import FieldNames
from annotation.readers.tool_exports.questions import QuestionSettings
from annotation.readers.tool_exports.studies import TOOLS, read_tool_export

FIELDS = ("annotator", "candidate", "system", "context", "response", "reference")


class Command(StudyImportCommand):
    help = "Import labels that people gave in another tool, as a study with judgments."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--from", dest="tool", choices=TOOLS, required=True)
        parser.add_argument(
            "--item", action="append", default=[], metavar="FIELD",
            help="what names an item; several together where one does not (default: the tool's id)",
        )  # fmt: skip
        for name in (*FIELDS, "condition", "round"):
            parser.add_argument(f"--{name}", default="", metavar="FIELD")
        parser.add_argument(
            "--question", default="", metavar="COLUMN", help="of a csv with a row a label"
        )
        parser.add_argument(
            "--value", action="append", default=[], metavar="COLUMN",
            help="with the label; without --question each one is a question",
        )  # fmt: skip
        parser.add_argument(
            "--answers", default="", metavar="PATTERN",
            help="how columns name their question: of mturk Answer.{question}_{system}, if a row "
            "answers about several systems; of surveys {question}_{item} or {question}_{system}",
        )  # fmt: skip
        parser.add_argument(
            "--level", action="append", default=[], type=_level, metavar="[QUESTION=]LEVEL",
            help=f"of measurement: {', '.join(Question.Level.values)}",
        )  # fmt: skip
        parser.add_argument(
            "--scale", action="append", default=[], type=_scale, metavar="[QUESTION=]LOW:HIGH",
            help="of the values (default: what those in the file span)",
        )  # fmt: skip
        parser.add_argument(
            "--wording", action="append", default=[], type=column_and_value,
            metavar="QUESTION=WORDING", help="what annotators were asked (default: its name)",
        )  # fmt: skip
        parser.add_argument(
            "--written", action="append", default=[], metavar="QUESTION",
            help="whose answers are words and no categories",
        )  # fmt: skip
        parser.add_argument(
            "--leave-out", action="append", default=[], metavar="QUESTION",
            help="whose answers are not imported",
        )  # fmt: skip
        add_policies(parser, repeats=REPEATS, has_categories=True)
        parser.add_argument(
            "--keep-names", action="store_true",
            help="annotators keep the names of the file, which are pseudonyms already",
        )  # fmt: skip
        parser.add_argument("--dry-run", action="store_true", help="say what would be imported")

    def handle(self, *args: Any, json: bool, dry_run: bool, **options: Any) -> None:
        try:
            imported, draft = _import(dry_run=dry_run, **options)
        except FileFaults as refused:
            if json:
                self.stdout.write(json_format.dumps({"faults": _fault_records(refused)}, indent=1))
            raise
        if json:
            record = {**imported.record(), "questions": _questions(draft), "is_dry_run": dry_run}
            self.stdout.write(json_format.dumps(record, indent=1))
        else:
            self.stdout.write("\n".join(_lines(imported, draft, dry_run)))
        if not dry_run:
            self.warn_of_ownership(imported)


@transaction.atomic
def _import(
    *, file: Path, study: str, title: str, owner: str | None, team: str | None, dry_run: bool,
    **options: Any,
) -> tuple[ImportResult, StudyDraft]:  # fmt: skip
    draft = read_tool_export(
        file,
        options["tool"],
        fields=FieldNames(
            item=tuple(options["item"]),
            question=options["question"],
            values=tuple(options["value"]),
            **{name: options[name] for name in (*FIELDS, "condition", "round")},
        ),
        settings=QuestionSettings(
            levels=dict(options["level"]),
            scales=dict(options["scale"]),
            wordings=dict(options["wording"]),
            written=frozenset(options["written"]),
            without=frozenset(options["leave_out"]),
        ),
        policies=reading_of(options).policies,
        answers=options["answers"],
        keep_names=options["keep_names"],
    )
    imported = import_study(
        draft=draft,
        path=file,
        slug=study,
        title=title,
        owner=owner_named(owner),
        team=team_named(team),
    )
    # What a dry run says is what was written, before it is taken back.
    transaction.set_rollback(dry_run)
    return imported, draft


def _level(text: str) -> tuple[str, str]:
    name, _, level = text.rpartition("=")
    require(
        level in Question.Level.values,
        ArgumentTypeError(f"'{level}' is not one of {', '.join(Question.Level.values)}"),
    )
    return name.strip(), level


def _scale(text: str) -> tuple[str, tuple[float, float]]:
    name, _, span = text.rpartition("=")
    low, _, high = span.partition(":")
    try:
        scale = float(low), float(high)
    except ValueError:
        raise ArgumentTypeError(f"'{span}' is not of the form LOW:HIGH") from None
    if not -MOST <= scale[0] < scale[1] <= MOST:
        raise ArgumentTypeError(f"LOW must be below HIGH, and both within {MOST:g} of zero")
    return name.strip(), scale


def _fault_records(refused: FileFaults) -> list[dict[str, Any]]:
    return [
        {
            "file": fault.path.name,
            "line": fault.line,
            "sheet": fault.sheet,
            "record": fault.record,
            "field": fault.field,
            "problem": fault.problem,
            "code": fault.code,
        }
        for fault in refused.faults
    ]


def _questions(draft: StudyDraft) -> list[dict[str, Any]]:
    return [
        {
            "name": question.name,
            "level": question.level,
            "scale": [question.scale_min, question.scale_max],
            "categories": list(question.categories),
        }
        for question in draft.questions
    ]


def _lines(imported: ImportResult, draft: StudyDraft, dry_run: bool) -> list[str]:
    lines = [str(imported)]
    for question in draft.questions:
        values = ", ".join(question.categories[:8]) + (", ..." if question.categories[8:] else "")
        values = values or f"{question.scale_min:g} to {question.scale_max:g}"
        lines.append(f"Question '{question.name}': {question.level}, {values}.")
    if dry_run:
        lines.append("A dry run: nothing was written.")
    return lines
