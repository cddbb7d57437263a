"""Which model it really is: SHA-256 of the files in a model's folder."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from metrics.scorers.errors import ModelChangedError

WEIGHT_SUFFIXES = frozenset({".safetensors", ".bin", ".pt", ".pth", ".npy"})
# Files of a model's folder that PyTorch does not read: other runtimes' weights, the model card.
FOREIGN_FILES = ("onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.mlmodel", "*.md")


class Fingerprint(NamedTuple):
    """SHA-256, in hexadecimal, of what a model computes with."""

    weights: str
    settings: str


def file_sha256(path: Path) -> str:
    """SHA-256 of a file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import os
    >>> file_sha256(Path(os.devnull))[:12]
    'e3b0c44298fc'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify_sha256(path: Path, expected: str) -> None:
    """Refuse a file that is not the one expected.

    Parameters
    ----------
    path : Path
    expected : str
        64 hexadecimal digits.

    Raises
    ------
    ModelChangedError
        If the SHA-256 of the file differs, or the file is missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     verify_sha256(Path(file.name), "0" * 64)
    Traceback (most recent call last):
        ...
    metrics.scorers.errors.ModelChangedError: ... has SHA-256 e3b0c44298fc..., not 000000000000...
    """
    if not path.is_file():
        raise ModelChangedError(
            f"there is no {path}, so its SHA-256 cannot be checked", code="missing"
        )
    digest = file_sha256(path)
    if digest != expected:
        raise ModelChangedError(
            f"{path.name} has SHA-256 {digest[:12]}..., not {expected[:12]}...: it is another model"
            f" or a damaged copy, so its scores would not be comparable. Install it anew ({path})",
            code="other_weights",
        )


def fingerprint(folder: Path) -> Fingerprint:
    """Fingerprint a model's folder: its weights, and all other files that shape its output.

    Model cards, hidden files and weights for other runtimes do not count, nor does a pickled copy
    (.bin) of weights that lie beside it as .safetensors.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    Fingerprint
        For one file of weights its SHA-256, as model hubs show it; for several, the SHA-256 of
        the list that ``sha256sum`` would print for them, sorted by name.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or nothing in it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     _ = Path(name, "config.json").write_text("{}")
    ...     _ = Path(name, "model.safetensors").write_text("")
    ...     fingerprint(Path(name)).weights[:12]
    'e3b0c44298fc'
    """
    files = sorted(_files(folder))
    if not files:
        raise FileNotFoundError(f"no model in {folder}")
    weights = [path for path in files if _holds_weights(path)]
    settings = [path for path in files if not _holds_weights(path)]
    return Fingerprint(_listing_sha256(folder, weights), _listing_sha256(folder, settings))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        foreign = any(relative.match(pattern) for pattern in FOREIGN_FILES)
        if path.is_file() and not hidden and not foreign and not _is_copy(path):
            yield path


def _holds_weights(path: Path) -> bool:
    """TensorFlow's are named variables.data-00000-of-00001."""
    return path.suffix in WEIGHT_SUFFIXES or path.suffix.startswith(".data-")


def _is_copy(path: Path) -> bool:
    return path.suffix == ".bin" and any(path.parent.glob("*.safetensors"))


def _listing_sha256(folder: Path, files: Iterable[Path]) -> str:
    listing = [(file_sha256(path), path.relative_to(folder).as_posix()) for path in files]
    if len(listing) == 1:
        return listing[0][0]
    lines = "".join(f"{digest}  {name}\n" for digest, name in listing)
    return hashlib.sha256(lines.encode()).hexdigest()
