"""The files in a zip of an export, of which each annotator has one or a folder."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from annotation.exceptions import ImportRefused
from presentation.files import reason_of

MOST_BYTES = 512 * 1024 * 1024
# RuntimeError is what a file under a password comes to.
UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Member:
    name: PurePosixPath
    path: Path


@contextmanager
def unpacked_members(path: Path) -> Iterator[list[Member]]:
    with tempfile.TemporaryDirectory() as folder:
        yield _unpacked(path, Path(folder))


def member_names(path: Path) -> list[PurePosixPath]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [PurePosixPath(info.filename) for info in _infos(archive)]
    except (*UNREADABLE, OSError, EOFError):
        return []


def _infos(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [
        info
        for info in archive.infolist()
        if not (info.is_dir() or any(part[:1] in "._" for part in info.filename.split("/")))
    ]


def _unpacked(path: Path, folder: Path) -> list[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = _infos(archive)
            if sum(info.file_size for info in infos) > MOST_BYTES:
                raise ImportRefused(
                    path,
                    "what is in it is over 512 MiB; import its files singly.",
                    code="too_large",
                )
            return [
                _unpacked_member(archive, info, folder / str(n)) for n, info in enumerate(infos)
            ]
    except (*UNREADABLE, OSError, EOFError) as error:
        raise ImportRefused(
            path, f"it is not a zip that can be read: {reason_of(error)}.", code="not_zip"
        ) from None


def _unpacked_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> Member:
    # The name alone: a path inside an archive may lead anywhere.
    name = PurePosixPath(info.filename)
    folder.mkdir()
    target = folder / name.name
    with archive.open(info) as source, target.open("wb") as content:
        shutil.copyfileobj(source, content)
    return Member(name, target)
