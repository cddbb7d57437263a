import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from annotation.exceptions import AnnotationError
from annotation.imports import import_study
from annotation.management.importer import (
    StudyImportCommand,
    add_protocol_argument,
    owner_named,
    team_named,
    without_garbage_collection,
)
from annotation.models import Study
from annotation.protocols.templates import read_protocol
from annotation.readers.drafts import Faults
from annotation.readers.formats import DELIMITERS, FileFormat
from annotation.readers.mapping import ColumnMapping, Use, guess_reasons
from annotation.readers.pictures import Folder
from annotation.readers.profiles import faults_as_text, items_of, mapped_study, profile_table
from annotation.readers.tables import OpenTable, opened_table
from annotation.readers.text_files import ENCODINGS
from error_codes import CodedText, require

USES = ", ".join(Use)


class Command(StudyImportCommand):
    help = (
        "Import the items of a file of any kind (CSV, Excel, JSON, JSON Lines, Parquet, zip with "
        "pictures), saying what its columns are. Without --map the columns' names are gone by."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_protocol_argument(parser)
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="USE=COLUMN",
            help=f"what a column is; may be repeated. Uses: {USES}",
        )
        parser.add_argument(
            "--system",
            action="append",
            default=[],
            metavar="COLUMN=SYSTEM",
            help="whose responses a column holds, where there is a column for each system",
        )
        parser.add_argument("--encoding", default="", help=f"such as {', '.join(ENCODINGS[:3])}")
        parser.add_argument("--delimiter", default="", help="between columns of CSV: , ; tab |")
        parser.add_argument(
            "--sheet", default="", help="of an Excel file; the first one if not said"
        )
        parser.add_argument(
            "--leave-out", action="store_true", help="the items in which something is wrong"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what it would come to")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        require(file.is_file(), CommandError(f"There is no file at {file}.", returncode=2))
        with (
            without_garbage_collection(),
            opened_table(file, _form(options), pictures=Folder(file.parent)) as table,
        ):
            mapping, reasons = _mapping(table, options)
            self._import(table, mapping, reasons, options)

    def _import(
        self,
        table: OpenTable,
        mapping: ColumnMapping,
        reasons: dict[str, CodedText],
        options: dict[str, Any],
    ) -> None:
        protocol = read_protocol(options["protocol"]) if options["protocol"] else None
        study = Study.objects.filter(slug=options["study"]).first()
        is_pool = protocol is not None and any(
            question.kind == "selection" for question in protocol.questions
        )
        kind = study.kind if study else ("alternatives" if is_pool else "rating")
        faults = Faults()
        items = items_of(table, mapping, faults=faults, kind=kind)
        if (faults.n and not options["leave_out"]) or not len(items):
            counted = "1 fault" if faults.n == 1 else f"{faults.n:,} faults"
            raise AnnotationError(
                f"{table.path.name} has {counted}; nothing was imported.\n{faults_as_text(faults)}",
                code="faults",
            )
        summary = {
            "mapping": mapping.plain,
            "reasons": {
                name: {"code": reason.code, "text": reason} for name, reason in reasons.items()
            },
            "items": len(items),
            "candidates": items.n_candidates,
            "systems": items.n_systems,
            "left_out": items.n_faulty,
            "notes": items.notes(),
            "reading": items.report().plain(),
        }
        if options["dry_run"]:
            text = "\n".join(
                [
                    f"{table.path.name}: {_in_words(summary, mapping)} Nothing was imported.",
                    *items.report().sentences(),
                ]
            )
            self.stdout.write(json.dumps(summary, ensure_ascii=False) if options["json"] else text)
            return
        imported = import_study(
            draft=mapped_study(items, kind=kind, has_protocol=protocol is not None),
            path=table.path,
            slug=options["study"],
            title=options["title"],
            owner=owner_named(options["owner"]),
            team=team_named(options["team"]),
            protocol=protocol,
        )
        summary |= {"imported": imported.n_items, "known": imported.n_items_known}
        self.stdout.write(
            json.dumps(summary, ensure_ascii=False) if options["json"] else str(imported)
        )
        self.warn_of_ownership(imported)


def _form(options: dict[str, Any]) -> FileFormat:
    delimiter = {"tab": "\t", "\\t": "\t"}.get(options["delimiter"], options["delimiter"])
    require(
        not delimiter or delimiter in DELIMITERS,
        CommandError(f"--delimiter '{delimiter}' is not one of: , ; tab |", returncode=2),
    )
    encoding = options["encoding"].lower()
    try:
        "".encode(encoding or "utf-8")
    except LookupError:
        raise CommandError(
            f"--encoding '{encoding}' is none that is known.", returncode=2
        ) from None
    return FileFormat(encoding=encoding, delimiter=delimiter, sheet=options["sheet"])


def _mapping(
    table: OpenTable, options: dict[str, Any]
) -> tuple[ColumnMapping, dict[str, CodedText]]:
    """The mapping that the options say or, without --map, a guess with the reason of each use."""
    profile = profile_table(table)
    columns = [column.name for column in profile.columns]
    systems = dict(_pair(text, "--system", columns, 0) for text in options["system"])
    pairs = [_pair(text, "--map", columns, 1) for text in options["map"]]
    for use, _column in pairs:
        require(
            use in list(Use), CommandError(f"--map {use}=…: a use is one of {USES}.", returncode=2)
        )
    if not pairs:
        guessed = profile.guess()
        mapping = ColumnMapping(
            {**guessed.uses, **dict.fromkeys(systems, Use.RESPONSE)}, systems
        ).among(columns)
        reasons = guess_reasons(guessed, profile.columns, profile.n_rows)
        return mapping, {name: reasons[name] for name in guessed.uses if name not in systems}
    uses = {column: Use(use) for use, column in pairs} | dict.fromkeys(systems, Use.RESPONSE)
    return ColumnMapping(uses, systems).among(columns), {}


def _pair(text: str, option: str, columns: list[str], position: int) -> tuple[str, str]:
    first, equals, second = text.partition("=")
    pair = first.strip(), second.strip()
    require(
        (equals and all(pair)),
        CommandError(f"{option} '{text}' is not of the form NAME=NAME.", returncode=2),
    )
    if pair[position] not in columns:
        listed = ", ".join(columns) or "none"
        raise CommandError(
            f"{option} '{text}': there is no column '{pair[position]}'. Columns: {listed}.",
            returncode=2,
        )
    return pair


def _in_words(summary: dict[str, Any], mapping: ColumnMapping) -> str:
    uses = ", ".join(f"{column} as {use}" for column, use in mapping.uses.items())
    return (
        f"{summary['items']:,} items, {summary['candidates']:,} candidates, {summary['systems']:,} "
        f"systems, with {uses}."
    )
