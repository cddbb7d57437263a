"""How strongly a response has the style it was asked for, by a classifier of styles.

The requested style is the example's condition. Two figures are in use and are not the same: the
probability of that style, which the LMStyle Benchmark correlates with human ratings, and
whether it is above one half, whose mean is the accuracy in its tables.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from error_codes import CodedText
from metrics.scorers.checkpoints import Checkpoint
from metrics.scorers.interface import Example, Score, Scorer, Scores, sign, undefined
from metrics.scorers.ngram_classifier import TRAINED_SUFFIX, TrainedClassifier
from metrics.scorers.token_batches import like_lengths, padded, token_ids, token_limit

VERSION = 1
# The LMStyle Benchmark's classifiers, of formal and informal, and of positive and negative.
PRESETS = {
    "formality": "s-nlp/roberta-base-formality-ranker",  # CC BY-NC-SA 4.0: not commercial
    "sentiment": "siebert/sentiment-roberta-large-english",
}


class Classifier(Protocol):
    """The classifier of styles: a model of transformers, or one trained here."""

    @property
    def labels(self) -> Sequence[str]:
        """The styles it knows, in the order of its probabilities."""

    def signed(self) -> Mapping[str, object]:
        """The fields of a signature on which its probabilities depend."""

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The probability of each style, shape (n texts, n labels)."""


class Style(Scorer):
    """Probability of the requested style, and as ``style_accuracy`` whether it is above one half.

    An empty response is classified as it is, as in the published numbers. A condition which the
    classifier does not know is NaN.

    Parameters
    ----------
    model : str or Path
        ``"formality"``, ``"sentiment"``, a folder or a name on the Hugging Face hub of any
        sequence classifier of transformers, or the file of a classifier trained here
        (`metrics.scorers.ngram_classifier`), whose name ends in ``.style.npz``.
    labels : mapping of str to str, optional
        What the classifier calls a condition, where that is another word. Otherwise condition
        and label are compared without regard to case: ``Formal`` is ``formal``.
    device : str, optional
    download : bool
        Whether a named model may be fetched over the network.
    cache_folder : str, optional

    Raises
    ------
    ModelUnavailableError
        On first use, if the classifier cannot be found or loaded.

    References
    ----------
    .. [1] J. Chen (2024). LMStyle Benchmark: Evaluating Text Style Transfer for Chatbots.
       arXiv:2403.08943.
    .. [2] N. Babakov et al. (2023). Don't lose the message while paraphrasing: a study on content
       preserving style transfer. NLDB, 47-61 (formality).
    .. [3] J. Hartmann et al. (2023). More than a Feeling: Accuracy and Application of Sentiment
       Analysis. International Journal of Research in Marketing 40(1), 75-87 (sentiment).

    Examples
    --------
    >>> Style().needs
    frozenset({'condition'})
    """

    name = "style"
    outputs = ("style", "style_accuracy")
    needs = frozenset({"condition"})
    batch_size = 256

    def __init__(
        self,
        *,
        model: str | Path = "formality",
        labels: Mapping[str, str] | None = None,
        device: str | None = None,
        download: bool = False,
        cache_folder: str | None = None,
    ) -> None:
        self.labels = dict(labels or {})
        self._model = PRESETS.get(str(model), model)
        self._device, self._download, self._cache_folder = device, download, cache_folder

    @cached_property
    def signature(self) -> str:
        fields = dict(self._classifier.signed())
        version = f"{VERSION}-{fields.pop('version')}"
        digest = sha256(repr(sorted(self.labels.items())).encode()).hexdigest()[:16]
        labels = f"sha256-{digest}" if self.labels else "own"
        return sign("style", **fields, labels=labels, version=version)

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        texts = list(dict.fromkeys(example.response for example in examples))
        rows = dict(zip(texts, self._classifier.probabilities(texts), strict=True))
        return [self._scores(rows[one.response], one.condition or "") for one in examples]

    def _scores(self, probabilities: NDArray[np.float64], condition: str) -> Scores:
        column = self._columns.get(self.labels.get(condition, condition).strip().casefold())
        if column is None:
            labels = ", ".join(self._classifier.labels)
            unknown = undefined(
                CodedText(
                    f"the classifier knows no style '{condition}': it knows {labels}",
                    code="unknown_style",
                )
            )
            return dict.fromkeys(self.outputs, unknown)
        probability = float(probabilities[column])
        return {"style": Score(probability), "style_accuracy": Score(float(probability > 0.5))}

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {label.casefold(): i for i, label in enumerate(self._classifier.labels)}

    @cached_property
    def _classifier(self) -> Classifier:
        if str(self._model).endswith(TRAINED_SUFFIX):
            return TrainedClassifier.load(Path(self._model).expanduser())
        checkpoint = Checkpoint(self._model, self._download, self._cache_folder)
        return SequenceClassifier(checkpoint, self._device)


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
        As for `metrics.scorers.checkpoints.chosen`.

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
        names = dict(self._model.config.id2label)
        return [str(names[index]) for index in range(len(names))]

    def signed(self) -> dict[str, str]:
        version = f"transformers-{metadata.version('transformers')}"
        return {**self.checkpoint.signed(), "version": version}

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        import torch

        limit = token_limit(self.checkpoint.tokenizer, self._model.config)
        rows = token_ids(self.checkpoint.tokenizer, texts, limit, self.checkpoint.label)
        probabilities = np.empty((len(rows), len(self.labels)))
        padding = self.checkpoint.tokenizer.pad_token_id
        for batch in like_lengths(rows, 1 if padding is None else TEXTS_AT_ONCE):
            ids, mask = padded([rows[row] for row in batch], padding or 0, str(self._model.device))
            with torch.inference_mode():
                logits = self._model(input_ids=ids, attention_mask=mask).logits.double()
            shares = logits.sigmoid() if self._is_multi_label else logits.softmax(-1)
            probabilities[batch] = shares.cpu().numpy()
        return probabilities

    @property
    def _is_multi_label(self) -> bool:
        config = self._model.config
        return bool(config.problem_type == "multi_label_classification" or config.num_labels == 1)

    @cached_property
    def _model(self) -> Any:
        return self.checkpoint.load("AutoModelForSequenceClassification", self.device)
