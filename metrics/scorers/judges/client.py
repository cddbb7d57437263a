"""One request after another to an OpenAI-compatible endpoint, within limits and a budget.

Here foreign failures become ours, and only here: what may pass by itself is tried again (as long
as the endpoint asks, where it says), what is wrong with one text is that text's, and the rest
stops the run. The key is never part of an error, even where an endpoint repeats it.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import requests
import urllib3
from requests.auth import AuthBase

from metrics.scorers.errors import (
    EndpointRefusedError,
    EndpointUnavailableError,
    PromptRefusedError,
)
from metrics.scorers.judges.budget import Budget, Usage, budget_of, estimated_tokens
from metrics.scorers.judges.endpoint import Endpoint, Limits, endpoint_of, limits_of
from metrics.scorers.judges.pacing import Pace
from metrics.scorers.judges.replies import Answer, read_answer, storable

Messages: TypeAlias = Sequence[Mapping[str, str]]
"""A chat: ``{"role": ..., "content": ...}`` in order."""

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
ABOUT_THE_TEXT = frozenset({400, 413, 422})
FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Said with status 429 by some, and no wait mends them."""
TOLD_CHARACTERS = 200
LONGEST_ANSWER = 64 * 2**20
"""Bytes: no chat has so many, and an endpoint that sends on and on must not fill the memory."""
READ_AT_ONCE = 2**16


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
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.endpoint = endpoint
        self.limits = limits
        self.budget = budget or Budget()
        self._sleep = sleep
        self._request_pace = Pace(limits.requests_per_minute, sleep=sleep)
        self._token_pace = Pace(limits.tokens_per_minute, sleep=sleep)
        self._session = requests.Session()

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
        return self._ask("chat/completions", body, most_usage(messages, n, max_tokens))

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
        return self._ask("completions", body, Usage(estimated_tokens(prompt), max_tokens))

    def _ask(self, path: str, body: Mapping[str, object], most: Usage) -> Answer:
        url, key = self.endpoint.url(path), self.endpoint.key()
        given = {name: value for name, value in body.items() if value is not None}
        for attempt in range(1, self.limits.attempts + 1):
            self._request_pace.wait(1)
            self._token_pace.wait(sum(most))
            self.budget.reserve(most)
            try:
                return self._attempt(url, key, {"model": self.endpoint.model, **given}, most)
            except Transient as failure:
                wait = failure.wait_seconds or 2.0 ** (attempt - 1)
                if attempt == self.limits.attempts or wait > self.limits.longest_wait_seconds:
                    raise EndpointUnavailableError(_given_up(failure, attempt, wait)) from failure
                self._sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _attempt(self, url: str, key: str, body: Mapping[str, object], most: Usage) -> Answer:
        """Send once. What a broken connection used is unknown, so its reservation stands."""
        until = time.monotonic() + self.endpoint.timeout_seconds
        try:
            with self._session.post(
                url,
                json=body,
                auth=Bearer(key),
                timeout=self.endpoint.timeout_seconds,
                allow_redirects=False,
                stream=True,
            ) as response:
                content = _content(response, until)
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise Transient(f"no answer ({type(error).__name__})") from error
        if response.status_code != requests.codes.ok:
            self.budget.settle(most, Usage())
            raise _failure(response, content, key)
        try:
            answer = read_answer(_decoded(content))
        except ValueError as error:
            raise Transient(f"an answer that cannot be read: {error}"[:TOLD_CHARACTERS]) from error
        self.budget.settle(most, answer.usage or most)
        return answer


class Bearer(AuthBase):
    """Sends the key, if there is one, and keeps requests from looking for another in netrc."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Put the key into the request."""
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


class Transient(Exception):
    """A failure that may pass by itself; `wait_seconds` is what the endpoint asks for."""

    def __init__(self, what: str, wait_seconds: float | None = None) -> None:
        super().__init__(what)
        self.wait_seconds = wait_seconds


def client_of_environment(environment: Mapping[str, str] = os.environ) -> Client:
    """Make a client of what the ``JUDGE_...`` variables say.

    Parameters
    ----------
    environment : mapping of str to str

    Returns
    -------
    Client

    Raises
    ------
    ValueError
        If a variable cannot be read.

    Examples
    --------
    >>> client_of_environment().limits.attempts
    5
    """
    return Client(
        endpoint_of(environment), limits=limits_of(environment), budget=budget_of(environment)
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
    prompt = sum(estimated_tokens(message["content"]) for message in messages)
    return Usage(prompt, n * max_tokens)


def _content(response: requests.Response, until: float) -> bytes:
    """Read the body; requests' own timeout begins anew with every byte that trickles in."""
    content = bytearray()
    while piece := response.raw.read1(READ_AT_ONCE, decode_content=True):
        content += piece
        if time.monotonic() > until:
            raise Transient("an answer that did not end in time")
        if len(content) > LONGEST_ANSWER:
            raise Transient(f"an answer of more than {LONGEST_ANSWER} bytes")
    return bytes(content)


def _decoded(content: bytes) -> Any:
    """Read JSON; ValueError where it is none, or is nested beyond reading."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _failure(response: requests.Response, content: bytes, key: str) -> Exception:
    code, text = _told(content)
    text = text or response.reason
    told = f"{response.status_code}: {text.replace(key, '***') if key else text}"[:TOLD_CHARACTERS]
    if response.status_code in TRANSIENT and code not in FINAL_CODES:
        return Transient(told, _retry_after(response.headers.get("Retry-After", "")))
    if response.status_code in ABOUT_THE_TEXT:
        return PromptRefusedError(f"the endpoint refused this text ({told})")
    return EndpointRefusedError(f"the endpoint refuses ({told}); check its address, key and model")


def _told(content: bytes) -> tuple[str, str]:
    """Read the endpoint's code and its words, of which an excerpt is kept on one line."""
    try:
        body = _decoded(content)
        error = body.get("error", body)
        code, text = (error.get("code"), error.get("message") or error.get("detail") or error)
    except (ValueError, AttributeError):
        code, text = None, content.decode("utf-8", errors="replace")
    return str(code), " ".join(storable(str(text)).split())


def _retry_after(value: str) -> float | None:
    """Read seconds or an HTTP date."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _given_up(failure: Transient, attempt: int, wait: float) -> str:
    tried = f"the endpoint failed {attempt} times, last with {failure}"
    if failure.wait_seconds and wait == failure.wait_seconds:
        return f"{tried}; it asks to wait {wait:.0f} seconds"
    return f"{tried}; try again later"
