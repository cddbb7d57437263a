"""Cosine between Universal Sentence Encoder embeddings of response and reference.

The encoder is published for TensorFlow alone, as a SavedModel
(https://www.kaggle.com/models/google/universal-sentence-encoder, formerly TensorFlow Hub), so it
is a plug-in: TensorFlow is not a requirement of Assay, and is imported when a text is scored.
"""

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.scorers.checkpoints import Checkpoint
from metrics.scorers.embedding import cosine_scores
from metrics.scorers.errors import ModelUnavailableError
from metrics.scorers.interface import Example, Scorer, Scores, sign

VERSION = 1
TEXTS_AT_ONCE = 64
PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-macos")


class UniversalSentenceEncoder(Scorer):
    """Cosine between Universal Sentence Encoder embeddings, from -1 to 1.

    An empty response has the embedding the encoder gives to the empty text. A blank reference is
    no reference: NaN.

    Parameters
    ----------
    model : str or Path, optional
        The folder of the encoder's SavedModel, which holds ``saved_model.pb``. There is no
        default: the encoder cannot be fetched from here.

    Raises
    ------
    ModelUnavailableError
        On first use, if no folder is given, it holds no such model, or TensorFlow is missing.

    References
    ----------
    .. [1] D. Cer et al. (2018). Universal Sentence Encoder. arXiv:1803.11175.

    Examples
    --------
    >>> UniversalSentenceEncoder().signature
    Traceback (most recent call last):
    metrics.scorers.errors.ModelUnavailableError: use needs model=FOLDER, where ...
    """

    name = "use"
    outputs = ("use",)
    needs = frozenset({"reference"})

    def __init__(self, *, model: str | Path | None = None) -> None:
        self.model = model

    @cached_property
    def signature(self) -> str:
        return sign(
            "use",
            nrefs=1,
            similarity="cosine",
            **Checkpoint(self._folder).signed(),
            version=f"{VERSION}-tensorflow-{_tensorflow_version()}",
        )

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        return [{self.name: score} for score in cosine_scores(examples, self._embed)]

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        batches = range(0, len(texts), TEXTS_AT_ONCE)
        parts = [self._encoder(texts[start : start + TEXTS_AT_ONCE]) for start in batches]
        # Some versions of the encoder answer with a dictionary.
        tensors = [part["outputs"] if isinstance(part, dict) else part for part in parts]
        return np.concatenate([np.asarray(each, dtype=np.float32) for each in tensors])

    @cached_property
    def _folder(self) -> Path:
        if self.model is None:
            raise ModelUnavailableError(
                "use needs model=FOLDER, where the Universal Sentence Encoder's SavedModel is",
                code="model_missing",
            )
        folder = Path(self.model).expanduser()
        if not (folder / "saved_model.pb").is_file():
            raise ModelUnavailableError(
                f"there is no saved_model.pb in {folder}", code="no_saved_model"
            )
        return folder

    @cached_property
    def _encoder(self) -> Any:
        folder = self._folder
        try:
            tensorflow = import_module("tensorflow")
        except ImportError as error:
            message = f"{_missing_tensorflow()} ({error})"
            raise ModelUnavailableError(message, code="no_tensorflow") from error
        encoder = tensorflow.saved_model.load(str(folder))
        if not callable(encoder):
            raise ModelUnavailableError(f"{folder} holds no encoder that takes texts")
        return encoder


def _missing_tensorflow() -> str:
    return "use needs TensorFlow, which is not a requirement of Assay: pip install tensorflow-cpu"


def _tensorflow_version() -> str:
    for package in PACKAGES:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    raise ModelUnavailableError(_missing_tensorflow(), code="no_tensorflow")
