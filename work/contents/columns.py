"""All columns of contents of the site: moving what they hold, and sweeping what none refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection, models, transaction
from django.utils import timezone

from work.contents.field import (
    LARGE_BYTES,
    REFERENCE_BYTES,
    ContentField,
    content_of,
    object_of,
    stored_form,
)
from work.contents.objects import delete_old_object, object_keys

KEEP_UNUSED = timedelta(days=2)
"""Longer than any transaction that has written an object, and not yet the row that refers to it."""
ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Column:
    """A column of contents, read and written as the database has it."""

    model: type[models.Model]
    field: ContentField

    def references(self) -> Iterator[UUID]:
        """The keys of the objects that its rows refer to."""
        for _key, stored in self._rows("LENGTH({column}) = %s", REFERENCE_BYTES, with_value=True):
            if referenced := object_of(stored):
                yield referenced.key

    def elsewhere(self, *, in_objects: bool) -> Iterator[Any]:
        """The keys of the rows whose content is not where it is to be."""
        if in_objects:
            yield from (key for key, _ in self._rows("LENGTH({column}) >= %s", LARGE_BYTES))
            return
        for key, stored in self._rows("LENGTH({column}) = %s", REFERENCE_BYTES, with_value=True):
            if object_of(stored):
                yield key

    def move(self, key: Any, *, in_objects: bool) -> int:
        """Write a row's content where it is to be; its bytes, 0 where the row is gone."""
        with transaction.atomic(), connection.cursor() as cursor:
            lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
            cursor.execute(self._sql("SELECT {column} FROM {table} WHERE {key} = %s") + lock, [key])
            row = cursor.fetchone()
            if row is None or row[0] is None:
                return 0
            content = content_of(bytes(row[0]))
            stored = stored_form(content, in_objects=in_objects)
            cursor.execute(
                self._sql("UPDATE {table} SET {column} = %s WHERE {key} = %s"), [stored, key]
            )
            return len(content)

    def _rows(
        self, condition: str, n_bytes: int, *, with_value: bool = False
    ) -> Iterator[tuple[Any, bytes]]:
        """Rows by their key, some at once: no cursor is held, as none may be behind a pooler."""
        what = "{key}, {column}" if with_value else "{key}, ''"
        statement = f"SELECT {what} FROM {{table}} WHERE {condition}"
        last: list[Any] = []
        while True:
            after = " AND {key} > %s" if last else ""
            end = f" ORDER BY {{key}} LIMIT {ROWS_AT_ONCE}"
            with connection.cursor() as cursor:
                cursor.execute(self._sql(statement + after + end), [n_bytes, *last])
                rows = cursor.fetchall()
            yield from ((key, bytes(value) if with_value else b"") for key, value in rows)
            if len(rows) < ROWS_AT_ONCE:
                return
            last = [rows[-1][0]]

    def _sql(self, text: str) -> str:
        quote = connection.ops.quote_name
        return text.format(
            table=quote(self.model._meta.db_table),
            column=quote(str(self.field.column)),
            key=quote(str(self.model._meta.pk.column)),
        )


def content_columns() -> list[Column]:
    """Every column of contents of the site."""
    return [
        Column(model, field)
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.concrete_fields
        if isinstance(field, ContentField)
    ]


def move_contents(*, in_objects: bool, report: Callable[[int], object]) -> tuple[int, int]:
    """Move what is large into the storage, or all of it back into the database; rows and bytes.

    Each row for itself: what is broken off is gone on with, and the site may run meanwhile.
    """
    n_rows = n_bytes = 0
    for column in content_columns():
        for key in list(column.elsewhere(in_objects=in_objects)):
            moved = column.move(key, in_objects=in_objects)
            n_rows, n_bytes = n_rows + bool(moved), n_bytes + moved
            report(n_rows)
    return n_rows, n_bytes


def count_elsewhere(*, in_objects: bool) -> int:
    """How many rows `move_contents` would move."""
    return sum(1 for column in content_columns() for _ in column.elsewhere(in_objects=in_objects))


def sweep_objects() -> int:
    """Delete the objects that no row refers to any more, of rows that are deleted or whose
    transaction failed; how many."""
    before = timezone.now() - KEEP_UNUSED
    # Listed first: whatever a row comes to refer to meanwhile is younger.
    unused = set(object_keys())
    if unused:
        for column in content_columns():
            unused.difference_update(column.references())
    return sum(delete_old_object(key, before=before) for key in sorted(unused))
