"""Which rows of a plain table count, and what a unit is called that several columns name."""

from collections.abc import Mapping, Sequence

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row

LONGEST = 1000
SEPARATOR = " | "
MOST_VALUES = 8

# The values of a column of which a row has to have one; a row has to fit every column.
Where = Mapping[str, Sequence[str]]


def matching_rows(rows: Sequence[Row], where: Where) -> list[Row]:
    """The rows that `where` leaves, or ImportRefused, which names what is there, if none are."""
    for column, values in where.items():
        matches = [row for row in rows if row.optional(column, longest=LONGEST) in values]
        if not matches:
            raise _no_match(rows, column, values)
        rows = matches
    return list(rows)


def _no_match(rows: Sequence[Row], column: str, values: Sequence[str]) -> ImportRefused:
    present = sorted({row.optional(column, longest=LONGEST) for row in rows})
    listed = ", ".join(f"'{value}'" for value in present[:MOST_VALUES])
    more = f" and {len(present) - MOST_VALUES} more" if len(present) > MOST_VALUES else ""
    alternatives = " or ".join(f"'{value}'" for value in values)
    return ImportRefused(
        rows[0].path,
        f"no row has {alternatives} here; there are {listed}{more}.",
        field=column,
        code="unknown_value",
    )


def unit_names(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """What each row's unit is called: the value of a column, or the values of several."""
    seen: dict[str, tuple[str, ...]] = {}
    names = []
    for row in rows:
        parts = tuple(row.required(column, longest=LONGEST) for column in columns)
        name = SEPARATOR.join(parts)
        if seen.setdefault(name, parts) != parts:
            raise row.refuse(
                f"'{name}' could be two units, since values hold '{SEPARATOR}'; rename one.",
                code="ambiguous_unit",
            )
        names.append(name)
    return names
