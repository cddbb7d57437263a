import json
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, get_args

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.readers.policies import REPEATS, Missing, Policies, Reading
from annotation.readers.shapes import SHAPES, Columns
from error_codes import require
from presentation.numbers import group_values

ROLES = ("item", "annotator")


class Result(Protocol):
    def record(self) -> dict[str, Any]: ...

    def lines(self) -> Iterator[str]: ...


class TableCommand(BaseCommand):
    requires_system_checks: list[str] = []
    shapes: tuple[str, ...] = ("long", "nested")
    repeats: tuple[str, ...] = REPEATS
    has_categories = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="CSV, TSV, Excel, JSON, JSON Lines or Parquet")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        add_where(parser)
        parser.add_argument(
            "--shape", choices=self.shapes, default="",
            help="of the table, such as a column per annotator (default: found)",
        )  # fmt: skip
        add_policies(parser, repeats=self.repeats, has_categories=self.has_categories)

    def write_result(self, result: Result, reading: Reading, options: dict[str, Any]) -> None:
        if options["json"]:
            self.stdout.write(
                json.dumps({**result.record(), "reading": reading.report.plain()}, indent=1)
            )
        else:
            self.stdout.write("\n".join([*result.lines(), *reading.report.sentences()]))


class LabelsCommand(TableCommand):
    shapes = SHAPES

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_item(parser)
        several = "given several times, each is the column of one of them"
        parser.add_argument(
            "--annotator", action="append", default=[], metavar="COLUMN",
            help=f"who labelled; {several}",
        )  # fmt: skip
        parser.add_argument(
            "--system", action="append", default=[], metavar="COLUMN",
            help=f"whose output is labelled; {several}",
        )  # fmt: skip
        parser.add_argument("--value", default="", metavar="COLUMN", help="the label")

    def columns(self, options: dict[str, Any], *, needs: tuple[str, ...] = ROLES) -> Columns:
        """Which columns hold what, as the options say.

        Without `--value`, one of the roles that the command needs may have a column for each of
        its members.
        """
        missing = [f"--{name}" for name in (*needs, "value") if not options[name]]
        if needs and (len(missing) > 2 or (missing and options["value"])):
            raise CommandError(f"Name the columns {', '.join(missing)} too.", returncode=2)
        return Columns(
            item=each_once(options["item"]),
            annotator=each_once(options["annotator"]),
            system=each_once(options["system"]),
            value=options["value"],
            cluster=options.get("cluster"),
            where=group_values(options["where"]),
        )


def add_policies(
    parser: CommandParser, *, repeats: tuple[str, ...], has_categories: bool = False
) -> None:
    parser.add_argument(
        "--missing", choices=get_args(Missing), default="words",
        help="read NA, N/A, None, null, NaN, - and empty cells as missing (default), or only "
        "empty cells",
    )  # fmt: skip
    parser.add_argument(
        "--repeats", choices=repeats, default="",
        help="which of several labels, or scores, of the same thing counts",
    )  # fmt: skip
    if has_categories:
        parser.add_argument(
            "--merge-categories", action="store_true",
            help="count categories as one that differ only by case, space or Unicode form, or as "
            "1 and 1.0",
        )  # fmt: skip


def reading_of(options: dict[str, Any]) -> Reading:
    return Reading(
        Policies(
            missing=options["missing"],
            repeats=options["repeats"],
            categories="merged" if options.get("merge_categories", False) else "as-written",
            shape=options.get("shape", ""),
            unmatched=options.get("unmatched", "refuse"),
        )
    )


def add_item(parser: CommandParser) -> None:
    parser.add_argument(
        "--item",
        action="append",
        default=[],
        metavar="COLUMN",
        help="what is judged; several columns together if one does not distinguish units",
    )


def add_cluster(parser: CommandParser) -> None:
    parser.add_argument(
        "--cluster", metavar="COLUMN", help="of items that are not independent of each other"
    )


def add_where(parser: CommandParser) -> None:
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        type=column_and_value,
        metavar="COLUMN=VALUE",
        help="only rows with this value; of one column, any of several; of several columns, all",
    )


def column_and_value(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    require(
        (equals and column.strip()), ArgumentTypeError(f"'{text}' is not of the form COLUMN=VALUE")
    )
    return column.strip(), value.strip()


def each_once(columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(columns))


def natural(text: str) -> int:
    require(text.isdecimal(), ArgumentTypeError(f"'{text}' is not a whole number from 0 up"))
    return int(text)


def positive(text: str) -> int:
    require(
        (text.isdecimal() and int(text)),
        ArgumentTypeError(f"'{text}' is not a whole number from 1 up"),
    )
    return int(text)
