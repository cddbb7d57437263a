"""Rows of a table as lines of JSON, the same from SQLite and from PostgreSQL, and back."""

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import BinaryField, Field, JSONField, Model
from django.utils.duration import duration_string

ROWS_AT_ONCE = 2000
# Of tables with pieces of files, pictures or checkpoints, of a megabyte and more each.
LARGE_ROWS_AT_ONCE = 8
DIGEST_BYTES = 16
Row = tuple[Any, ...]


class Digest:
    """How many rows there are and what they hold, whatever their order."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._sum = 0

    def add(self, line: str) -> None:
        digest = blake2b(line.encode(), digest_size=DIGEST_BYTES).digest()
        self._sum = (self._sum + int.from_bytes(digest)) % 256**DIGEST_BYTES
        self.n_rows += 1

    def __str__(self) -> str:
        return f"{self._sum:0{2 * DIGEST_BYTES}x}"


def columns(model: type[Model]) -> list["Field[Any, Any]"]:
    return list(model._meta.concrete_fields)


def read_lines(model: type[Model]) -> Iterator[str]:
    """Every row as a line, by its key: no cursor is held, as none may be behind a pooler."""
    fields = columns(model)
    names = [field.attname for field in fields]
    key = names.index(model._meta.pk.attname)
    rows = model._base_manager.order_by("pk").values_list(*names)
    at_once = _rows_at_once(fields)
    batch = list(rows[:at_once])
    while batch:
        for row in batch:
            yield encode(fields, row)
        batch = list(rows.filter(pk__gt=batch[-1][key])[:at_once])


def _rows_at_once(fields: "list[Field[Any, Any]]") -> int:
    return LARGE_ROWS_AT_ONCE if any(isinstance(f, BinaryField) for f in fields) else ROWS_AT_ONCE


def write_rows(model: type[Model], lines: Iterable[str]) -> None:
    """Insert rows as they are: no default, no time of now, no key of the database's."""
    fields = columns(model)
    quoted = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    table = connection.ops.quote_name(model._meta.db_table)
    marks = ", ".join(["%s"] * len(fields))
    at_once = _rows_at_once(fields)
    statement = f"INSERT INTO {table} ({quoted}) VALUES ({marks})"
    with connection.cursor() as cursor:
        batch: list[Row] = []
        for line in lines:
            batch.append(decode(fields, line))
            if len(batch) == at_once:
                cursor.executemany(statement, batch)
                batch = []
        if batch:
            cursor.executemany(statement, batch)


def encode(fields: "list[Field[Any, Any]]", row: Row) -> str:
    """A row as a line; a value of JSON in the form that both databases keep."""
    values = [
        _one_form(value) if isinstance(field, JSONField) else _plain(value)
        for field, value in zip(fields, row, strict=True)
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def decode(fields: "list[Field[Any, Any]]", line: str) -> Row:
    """A line as the parameters of an INSERT."""
    values = json.loads(line)
    return tuple(_parameter(field, value) for field, value in zip(fields, values, strict=True))


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal() | UUID():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return duration_string(value)
        case _:
            return base64.b64encode(bytes(value)).decode("ascii")


def _one_form(value: Any) -> Any:
    """PostgreSQL keeps numbers as decimals, so that 1e16 comes back as a whole number."""
    if isinstance(value, dict):
        return {name: _one_form(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_one_form(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parameter(field: "Field[Any, Any]", value: Any) -> Any:
    if isinstance(field, JSONField) and value is None and not field.null:
        # JSON's own null: the column takes no other.
        return connection.ops.adapt_json_value(None, field.encoder)
    return field.get_db_prep_save(field.to_python(value), connection)
