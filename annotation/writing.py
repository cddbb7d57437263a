"""Writing a file whole, or not at all."""

from contextlib import suppress
from pathlib import Path

from annotation.exceptions import AnnotationError


def write_whole(path: Path, content: str) -> None:
    """Replace a file by this text, in one step."""
    partial = path.parent / f"{path.name}.partial"
    try:
        partial.write_text(content, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise AnnotationError(f"{path} cannot be written: {error.strerror}.") from None
