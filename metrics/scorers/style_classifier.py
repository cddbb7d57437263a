"""A sequence classifier of transformers, in batches of like length."""

from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.scorers.checkpoints import Checkpoint, loading
from metrics.scorers.device import chosen_device
from metrics.scorers.token_batches import like_lengths, padded, token_ids, token_limit

TEXTS_AT_ONCE = 32


class SequenceClassifier:
    """The probabilities of a sequence classifier.

    As in the pipelines of transformers, they are a softmax over the labels; where the model says
    that a text may have several, or knows one label alone, a sigmoid of each. The weights are
    used as float32.

    Parameters
    ----------
    checkpoint : Checkpoint
    device : str, optional
        As for `metrics.scorers.device.chosen`.

    Examples
    --------
    >>> SequenceClassifier(Checkpoint("no/such-model", cache_folder="/nonexistent")).labels
    Traceback (most recent call last):
    metrics.scorers.errors.ModelUnavailableError: no/such-model is neither a folder nor ...
    """

    def __init__(self, checkpoint: Checkpoint, device: str | None = None) -> None:
        self.checkpoint = checkpoint
        self.device = device

    @property
    def labels(self) -> list[str]:
        """The labels, in the order of the probabilities.

        Returns
        -------
        list of str
        """
        names = dict(self._model.config.id2label)
        return [str(names[index]) for index in range(len(names))]

    def signed(self) -> dict[str, str]:
        """The fields of a signature on which the probabilities depend.

        Returns
        -------
        dict of str to str
        """
        version = f"transformers-{metadata.version('transformers')}"
        return {**self.checkpoint.signed(), "version": version}

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The probability of each label.

        Parameters
        ----------
        texts : sequence of str, length n
            One longer than the model reads is cut, with a `TruncatedTextWarning`.

        Returns
        -------
        ndarray of float64, shape (n, labels)

        Raises
        ------
        ModelUnavailableError
            If the model cannot be found or loaded.
        """
        import torch

        limit = token_limit(self.checkpoint.tokenizer, self._model.config)
        rows = token_ids(self.checkpoint.tokenizer, texts, limit, self.checkpoint.label)
        probabilities = np.empty((len(rows), len(self.labels)))
        padding = self.checkpoint.tokenizer.pad_token_id
        for batch in like_lengths(rows, 1 if padding is None else TEXTS_AT_ONCE):
            parts = [rows[row] for row in batch]
            ids, mask = padded(parts, padding or 0, str(self._model.device))
            with torch.inference_mode():
                logits = self._model(input_ids=ids, attention_mask=mask).logits.double()
            shares = logits.sigmoid() if self._is_multi_label else logits.softmax(-1)
            probabilities[batch] = shares.cpu().numpy()
        return probabilities

    @property
    def _is_multi_label(self) -> bool:
        config = self._model.config
        several = config.problem_type == "multi_label_classification"
        return bool(several or config.num_labels == 1)

    @cached_property
    def _model(self) -> Any:
        import torch
        from transformers import AutoModelForSequenceClassification

        folder = self.checkpoint.folder
        with loading(folder):
            device = chosen_device(self.device)
            model: Any = AutoModelForSequenceClassification.from_pretrained(
                folder, dtype=torch.float32, local_files_only=True
            )
        model.eval()
        return model.to(device)
