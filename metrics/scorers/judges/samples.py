"""Getting n replies to one prompt, from endpoints that honour ``n`` and from those that do not."""

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from error_codes import InvalidValue
from metrics.scorers.errors import EndpointRefusedError, PromptRefusedError
from metrics.scorers.judges.client import Client, Messages
from metrics.scorers.judges.replies import Answer, Reply

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
        for name in ("n", "max_tokens"):
            if getattr(self, name) < 1:
                raise InvalidValue(
                    f"{name} must be at least 1, got {getattr(self, name)!r}",
                    code=f"{name}_out_of_range",
                )
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
                return self._alone(messages, sampling, n_drawn)
            self.honours_n = len(answer.replies) > 1
            return answer
        return self._ask(messages, sampling, n_drawn, 1)

    def _alone(self, messages: Messages, sampling: Sampling, n_drawn: int) -> Answer:
        """Find out whether it was the text that was refused, or ``n``."""
        answer = self._ask(messages, sampling, n_drawn, 1)
        self.honours_n = False
        return answer

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
