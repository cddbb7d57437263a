"""What is large of a row: files that were sent, pictures, reports, logs and checkpoints.

It is in the row, or, where OBJECTS_URL names a storage, an object there by its digest, to which
the row refers. Which of both it is, nobody who reads a row sees.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, storages
from django.db import connection, models, transaction
from django.utils import timezone

from work.exceptions import ContentMissing

if TYPE_CHECKING:
    from django.core.files.storage import Storage
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.expressions import Expression

    BinaryField = models.BinaryField[Any, Any]
else:
    BinaryField = models.BinaryField


# Contents as objects of the site's storage: each written once under a name of its own.

FOLDER = "contents"
HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class StoredObject:
    """Where a content is, and what it must be. No two rows share one: a name that no row has is
    never had by one later, so that what is swept cannot be wanted again."""

    key: UUID
    digest: bytes

    @property
    def name(self) -> str:
        return f"{FOLDER}/{self.key.hex[:2]}/{self.key.hex}"


def write_object(content: bytes) -> StoredObject:
    stored = StoredObject(uuid4(), sha256(content).digest())
    _storage().save(stored.name, ContentFile(content))
    return stored


def read_object(stored: StoredObject) -> bytes:
    try:
        with _storage().open(stored.name) as file:
            content = bytes(file.read())
    except FileNotFoundError:
        raise ContentMissing(
            f"{stored.name} is not in the site's storage. OBJECTS_URL must name the storage that "
            "it was written to; what was lost there is in a backup of the site.",
            code="missing",
        ) from None
    if sha256(content).digest() != stored.digest:
        raise ContentMissing(
            f"{stored.name} in the site's storage was changed or cut short.", code="changed"
        )
    return content


def delete_object(stored: StoredObject) -> None:
    _storage().delete(stored.name)


def object_keys() -> Iterator[UUID]:
    for folder in _listed(FOLDER)[0]:
        for name in _listed(f"{FOLDER}/{folder}")[1]:
            if HEX.fullmatch(name):
                yield UUID(hex=name)


def delete_old_object(key: UUID, *, before: datetime) -> bool:
    name, storage = StoredObject(key, b"").name, _storage()
    if storage.get_modified_time(name) >= before:
        return False
    storage.delete(name)
    return True


def _listed(folder: str) -> tuple[list[str], list[str]]:
    try:
        folders, files = _storage().listdir(folder)
    except FileNotFoundError:
        return [], []
    return sorted(folders), sorted(files)


def _storage() -> Storage:
    return storages["objects"]


@register(Tags.files, deploy=True)
def check_objects(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if not settings.CONTENT_IN_OBJECTS:
        return []
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        stored = write_object(b"check --deploy")
        read_object(stored)
        delete_object(stored)
    except (OSError, BotoCoreError, ClientError, ContentMissing) as refused:
        return [
            Error(
                "Nothing can be stored, read and deleted in the storage that OBJECTS_URL names: "
                f"{refused}",
                hint="Name one that is there, with keys that may do all three "
                "(docs/operations.md).",
                id="work.E001",
            )
        ]
    return []


class SyncedFolder(FileSystemStorage):
    """A folder whose files are on the disk when they are saved, as rows are that refer to them."""

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        saved = super().save(name, content, max_length)
        path = self.path(saved)
        for each in (path, os.path.dirname(path)):
            descriptor = os.open(each, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return str(saved)


# A column of bytes, of which large ones are objects where the site has a storage.

LARGE_BYTES = 16 * 1024
# Drawn once: what begins so is a reference, or was sent by somebody who wants it taken for one.
MARK = bytes.fromhex("a55a79c1f02e4d7b9d3e6b1c8f04d2e7")
WHOLE, REFERENCE = b"\x00", b"\x01"
KEY_BYTES, DIGEST_BYTES = 16, 32
REFERENCE_BYTES = len(MARK) + 1 + KEY_BYTES + DIGEST_BYTES


class ContentField(BinaryField):
    """Bytes as a BinaryField has them; those from LARGE_BYTES on are objects of the site's storage.

    An object is written before its row is, and stays when the row goes, until it is swept
    (`work.contents`): so a row that can be seen has its content, whoever is killed.
    """

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        # To the database it is a column of bytes, whatever they stand for, so that no migration
        # comes of it. One that reads such a column has references, and wants content_of.
        name, _path, args, options = super().deconstruct()
        return name, "django.db.models.BinaryField", args, options

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        if value is not None and not hasattr(value, "as_sql"):
            value = stored_form(bytes(value), in_objects=settings.CONTENT_IN_OBJECTS)
        return super().get_db_prep_save(value, connection)

    def from_db_value(
        self, value: Any, expression: Expression, connection: BaseDatabaseWrapper
    ) -> bytes | None:
        return None if value is None else content_of(bytes(value))


def stored_form(content: bytes, *, in_objects: bool) -> bytes:
    """What the column holds for a content; one that goes to the storage is there by now."""
    if in_objects and len(content) >= LARGE_BYTES:
        stored = write_object(content)
        return MARK + REFERENCE + stored.key.bytes + stored.digest
    return MARK + WHOLE + content if content.startswith(MARK) else content


def content_of(stored: bytes) -> bytes:
    referenced = object_of(stored)
    return stored.removeprefix(MARK + WHOLE) if referenced is None else read_object(referenced)


def object_of(stored: bytes) -> StoredObject | None:
    if len(stored) != REFERENCE_BYTES or not stored.startswith(MARK + REFERENCE):
        return None
    return StoredObject(
        UUID(bytes=stored[-KEY_BYTES - DIGEST_BYTES : -DIGEST_BYTES]), stored[-DIGEST_BYTES:]
    )


# All columns of contents of the site: moving what they hold, and sweeping what none refers to.

# Longer than any transaction that has written an object, and not yet the row that refers to it.
KEEP_UNUSED = timedelta(days=2)
ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Column:
    model: type[models.Model]
    field: ContentField

    def references(self) -> Iterator[UUID]:
        for _key, stored in self._rows("LENGTH({column}) = %s", REFERENCE_BYTES, with_value=True):
            if referenced := object_of(stored):
                yield referenced.key

    def elsewhere(self, *, in_objects: bool) -> Iterator[Any]:
        if in_objects:
            yield from (key for key, _ in self._rows("LENGTH({column}) >= %s", LARGE_BYTES))
            return
        for key, stored in self._rows("LENGTH({column}) = %s", REFERENCE_BYTES, with_value=True):
            if object_of(stored):
                yield key

    def move(self, key: Any, *, in_objects: bool) -> int:
        with transaction.atomic(), connection.cursor() as cursor:
            lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
            cursor.execute(self._sql("SELECT {column} FROM {table} WHERE {key} = %s") + lock, [key])
            row = cursor.fetchone()
            if row is None or row[0] is None:
                return 0
            content = content_of(bytes(row[0]))
            cursor.execute(
                self._sql("UPDATE {table} SET {column} = %s WHERE {key} = %s"),
                [stored_form(content, in_objects=in_objects), key],
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
