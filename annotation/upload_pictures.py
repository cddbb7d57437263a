"""The pictures of an uploaded zip, read from the database in parts."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from annotation.exceptions import ImportRefused
from annotation.models import Upload, UploadPart
from annotation.readers.drafts import PictureDraft
from annotation.readers.formats import FileFormat
from annotation.readers.pictures import Archive, read_picture
from annotation.readers.rows import Row
from annotation.uploads import PART_BYTES
from presentation.files import reason_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

AnyArchive = TypeVar("AnyArchive", bound=Archive)
PARTS_IN_MEMORY = 4


class StoredFile(io.RawIOBase):
    """An upload's content, of which only the parts that are read leave the database."""

    def __init__(self, upload: Upload) -> None:
        self._size, self._position = upload.n_bytes, 0
        parts = UploadPart.objects.filter(upload=upload)
        # A small file came in one piece, however large that is.
        self._part_bytes = PART_BYTES if parts.count() > 1 else max(self._size, 1)

        @lru_cache(maxsize=PARTS_IN_MEMORY)
        def content(position: int) -> bytes:
            return bytes(parts.values_list("content", flat=True).get(position=position))

        self._part = content

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._position >= self._size:
            return 0
        part, start = divmod(self._position, self._part_bytes)
        content = self._part(part)[start : start + len(view)]
        view[: len(content)] = content
        self._position += len(content)
        return len(content)


@contextmanager
def opened_pictures(upload: Upload, kind: type[AnyArchive]) -> Iterator[AnyArchive]:
    path = Path(upload.file_name)
    try:
        with zipfile.ZipFile(io.BufferedReader(StoredFile(upload))) as archive:
            yield kind(archive, FileFormat.of(upload.form).table)
    except (zipfile.BadZipFile, UnicodeError, UploadPart.DoesNotExist) as error:
        raise ImportRefused(
            path, f"it cannot be read: {reason_of(error)}.", code="unreadable"
        ) from None


def uploaded_picture(upload: Upload, name: str) -> PictureDraft:
    path = Path(upload.file_name)
    with opened_pictures(upload, Archive) as source:
        picture = read_picture(Row(path, 1, {"": name}), "", source)
    if picture is None:
        raise ImportRefused(path, "no picture is named.", code="no_picture")
    return picture
