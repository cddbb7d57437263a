"""Options that choose the rows of a plain table, and the columns that name its units."""

from argparse import ArgumentTypeError
from collections.abc import Iterable

from django.core.management.base import CommandParser


def add_item(parser: CommandParser) -> None:
    parser.add_argument(
        "--item",
        required=True,
        action="append",
        metavar="COLUMN",
        help="what is judged; several columns together where one does not distinguish units",
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
    """A column and its value; the value may hold further equals signs."""
    column, equals, value = text.partition("=")
    if not (equals and column.strip()):
        raise ArgumentTypeError(f"'{text}' is not of the form COLUMN=VALUE")
    return column.strip(), value.strip()


def item_columns(item: Iterable[str]) -> tuple[str, ...]:
    """The columns of a unit, each once."""
    return tuple(dict.fromkeys(item))


def values_by_column(where: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The values that rows may have in each column."""
    values: dict[str, list[str]] = {}
    for column, value in where:
        values.setdefault(column, []).append(value)
    return values
