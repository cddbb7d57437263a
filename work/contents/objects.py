"""Contents as objects of the site's storage: each written once under a name of its own."""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, storages

from work.exceptions import ContentMissing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.core.files.storage import Storage

FOLDER = "contents"
HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class StoredObject:
    """Where a content is, and what it must be. No two rows share one: a name that no row has is
    never had by one later, so that what is swept cannot be wanted again."""

    key: uuid.UUID
    digest: bytes

    @property
    def name(self) -> str:
        return f"{FOLDER}/{self.key.hex[:2]}/{self.key.hex}"


def write_object(content: bytes) -> StoredObject:
    """Store a content."""
    stored = StoredObject(uuid.uuid4(), sha256(content).digest())
    _storage().save(stored.name, ContentFile(content))
    return stored


def read_object(stored: StoredObject) -> bytes:
    """The content; ContentMissing where it is not there, or is another."""
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
    """Delete an object that no row refers to."""
    _storage().delete(stored.name)


def object_keys() -> Iterator[uuid.UUID]:
    """Of all objects with contents that the storage has."""
    for folder in _listed(FOLDER)[0]:
        for name in _listed(f"{FOLDER}/{folder}")[1]:
            if HEX.fullmatch(name):
                yield uuid.UUID(hex=name)


def delete_old_object(key: uuid.UUID, *, before: datetime) -> bool:
    """Delete an object that was written before a time; whether it was."""
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
