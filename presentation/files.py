"""Writing a file whole, or not at all."""

import os
from contextlib import suppress
from errno import EISDIR
from pathlib import Path

from presentation.exceptions import FileUnwritable


def write_whole(path: Path, content: str) -> None:
    """Replace a file by this text, in one step; what is no file, such as a pipe, is written to."""
    try:
        if path.exists() and not path.is_file():
            path.write_text(content, encoding="utf-8")
        else:
            # A link stays, and what it leads to is replaced.
            _replace(Path(os.path.realpath(path)), content)
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


def _replace(path: Path, content: str) -> None:
    partial = _partial(path)
    try:
        partial.write_text(content, encoding="utf-8")
        partial.replace(path)
    except OSError:
        with suppress(OSError):
            partial.unlink()
        raise
