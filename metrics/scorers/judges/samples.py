"""Getting n replies to one prompt, and the distribution of ratings that they or tokens show."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeVar

from error_codes import InvalidValue
from metrics.scorers.errors import EndpointRefusedError, PromptRefusedError
from metrics.scorers.interface import require_at_least
from metrics.scorers.judges.client import Client, Messages
from metrics.scorers.judges.readings import Answer, Reply, Token
from metrics.scorers.judges.score_mentions import find_score

T = TypeVar("T")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How replies are drawn.

    Attributes
    ----------
    n : int
    temperature, top_p : float or None
        None leaves it to the endpoint.
    max_tokens : int
        The longest reply.
    seed : int or None
        Of the first reply; where each takes a request of its own, the next takes the next seed.
    top_logprobs : int or None
        How many alternatives to ask for with each token; None asks for no log-probabilities.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> Sampling(n=0)
    Traceback (most recent call last):
    error_codes.InvalidValue: n must be at least 1, got 0
    """

    n: int = 1
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 64
    seed: int | None = None
    top_logprobs: int | None = None

    def __post_init__(self) -> None:
        require_at_least(1, n=self.n, max_tokens=self.max_tokens)
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise InvalidValue(
                f"temperature must be from 0 to 2, got {self.temperature!r}",
                code="temperature_out_of_range",
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InvalidValue(
                f"top_p must be over 0 and at most 1, got {self.top_p!r}", code="top_p_out_of_range"
            )
        if self.top_logprobs is not None and not 1 <= self.top_logprobs <= 20:
            raise InvalidValue(
                f"top_logprobs must be from 1 to 20, got {self.top_logprobs!r}",
                code="top_logprobs_out_of_range",
            )


@dataclass(frozen=True, slots=True)
class Sample:
    """The replies to one prompt, and how they were obtained.

    Attributes
    ----------
    replies : tuple of Reply, length n
    requests : int
        How many requests gave them.
    model : str
        As the endpoint reports it, which may be more exact than the name asked for.
    """

    replies: tuple[Reply, ...]
    requests: int
    model: str

    @property
    def obtained(self) -> str:
        """``one call``, ``n``, ``n calls``, or ``top_logprobs``.

        Examples
        --------
        >>> Sample((Reply("1"), Reply("2")), 2, "tiny").obtained
        'n calls'
        """
        if all(reply.tokens for reply in self.replies):
            return "top_logprobs"
        if len(self.replies) == 1:
            return "one call"
        return "n" if self.requests == 1 else "n calls"

    def record(self, **more: object) -> str:
        """Write what is kept with the score: one line of JSON.

        Parameters
        ----------
        **more
            Further facts.

        Returns
        -------
        str

        Examples
        --------
        >>> Sample((Reply("3", "stop"),), 1, "tiny").record()
        '{"obtained": "one call", "requests": 1, "model": "tiny", "replies": ["3"],
          "finish": ["stop"]}'
        """
        record: dict[str, object] = {
            "obtained": self.obtained,
            "requests": self.requests,
            "model": self.model,
            "replies": [reply.text for reply in self.replies],
            "finish": [reply.finish for reply in self.replies],
        }
        return json.dumps(record | more, ensure_ascii=False)


class Sampler:
    """Draws samples, and learns on the way that an endpoint ignores or refuses ``n``.

    Parameters
    ----------
    client : Client
    honours_n : bool
        What is known of the endpoint. True is found out to be wrong by the first sample.

    Examples
    --------
    >>> from metrics.scorers.judges.endpoint import Endpoint
    >>> Sampler(Client(Endpoint(base_url="", model="tiny"))).honours_n
    True
    """

    def __init__(self, client: Client, *, honours_n: bool = True) -> None:
        self.client = client
        self.honours_n = honours_n

    def sample(self, messages: Messages, sampling: Sampling) -> Sample:
        """Draw replies, with as many requests as it takes.

        Parameters
        ----------
        messages : sequence of mapping
        sampling : Sampling

        Returns
        -------
        Sample
            With exactly ``sampling.n`` replies.

        Raises
        ------
        EndpointError
            Or if log-probabilities were asked for and none came.
        BudgetSpentError
        """
        answers: list[Answer] = []
        replies: list[Reply] = []
        while len(replies) < sampling.n:
            answers.append(self._answer(messages, sampling, len(replies)))
            replies += answers[-1].replies
        sample = Sample(tuple(replies[: sampling.n]), len(answers), answers[-1].model)
        if sampling.top_logprobs and sample.obtained != "top_logprobs":
            raise EndpointRefusedError(
                "the endpoint gives no log-probabilities; set distribution to samples",
                code="no_logprobs",
            )
        return sample

    def _answer(self, messages: Messages, sampling: Sampling, n_drawn: int) -> Answer:
        missing = sampling.n - n_drawn
        if self.honours_n and missing > 1:
            try:
                answer = self._ask(messages, sampling, n_drawn, missing)
            except PromptRefusedError:
                # Was it the text that is refused, or n?
                answer = self._ask(messages, sampling, n_drawn, 1)
            self.honours_n = len(answer.replies) > 1
            return answer
        return self._ask(messages, sampling, n_drawn, 1)

    def _ask(self, messages: Messages, sampling: Sampling, n_drawn: int, n: int) -> Answer:
        return self.client.chat(
            messages,
            n=n,
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=None if sampling.seed is None else sampling.seed + n_drawn,
            logprobs=True if sampling.top_logprobs else None,
            top_logprobs=sampling.top_logprobs,
        )


def concurrently(
    function: Callable[[T], Result], things: Iterable[T], n_threads: int
) -> Sequence[Result]:
    """Apply a function in threads; the first failure keeps what is waiting from starting.

    Parameters
    ----------
    function : callable
    things : iterable
    n_threads : int

    Returns
    -------
    list
        In the order of the things.

    Examples
    --------
    >>> concurrently(str.upper, "abc", 2)
    ['A', 'B', 'C']
    """
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(function, thing) for thing in things]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


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
