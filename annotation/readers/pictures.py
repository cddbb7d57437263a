import posixpath
import zipfile
import zlib
from collections.abc import Sequence
from functools import cached_property
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


# What a picture's file may be called; a name without one of these may still lack its extension.
EXTENSIONS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")


class PictureSource(Protocol):
    def find(self, name: str) -> Sequence[str]:
        """Paths of the pictures that a cell may mean by `name`: none, one, or several."""

    def size(self, path: str) -> int:
        """In bytes."""

    def content(self, path: str) -> bytes:
        """The picture, or OSError."""


class Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, name: str) -> Sequence[str]:
        return [name] if (self._path / name).is_file() else []

    def size(self, path: str) -> int:
        return (self._path / path).stat().st_size

    def content(self, path: str) -> bytes:
        return (self._path / path).read_bytes()


class Archive:
    """The pictures of a zip that a table came in.

    A name is a path from the table's folder or, failing that, a picture of that file name in any
    folder: upper and lower case, backslashes and a missing extension make no difference.
    """

    def __init__(self, archive: zipfile.ZipFile, table: str) -> None:
        self._archive, self._folder = archive, posixpath.dirname(table)

    def exact_path(self, name: str) -> str | None:
        """A path from the table's folder or, failing that, from the top of the zip."""
        plain = posixpath.normpath(name.replace("\\", "/"))
        paths = (posixpath.normpath(posixpath.join(self._folder, plain)), plain)
        return next((path for path in paths if path in self._archive.NameToInfo), None)

    def find(self, name: str) -> Sequence[str]:
        if path := self.exact_path(name):
            return [path]
        asked = posixpath.normpath(name.replace("\\", "/")).casefold()
        found = self._by_name.get(posixpath.basename(asked), [])
        in_its_folder = [path for path in found if _is_end(path.casefold(), asked)]
        return in_its_folder or found

    def size(self, path: str) -> int:
        return self._archive.NameToInfo[path].file_size

    def content(self, path: str) -> bytes:
        try:
            return self._archive.read(path)
        except (
            *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
            UnicodeError,
        ) as error:
            # RuntimeError is what a picture under a password comes to.
            raise OSError(0, str(error)) from None

    @cached_property
    def pictures(self) -> list[str]:
        return [
            name
            for name in self._archive.NameToInfo
            if name.casefold().endswith(EXTENSIONS) and not name.startswith("__MACOSX/")
        ]

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """Paths by the file's name, and by its name without the extension, in small letters."""
        paths: dict[str, list[str]] = {}
        for path in self.pictures:
            name = posixpath.basename(path).casefold()
            for known in (name, posixpath.splitext(name)[0]):
                paths.setdefault(known, []).append(path)
        return paths


def _is_end(path: str, asked: str) -> bool:
    return f"/{path}".endswith(f"/{asked}") or f"/{posixpath.splitext(path)[0]}".endswith(
        f"/{asked}"
    )


class ListedPictures(Archive):
    """The pictures of a zip without reading them: the content is a mark and a path.

    Pictures with the same bytes, by their checksum and size, have the path of the first.
    """

    MARK = b"GIF89a\0\0\0\0"

    def content(self, path: str) -> bytes:
        return self.MARK + self._first_paths[self._checksum(path)].encode()

    def _checksum(self, path: str) -> tuple[int, int]:
        info = self._archive.NameToInfo[path]
        return info.CRC, info.file_size

    @cached_property
    def _first_paths(self) -> dict[tuple[int, int], str]:
        return {self._checksum(path): path for path in reversed(self._archive.NameToInfo)}


class NoPictures:
    def find(self, name: str) -> Sequence[str]:
        return []

    def size(self, path: str) -> int:
        return 0

    def content(self, path: str) -> bytes:
        raise OSError(0, "no pictures came with the file")


def read_picture(
    entry: Row, field: str, source: PictureSource, folder: str | None = None
) -> PictureDraft | None:
    """The picture that a cell names; of several with that name the one in `folder`."""
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
        paths = source.find(name)
        if len(paths) > 1:
            paths = [path for path in paths if posixpath.dirname(path) == folder] or paths
        if not paths:
            raise entry.refuse(f"there is no picture at {name}.", field, code="no_picture")
        if len(paths) > 1:
            raise entry.refuse(
                f"{name} is in several folders: {', '.join(paths[:3])}.",
                field,
                code="several_pictures",
            )
        [path] = paths
        if source.size(path) > MOST_BYTES:
            raise entry.refuse(f"{name} is over 2 MiB.", field, code="too_large")
        content = source.content(path)
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
