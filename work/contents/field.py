"""A column of bytes, of which large ones are objects where the site has a storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import models

from work.contents.objects import StoredObject, read_object, write_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.expressions import Expression

if TYPE_CHECKING:
    BinaryField = models.BinaryField[Any, Any]
else:
    BinaryField = models.BinaryField

LARGE_BYTES = 16 * 1024
# Drawn once: what begins so is a reference, or was sent by somebody who wants it taken for one.
MARK = bytes.fromhex("a55a79c1f02e4d7b9d3e6b1c8f04d2e7")
WHOLE, REFERENCE = b"\x00", b"\x01"
KEY_BYTES, DIGEST_BYTES = 16, 32
REFERENCE_BYTES = len(MARK) + 1 + KEY_BYTES + DIGEST_BYTES


class ContentField(BinaryField):
    """Bytes as a BinaryField has them; those from LARGE_BYTES on are objects of the site's storage.

    An object is written before its row is, and stays when the row goes, until it is swept
    (`work.contents.columns`): so a row that can be seen has its content, whoever is killed.
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
    """The content that a value stands for; ContentMissing where its object is not there."""
    referenced = object_of(stored)
    return stored.removeprefix(MARK + WHOLE) if referenced is None else read_object(referenced)


def object_of(stored: bytes) -> StoredObject | None:
    """The object that a column's value refers to, if it does."""
    if len(stored) != REFERENCE_BYTES or not stored.startswith(MARK + REFERENCE):
        return None
    key = stored[-KEY_BYTES - DIGEST_BYTES : -DIGEST_BYTES]
    return StoredObject(UUID(bytes=key), stored[-DIGEST_BYTES:])
