"""G-Eval's weighted score: the levels of the scale, each times its probability."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from error_codes import InvalidValue
from metrics.scorers.judges.replies import Token
from metrics.scorers.judges.score_mentions import find_score


class Distribution(NamedTuple):
    """How probable each level is.

    Attributes
    ----------
    weights : mapping of float to float
        Of the levels that came up: counts of samples, or probabilities.
    mass : float
        The share of what was a level at all: of the samples, or of the probability of the token.
    """

    weights: Mapping[float, float]
    mass: float

    @property
    def probabilities(self) -> dict[float, float]:
        """The weights, made to sum to 1.

        Examples
        --------
        >>> Distribution({1.0: 1, 3.0: 3}, 1.0).probabilities
        {1.0: 0.25, 3.0: 0.75}
        """
        total = math.fsum(self.weights.values())
        return {level: weight / total for level, weight in self.weights.items()}

    @property
    def expectation(self) -> float:
        """The weighted score; NaN without levels.

        It is divided once, at the end: multiplying by rounded probabilities would part equal
        scores in their last digit, and a rank correlation would lose ties.

        Examples
        --------
        >>> Distribution({1.0: 1, 3.0: 3}, 1.0).expectation
        2.5
        """
        if not self.weights:
            return math.nan
        total = math.fsum(self.weights.values())
        return math.fsum(level * weight for level, weight in self.weights.items()) / total


def from_samples(values: Sequence[float]) -> Distribution:
    """Estimate the distribution by the shares of samples.

    Parameters
    ----------
    values : sequence of float, length n
        NaN where a sample could not be read; it is left out and lessens the mass.

    Returns
    -------
    Distribution

    Raises
    ------
    ValueError
        If there are no samples.

    References
    ----------
    .. [1] Y. Liu et al. (2023). G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment.
       EMNLP, 2511-2522, equation 1, with p(s) estimated from n samples.

    Examples
    --------
    >>> from_samples([1.0, 3.0, 3.0, 3.0, math.nan])
    Distribution(weights={1.0: 1, 3.0: 3}, mass=0.8)
    """
    if not values:
        raise InvalidValue("values must hold at least one sample", code="values_empty")
    counts = Counter(value for value in values if not math.isnan(value))
    return Distribution(dict(sorted(counts.items())), counts.total() / len(values))


def from_tokens(tokens: Sequence[Token], levels: Sequence[int], aspect: str = "") -> Distribution:
    """Read the distribution from the alternatives to the token that is the score.

    A level and the same level with a space before it are one.

    Parameters
    ----------
    tokens : sequence of Token
        Of one reply, with their alternatives.
    levels : sequence of int
        Those of the scale, each of one digit, so that a token can be a whole level.
    aspect : str
        What is rated, as the form names it.

    Returns
    -------
    Distribution
        Empty, with mass 0, if the reply has no score or its token is not a level.

    Raises
    ------
    ValueError
        If a level has more than one digit.

    References
    ----------
    .. [1] Y. Liu et al. (2023). G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment.
       EMNLP, 2511-2522, equation 1.

    Examples
    --------
    >>> three = Token("3", math.log(0.6), (("3", math.log(0.6)), (" 1", math.log(0.2))))
    >>> round(from_tokens([three], range(1, 4)).expectation, 9)
    2.5
    """
    if any(not 0 <= level <= 9 for level in levels):
        raise InvalidValue(
            f"levels must have one digit each, got {list(levels)}", code="levels_of_two_digits"
        )
    names = {str(level): float(level) for level in levels}
    token_of_score = _token_of_score(tokens, levels, aspect)
    if token_of_score is None or token_of_score.text.strip() not in names:
        return Distribution({}, 0.0)
    logprobs = dict(token_of_score.alternatives) | {token_of_score.text: token_of_score.logprob}
    masses: dict[float, float] = {}
    for text, logprob in logprobs.items():
        if text.strip() in names:
            level = names[text.strip()]
            masses[level] = masses.get(level, 0.0) + math.exp(logprob)
    mass = math.fsum(masses.values())
    if mass == 0:
        return Distribution({}, 0.0)
    return Distribution(dict(sorted(masses.items())), mass)


def _token_of_score(tokens: Sequence[Token], levels: Sequence[int], aspect: str) -> Token | None:
    """The token in which the score begins; the scale of the form has levels as tokens too."""
    found = find_score("".join(token.text for token in tokens), min(levels), max(levels), aspect)
    if found.value is None or found.value not in levels:
        return None
    ends = accumulate(len(token.text) for token in tokens)
    return next(token for token, end in zip(tokens, ends, strict=True) if end > found.start)
