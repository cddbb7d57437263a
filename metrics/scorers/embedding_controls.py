"""What a cosine of embeddings is worth: its value for random words, and two encoders compared.

An encoder may find any two texts alike. The end-to-end chatbot benchmark therefore puts texts of
random words instead of the responses: their mean cosine with the references is the encoder's
bias, and should be near 0. Two encoders that order the same responses alike have an R² near 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from error_codes import InvalidValue
from metrics.scorers.errors import NoScoreError
from metrics.scorers.plain import WORDS
from metrics.scorers.scorer import Example, Scorer


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
    for argument, value in (("n_texts", n_texts), ("n_words", n_words), ("words", len(words))):
        if value < 1:
            raise InvalidValue(
                f"{argument} must be at least 1, got {value}", code=f"{argument}_out_of_range"
            )
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
