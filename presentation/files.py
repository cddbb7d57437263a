"""Writing a file whole, or not at all."""

import os
from collections.abc import Iterable
from contextlib import suppress
from errno import EISDIR
from pathlib import Path

from presentation.exceptions import FileUnwritable


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
    """Refuse what `write_whole` could not write, before there is anything to lose."""
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        if path.is_file() or not path.exists():
            partial = _partial(Path(os.path.realpath(path)))
            partial.touch()
            partial.unlink()
    except OSError as error:
        raise FileUnwritable(f"{path} cannot be written: {error.strerror}.") from None


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
