"""Files: what is written is whole or not there, and what is read is a plain file."""

import os
from collections.abc import Iterable
from contextlib import suppress
from errno import EISDIR, ESPIPE
from pathlib import Path

from error_codes import CorrectableError


def write_whole(path: Path, content: str | Iterable[str | bytes]) -> None:
    """Replace a file by this content, in one step; something else, such as a pipe, is written to.

    It may come in parts, which are never all in memory.
    """
    parts = [content] if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            _write(path, parts)
        else:
            # A link stays, and what it leads to is replaced.
            _replace(Path(os.path.realpath(path)), parts)
    except OSError as error:
        raise FileUnwritable(f"{path} cannot be written: {error.strerror}.") from None


def require_writable(path: Path) -> None:
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        if path.is_file() or not path.exists():
            partial = _partial(Path(os.path.realpath(path)))
            partial.touch()
            partial.unlink()
    except OSError as error:
        raise FileUnwritable(f"{path} cannot be written: {error.strerror}.") from None


def plain_file(path: Path) -> Path:
    # The path of what can be read more than once, or OSError: nobody may write into a pipe.
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(ESPIPE, "it is a pipe or a device; write it to a file first", str(path))
    return path


def reason_of(error: object) -> str:
    """The first line of what somebody else's error says, as part of a sentence; of the operating
    system's without the path, whose folder on a server is nobody's business."""
    text = (isinstance(error, OSError) and error.strerror) or str(error)
    return text.strip().split("\n", 1)[0].rstrip(". ")


def _partial(path: Path) -> Path:
    return path.parent / f"{path.name}.partial"


def _write(path: Path, parts: Iterable[str | bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(part.encode() if isinstance(part, str) else part for part in parts)


def _replace(path: Path, parts: Iterable[str | bytes]) -> None:
    partial = _partial(path)
    try:
        _write(partial, parts)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


class FileUnwritable(CorrectableError):
    """A file cannot be written there."""
