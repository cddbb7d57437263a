"""A classifier of styles trained here from labelled texts, so that a study needs no hub.

Logistic regression on TF-IDF of character n-grams within words. It is kept as plain arrays (an npz,
read without pickle), so that a file from someone else can do no harm.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from error_codes import InvalidValue
from metrics.scorers.checkpoints import file_sha256
from metrics.scorers.errors import ModelUnavailableError

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

TRAINED_SUFFIX = ".style.npz"
VERSION = 1
N_FOLDS = 5
SHORTEST, LONGEST = 2, 4  # characters of an n-gram


@dataclass(frozen=True)
class TrainedClassifier:
    """A trained classifier of styles.

    Attributes
    ----------
    labels : tuple of str, length k
    ngrams : tuple of str, length f
        The features.
    idf : ndarray of float64, shape (f,)
    coefficients : ndarray of float64, shape (k, f), or (1, f) for two labels
    intercepts : ndarray of float64, shape (k,), or (1,) for two labels
    n_texts, seed : int
        Of how many texts it was made, and the seed that divided them into folds.
    held_out_accuracy : float
        Share of texts that classifiers trained on the other folds get right.
    path : Path or None
        Where it is kept, once it is.
    """

    labels: tuple[str, ...]
    ngrams: tuple[str, ...]
    idf: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    n_texts: int
    seed: int
    held_out_accuracy: float
    path: Path | None = None

    def signed(self) -> dict[str, str]:
        if self.path is None:
            raise InvalidValue(
                "a classifier must be saved before it can be signed", code="not_saved"
            )
        return {
            "model": self.path.name,
            "weights": file_sha256(self.path)[:16],
            "version": f"{VERSION}-scikit-learn-{metadata.version('scikit-learn')}",
        }

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        vectorizer, regression = self._parts
        if not texts:
            return np.empty((0, len(self.labels)))
        return np.asarray(regression.predict_proba(vectorizer.transform(texts)), dtype=np.float64)

    @cached_property
    def _parts(self) -> tuple["TfidfVectorizer", "LogisticRegression"]:
        vectorizer, regression = _unfitted(vocabulary=list(self.ngrams))
        vectorizer.idf_ = self.idf
        regression.classes_ = np.array(self.labels)
        regression.coef_, regression.intercept_ = self.coefficients, self.intercepts
        return vectorizer, regression

    def save(self, path: Path) -> "TrainedClassifier":
        """Keep it in a file.

        Parameters
        ----------
        path : Path
            Its name must end in ``.style.npz``.

        Returns
        -------
        TrainedClassifier
            The same, which now has a path and so a signature.

        Raises
        ------
        ValueError
            If the name of the file ends otherwise.
        """
        if not path.name.endswith(TRAINED_SUFFIX):
            raise InvalidValue(
                f"path must end in {TRAINED_SUFFIX}, got {path.name!r}", code="wrong_suffix"
            )
        words = {
            "version": VERSION,
            "labels": self.labels,
            "ngrams": self.ngrams,
            "n_texts": self.n_texts,
            "seed": self.seed,
            "held_out_accuracy": self.held_out_accuracy,
        }
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                words=np.frombuffer(json.dumps(words).encode(), dtype=np.uint8),
                idf=self.idf,
                coefficients=self.coefficients,
                intercepts=self.intercepts,
            )
        return self.load(path)

    @classmethod
    def load(cls, path: Path) -> "TrainedClassifier":
        """Read one from its file, without running anything that may be in it.

        Parameters
        ----------
        path : Path

        Returns
        -------
        TrainedClassifier

        Raises
        ------
        ModelUnavailableError
            If there is no such file, or it holds no classifier of styles.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                words = json.loads(arrays["words"].tobytes())
                if words.pop("version") != VERSION:
                    raise ValueError("it was made by another version")
                return cls(
                    labels=tuple(words.pop("labels")),
                    ngrams=tuple(words.pop("ngrams")),
                    idf=arrays["idf"],
                    coefficients=arrays["coefficients"],
                    intercepts=arrays["intercepts"],
                    path=path,
                    **words,
                )
        except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
            raise ModelUnavailableError(
                f"{path} is not a classifier of styles: {error}", code="not_a_classifier"
            ) from error


def train(texts: Sequence[str], labels: Sequence[str], *, seed: int = 0) -> TrainedClassifier:
    """Train a classifier of styles.

    Parameters
    ----------
    texts : sequence of str, length n
    labels : sequence of str, length n
        The style of each; at least two styles, of at least two texts each.
    seed : int
        Divides the texts into the folds of the held-out accuracy.

    Returns
    -------
    TrainedClassifier

    Raises
    ------
    ValueError
        If there are not as many labels as texts, or too few of a kind.

    References
    ----------
    .. [1] scikit-learn, ``TfidfVectorizer(analyzer="char_wb")`` and ``LogisticRegression``.

    Examples
    --------
    >>> classifier = train(["Good day, Sir.", "Dear Madam,", "hey ya", "yo dude"], list("ffii"))
    >>> classifier.labels, classifier.probabilities(["hey dude"]).argmax()
    (('f', 'i'), np.int64(1))
    """
    if len(texts) != len(labels):
        raise InvalidValue(
            f"labels must be {len(texts)}, one for each text, got {len(labels)}",
            code="unequal_lengths",
        )
    rarest = min(Counter(labels).values(), default=0)
    if len(set(labels)) < 2 or rarest < 2:
        raise InvalidValue(
            "labels must be of at least two kinds, with at least two texts of each",
            code="too_few_labels",
        )
    vectorizer, regression = _unfitted()
    regression.fit(vectorizer.fit_transform(texts), np.array(labels))
    return TrainedClassifier(
        labels=tuple(regression.classes_.tolist()),
        ngrams=tuple(vectorizer.get_feature_names_out().tolist()),
        idf=vectorizer.idf_,
        coefficients=regression.coef_,
        intercepts=regression.intercept_,
        n_texts=len(texts),
        seed=seed,
        held_out_accuracy=_held_out_accuracy(texts, labels, min(N_FOLDS, rarest), seed),
    )


def _held_out_accuracy(
    texts: Sequence[str], labels: Sequence[str], n_folds: int, seed: int
) -> float:
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    predicted = cross_val_predict(make_pipeline(*_unfitted()), list(texts), list(labels), cv=folds)
    return float(np.mean(predicted == np.array(labels)))


def _unfitted(
    vocabulary: list[str] | None = None,
) -> tuple["TfidfVectorizer", "LogisticRegression"]:
    """Case counts, since it is a matter of style."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    options: dict[str, Any] = {"lowercase": False, "sublinear_tf": True, "vocabulary": vocabulary}
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(SHORTEST, LONGEST), **options)
    return vectorizer, LogisticRegression(C=10.0, max_iter=1000)
