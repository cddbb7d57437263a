"""One request after another to an OpenAI-compatible endpoint, within limits and a budget."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
)
from tenacity.stop import stop_base

from metrics.scorers.errors import (
    EndpointError,
    EndpointUnavailableError,
    TransientError,
    UnansweredError,
)
from metrics.scorers.judges.budget import Budget, Usage, budget_from, estimated_tokens
from metrics.scorers.judges.endpoint import Endpoint, Limits, endpoint_from, limits_from
from metrics.scorers.judges.readings import Answer, read_answer
from metrics.scorers.judges.transport import Throttle

if TYPE_CHECKING:
    from metrics.scorers.judges.transport import Transport

# A chat: ``{"role": ..., "content": ...}`` in order.
Messages: TypeAlias = Sequence[Mapping[str, str]]

MESSAGE_CHARACTERS = 200
# 1, 2, 4 ... seconds.
_doubling = wait_exponential(multiplier=1)


class Client:
    """Talks to one endpoint, from many threads if need be.

    Parameters
    ----------
    endpoint : Endpoint
    limits : Limits
    budget : Budget, optional
        By default everything is counted and nothing capped.
    sleep : callable
        How to wait for so many seconds.

    Examples
    --------
    >>> Client(Endpoint(base_url="", model="tiny")).chat([{"role": "user", "content": "Hello."}])
    Traceback (most recent call last):
    metrics.scorers.errors.EndpointRefusedError: no judge is set: set JUDGE_BASE_URL and ...
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        limits: Limits = Limits(),  # noqa: B008 -- immutable
        budget: Budget | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint = endpoint
        self.limits = limits
        self.budget = budget or Budget()
        self._request_throttle = Throttle(limits.requests_per_minute, sleep=sleep)
        self._token_throttle = Throttle(limits.tokens_per_minute, sleep=sleep)
        self._retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(limits.attempts) | _WaitExceeds(limits.longest_wait_seconds),
            wait=lambda state: _failure(state).wait_seconds or _doubling(state),
            sleep=sleep,
            retry_error_callback=_give_up,
        )

    def chat(
        self,
        messages: Messages,
        *,
        n: int = 1,
        max_tokens: int = 256,
        **options: object,
    ) -> Answer:
        """Ask for the next message of a chat.

        Parameters
        ----------
        messages : sequence of mapping
        n : int
            How many replies to ask for; some endpoints give one all the same.
        max_tokens : int
            The longest reply.
        **options
            Further fields of the request; those that are None are left out.

        Returns
        -------
        Answer

        Raises
        ------
        EndpointError
        BudgetSpentError
        """
        body = {"messages": list(messages), self.endpoint.length_field: max_tokens, **options}
        if n > 1:
            body["n"] = n
        return self._request("chat/completions", body, most_usage(messages, n, max_tokens))

    def complete(self, prompt: str, *, max_tokens: int = 16, **options: object) -> Answer:
        """Ask for the continuation of a text, as the older completions do.

        Parameters
        ----------
        prompt : str
        max_tokens : int
        **options
            As for `chat`; ``echo=True, logprobs=1`` gives the prompt's own log-probabilities
            where the endpoint can.

        Returns
        -------
        Answer

        Raises
        ------
        EndpointError
        BudgetSpentError
        """
        body = {"prompt": prompt, "max_tokens": max_tokens, **options}
        return self._request("completions", body, Usage(estimated_tokens(prompt), max_tokens))

    def _request(self, path: str, body: Mapping[str, object], most: Usage) -> Answer:
        url = self.endpoint.url(path)
        fields = {name: value for name, value in body.items() if value is not None}
        answer: Answer = self._retrying(
            self._attempt, url, {"model": self.endpoint.model, **fields}, most
        )
        return answer

    def _attempt(self, url: str, body: Mapping[str, object], most: Usage) -> Answer:
        """Send once. What an unanswered request used is unknown, so its reservation stands."""
        self._request_throttle.wait(1)
        self._token_throttle.wait(sum(most))
        self.budget.reserve(most)
        try:
            answer = read_answer(self._transport.post(url, body))
        except UnansweredError:
            raise
        except EndpointError:
            self.budget.settle(most, Usage())
            raise
        except ValueError as error:
            message = f"an answer that cannot be read: {error}"[:MESSAGE_CHARACTERS]
            raise UnansweredError(message, code="unreadable") from error
        self.budget.settle(most, answer.usage or most)
        return answer

    @cached_property
    def _transport(self) -> "Transport":
        # Imported at the first request: the library takes 0.6 s, and most commands ask no judge.
        from metrics.scorers.judges.transport import Transport

        return Transport(self.endpoint)


def client_from(variables: Mapping[str, str]) -> Client:
    """Make a client of what the ``JUDGE_...`` variables say.

    Parameters
    ----------
    variables : mapping of str to str
        Such as ``os.environ``.

    Returns
    -------
    Client

    Raises
    ------
    ValueError
        If a variable cannot be read.

    Examples
    --------
    >>> client_from({}).limits.attempts
    5
    """
    return Client(
        endpoint_from(variables), limits=limits_from(variables), budget=budget_from(variables)
    )


def most_usage(messages: Messages, n: int, max_tokens: int) -> Usage:
    """Estimate what a request uses at most.

    Parameters
    ----------
    messages : sequence of mapping
    n : int
        Replies.
    max_tokens : int
        Of each.

    Returns
    -------
    Usage

    Examples
    --------
    >>> most_usage([{"role": "user", "content": "Hello there!"}], n=2, max_tokens=5)
    Usage(prompt_tokens=4, completion_tokens=10)
    """
    return Usage(sum(estimated_tokens(message["content"]) for message in messages), n * max_tokens)


def _failure(state: RetryCallState) -> TransientError:
    failure = state.outcome.exception() if state.outcome else None
    assert isinstance(failure, TransientError)
    return failure


class _WaitExceeds(stop_base):
    def __init__(self, longest_seconds: float) -> None:
        self.longest_seconds = longest_seconds

    def __call__(self, retry_state: RetryCallState) -> bool:
        return retry_state.upcoming_sleep > self.longest_seconds


def _give_up(state: RetryCallState) -> NoReturn:
    failure = _failure(state)
    attempts = f"the endpoint failed {state.attempt_number} times, last with {failure}"
    advice, code = "try again later", failure.code
    if failure.wait_seconds:
        advice, code = f"it asks to wait {failure.wait_seconds:.0f} seconds", "long_wait"
    raise EndpointUnavailableError(f"{attempts}; {advice}", code=code) from failure
