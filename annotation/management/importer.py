import gc
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Team
from annotation.access import ownership_warning
from annotation.imports import ImportResult, import_study
from annotation.protocols.templates import read_protocol, template_names
from annotation.readers.drafts import QuestionDraft, StudyDraft

LONGEST_LABEL = 64


class StudyImportCommand(BaseCommand):
    study_help = "new, or to add to"

    def add_arguments(self, parser: CommandParser) -> None:
        add_study_arguments(parser, study_help=self.study_help)
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def write_imported(self, imported: ImportResult, *, is_json: bool, **more: Any) -> None:
        if is_json:
            self.stdout.write(json.dumps(imported.record() | more, indent=1))
        else:
            self.stdout.write(str(imported))
        self.warn_of_ownership(imported)

    def warn_of_ownership(self, imported: ImportResult) -> None:
        if warning := ownership_warning(imported.study):
            self.stderr.write(warning)


class ImportCommand(StudyImportCommand, ABC):
    @abstractmethod
    def read(self, path: Path, **options: Any) -> StudyDraft:
        """What the file holds."""

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        name = options.get("protocol")
        with without_garbage_collection():
            imported = import_study(
                draft=self.read(file, **options),
                protocol=read_protocol(name) if name else None,
                path=file,
                slug=options["study"],
                title=options["title"],
                owner=owner_named(options["owner"]),
                team=team_named(options["team"]),
            )
        self.write_imported(imported, is_json=options["json"])


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch off the search for cycles: drafts have none, and the search takes a quarter of the
    time of a million rows."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def add_protocol_argument(parser: CommandParser) -> None:
    parser.add_argument(
        "--protocol",
        metavar="FILE|TEMPLATE",
        help=f"what annotators see and are asked: YAML, or {', '.join(template_names())}",
    )


def add_ends_argument(parser: CommandParser, of: str) -> None:
    parser.add_argument(
        "--ends",
        nargs=2,
        metavar=("LOW", "HIGH"),
        help=f"what the least and the greatest value of {of} mean; a launch needs both",
    )


def with_ends(
    questions: Iterable[QuestionDraft], options: Mapping[str, Any]
) -> tuple[QuestionDraft, ...]:
    ends = [end.strip() for end in options["ends"] or ("", "")]
    if too_long := [end for end in ends if len(end) > LONGEST_LABEL]:
        raise CommandError(
            f"--ends '{too_long[0][:40]}': a label has {LONGEST_LABEL} characters at most.",
            returncode=2,
        )
    low, high = ends
    return tuple(replace(each, low_label=low, high_label=high) for each in questions)


def add_study_arguments(parser: CommandParser, *, study_help: str = "new, or to add to") -> None:
    parser.add_argument("file", type=Path)
    parser.add_argument("--study", required=True, metavar="SLUG", help=study_help)
    parser.add_argument("--title", default="", help="of a new study")
    parser.add_argument("--owner", metavar="USER", help="whose study it is, if it is new")
    parser.add_argument("--team", metavar="TEAM", help="whose members see it, by its short name")


def owner_named(name: str | None) -> AbstractBaseUser | None:
    return None if name is None else user_named(name)


def team_named(slug: str | None) -> Team | None:
    return None if slug is None else Team.objects.named(slug)


def user_named(name: str) -> AbstractBaseUser:
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no user '{name}'.", returncode=2)
    return user
