import posixpath
import zipfile
import zlib
from pathlib import Path
from typing import Literal, Protocol

from annotation.readers.drafts import PictureDraft
from annotation.readers.rows import Row

MOST_BYTES = 2 * 1024 * 1024
# A picture of one colour has a thousand times fewer bytes than what browsers make of it.
MOST_PIXELS = 50_000_000
# The frame headers of JPEG: all of C0 to CF but tables (C4, CC) and an extension (C8).
JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"<svg": "image/svg+xml",
}


class PictureSource(Protocol):
    def size(self, name: str) -> int | None:
        """In bytes; None where there is no such picture."""

    def content(self, name: str) -> bytes:
        """The picture, or OSError."""


class Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def size(self, name: str) -> int | None:
        path = self._path / name
        return path.stat().st_size if path.is_file() else None

    def content(self, name: str) -> bytes:
        return (self._path / name).read_bytes()


class Archive:
    def __init__(self, archive: zipfile.ZipFile, table: str) -> None:
        self._archive, self._folder = archive, posixpath.dirname(table)

    def size(self, name: str) -> int | None:
        member = self._member(name)
        return None if member is None else member.file_size

    def content(self, name: str) -> bytes:
        member = self._member(name)
        try:
            return self._archive.read(member) if member else b""
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            # RuntimeError is what a picture under a password comes to.
            raise OSError(0, str(error)) from None

    def _member(self, name: str) -> zipfile.ZipInfo | None:
        path = posixpath.normpath(posixpath.join(self._folder, name.replace("\\", "/")))
        return self._archive.NameToInfo.get(path)


class NamesOfPictures:
    MARK = b"GIF89a\0\0\0\0"

    def size(self, name: str) -> int | None:
        return len(name)

    def content(self, name: str) -> bytes:
        return self.MARK + name.encode()


class NoPictures:
    def size(self, name: str) -> int | None:
        return None

    def content(self, name: str) -> bytes:
        raise OSError(0, "no pictures came with the file")


def read_picture(entry: Row, field: str, source: PictureSource) -> PictureDraft | None:
    name = entry.text(field).strip()
    if not name:
        return None
    if name.lower().startswith(("http://", "https://")):
        raise entry.refuse(
            "a picture at a web address is not fetched. Put it into a zip with the table.",
            field,
            code="web_address",
        )
    try:
        size = source.size(name)
        if size is None:
            raise entry.refuse(f"there is no picture at {name}.", field, code="no_picture")
        if size > MOST_BYTES:
            raise entry.refuse(f"{name} is over 2 MiB.", field, code="too_large")
        content = source.content(name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise entry.refuse(
            f"{name[:40]} cannot be read: {reason}.", field, code="unreadable"
        ) from None
    media_type = _media_type(content)
    if media_type is None:
        raise entry.refuse(
            f"{name} is not a PNG, JPEG, GIF, WebP or SVG picture.", field, code="not_picture"
        )
    if (n := n_pixels(content)) > MOST_PIXELS:
        raise entry.refuse(
            f"{name} has {n / 1e6:,.0f} million pixels; {MOST_PIXELS // 10**6} million fit.",
            field,
            code="too_many_pixels",
        )
    return PictureDraft(media_type=media_type, content=content)


def _media_type(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    start = content.lstrip()
    if start.startswith(b"<?xml") and b"<svg" in start:
        return "image/svg+xml"
    return next((kind for mark, kind in SIGNATURES.items() if start.startswith(mark)), None)


def n_pixels(content: bytes) -> int:
    """Width times height as the picture says of itself; 0 where it says nothing that is known."""
    if content[:8] == b"\x89PNG\r\n\x1a\n":
        return _number(content[16:20]) * _number(content[20:24])
    if content[:4] == b"GIF8":
        return _number(content[6:8], "little") * _number(content[8:10], "little")
    if content[:4] == b"RIFF":
        return _webp_pixels(content)
    return _jpeg_pixels(content) if content[:2] == b"\xff\xd8" else 0


def _number(part: bytes, order: Literal["big", "little"] = "big") -> int:
    return int.from_bytes(part, order)


def _webp_pixels(content: bytes) -> int:
    kind = content[12:16]
    if kind == b"VP8X":
        return (_number(content[24:27], "little") + 1) * (_number(content[27:30], "little") + 1)
    if kind == b"VP8L":
        bits = _number(content[21:25], "little")
        return ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1)
    sides = _number(content[26:28], "little"), _number(content[28:30], "little")
    return (sides[0] & 0x3FFF) * (sides[1] & 0x3FFF)


def _jpeg_pixels(content: bytes) -> int:
    position = 2
    while position + 9 <= len(content) and content[position] == 0xFF:
        marker = content[position + 1]
        if marker in JPEG_FRAMES:
            sides = content[position + 5 : position + 9]
            return _number(sides[:2]) * _number(sides[2:])
        position += 1 if marker == 0xFF else 2 + _number(content[position + 2 : position + 4])
    return 0
