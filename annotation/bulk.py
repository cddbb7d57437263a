"""Many rows of one table at once, without making an object of each.

At a hundred thousand items the objects take most of an import's time. What `bulk_create` does for
its objects happens here too: defaults, and values as the database has them. Constraints hold.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import Any, TypeVar

from django.db import connection, models

T = TypeVar("T")
# Items or submissions of a file that are in memory at once.
DRAFTS_AT_ONCE = 500
# SQLite's limit before version 3.32.
MOST_PARAMETERS = 999
# Types that a database driver takes as they are.
PLAIN = (models.CharField, models.TextField, models.IntegerField, models.FloatField)


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch


def insert_rows(
    model: type[models.Model], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write rows of these attributes; every other column has its default."""
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    named = [next(field for field in fields if field.attname == name) for name in names]
    others = [field for field in fields if field not in named]
    columns = ", ".join(connection.ops.quote_name(str(one.column)) for one in (*named, *others))
    table = f"{connection.ops.quote_name(model._meta.db_table)} ({columns})"
    complete = _complete(named, others, rows)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in complete:
                    copy.write_row(row)
        else:
            insert_many(cursor, f"INSERT INTO {table}", complete, n_columns=len(fields))


def insert_many(
    database: Any, insert: str, rows: Iterable[Sequence[Any]], *, n_columns: int, mark: str = "%s"
) -> None:
    """Write rows into SQLite by a statement that ends before VALUES.

    Many rows in one statement take half the time of a statement each.
    """
    marks = f"({', '.join([mark] * n_columns)})"
    for n, batches in groupby(batched(rows, MOST_PARAMETERS // n_columns), key=len):
        statement = f"{insert} VALUES {', '.join([marks] * n)}"
        database.executemany(statement, (list(chain.from_iterable(each)) for each in batches))


def _complete(
    named: Sequence[models.Field[Any, Any]],
    others: Sequence[models.Field[Any, Any]],
    rows: Iterable[Sequence[Any]],
) -> Iterable[Sequence[Any]]:
    conversions = [(n, _conversion(field)) for n, field in enumerate(named) if not _is_plain(field)]
    # One that is called has another value for every row.
    constant = [None if callable(field.default) else _default(field) for field in others]
    called = [
        (len(named) + n, _called_default(field))
        for n, field in enumerate(others)
        if callable(field.default)
    ]
    if not (conversions or others):
        return rows

    def complete(row: Sequence[Any]) -> list[Any]:
        values = [*row, *constant]
        for n, convert in conversions:
            values[n] = convert(values[n])
        for n, default in called:
            values[n] = default()
        return values

    return map(complete, rows)


def _is_plain(field: models.Field[Any, Any]) -> bool:
    return isinstance(field, (*PLAIN, models.ForeignKey))


def _default(field: models.Field[Any, Any]) -> Any:
    default = field.get_default()
    return default if _is_plain(field) else _conversion(field)(default)


def _called_default(field: models.Field[Any, Any]) -> Callable[[], Any]:
    default: Callable[[], Any] | None = field.default if field.has_default() else None
    if callable(default) and _is_plain(field):
        return default
    return lambda: _default(field)


def _conversion(field: models.Field[Any, Any]) -> Callable[[Any], Any]:
    return lambda value: field.get_db_prep_save(value, connection)
