"""Requests through the openai library, within bounds of time and size that it does not set.

Here foreign failures become ours, and only here: what may pass by itself is a `TransientError`,
what is wrong with one text a `PromptRefusedError`, the rest an `EndpointRefusedError`. The key
is never part of an error, even where an endpoint repeats it.
"""

import json
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import Any

import httpx2

from metrics.scorers.errors import (
    EndpointRefusedError,
    PromptRefusedError,
    TransientError,
    UnansweredError,
)
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.readings import storable

TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
TEXT_STATUSES = frozenset({400, 413, 422})
# Some endpoints send them with status 429, and no wait helps.
FINAL_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
MESSAGE_CHARACTERS = 200
# No chat is so long, and an endpoint that sends without end must not fill the memory.
MAX_ANSWER_BYTES = 64 * 2**20
# The library adds the machine's make, and what OPENAI_... variables say: not every endpoint's
# business.
SENT_HEADERS = frozenset(
    {"accept", "accept-encoding", "authorization", "connection"}
    | {"content-length", "content-type", "host", "user-agent"}
)


class Transport:
    """Posts JSON to one endpoint, once each time.

    Parameters
    ----------
    endpoint : Endpoint
    """

    def __init__(self, endpoint: Endpoint) -> None:
        from openai import Omit, OpenAI

        self._key = endpoint.api_key
        # A request's own header, even if omitted, goes before OPENAI_API_KEY and its kin.
        self._headers = {"Authorization": f"Bearer {self._key}" if self._key else Omit()}
        http_client = BoundedClient(endpoint.timeout_seconds, endpoint.addresses)
        weakref.finalize(self, http_client.close)
        self._openai = OpenAI(
            base_url=endpoint.base_url,
            api_key="none",
            max_retries=0,
            timeout=endpoint.timeout_seconds,
            http_client=http_client,
        )

    def post(self, url: str, body: Mapping[str, object]) -> Any:
        """Send a request.

        Parameters
        ----------
        url : str
        body : mapping

        Returns
        -------
        object
            The decoded answer.

        Raises
        ------
        ValueError
            If the answer is not JSON.
        TransientError
            `UnansweredError` where the endpoint did not answer, or not to the end.
        PromptRefusedError
        EndpointRefusedError
        """
        from openai import APIConnectionError, APIStatusError

        try:
            response = self._openai.post(
                url,
                cast_to=httpx2.Response,
                body=body,
                options={"headers": self._headers},
            )
        except APIStatusError as error:
            raise self._failure(error.response) from None
        except APIConnectionError as error:
            raise _unanswered(error.__cause__ or error) from error
        return decoded(response.content)

    def _failure(self, response: httpx2.Response) -> Exception:
        code, message = _error(response)
        if self._key:
            message = message.replace(self._key, "***")
        message = f"{response.status_code}: {message}"[:MESSAGE_CHARACTERS]
        if response.status_code in TRANSIENT_STATUSES and code not in FINAL_CODES:
            wait_seconds = _retry_after(response.headers.get("Retry-After", ""))
            return TransientError(message, wait_seconds, code=f"status_{response.status_code}")
        if response.status_code in TEXT_STATUSES:
            return PromptRefusedError(f"the endpoint refused this text ({message})")
        return EndpointRefusedError(
            f"the endpoint refuses ({message}); check its address, key and model",
            code=f"status_{response.status_code}",
        )


class OutOfBoundsError(httpx2.ReadError):
    """The answer takes too long, or is too large; `code` says which."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class BoundedClient(httpx2.Client):
    """Reads each answer to its end, within a time and a size; redirects are not followed.

    The library's own timeout begins anew with every byte that trickles in. Where addresses are
    given, it connects to those and looks no name up; the Host header, and the name that a
    certificate is for, stay those of the endpoint.
    """

    def __init__(self, timeout_seconds: float, addresses: Sequence[str] = ()) -> None:
        super().__init__(timeout=timeout_seconds, follow_redirects=False)
        self._timeout_seconds, self._addresses = timeout_seconds, addresses

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        for name in set(request.headers) - SENT_HEADERS:
            del request.headers[name]
        deadline = time.monotonic() + self._timeout_seconds
        with closing(self._connected(request, options | {"stream": True})) as response:
            content = bytearray()
            for piece in response.iter_bytes():
                content += piece
                if time.monotonic() > deadline:
                    raise OutOfBoundsError("an answer that did not end in time", "too_slow")
                if len(content) > MAX_ANSWER_BYTES:
                    raise OutOfBoundsError(
                        f"an answer of more than {MAX_ANSWER_BYTES} bytes", "too_large"
                    )
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name not in {"content-encoding", "content-length", "transfer-encoding"}
        ]
        return httpx2.Response(
            response.status_code, headers=headers, content=bytes(content), request=request
        )

    def _connected(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        """The answer of the first address that takes a connection, or of the name's own."""
        name = request.url.host
        for address in self._addresses[:-1]:
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return super().send(_to(address, name, request), **options)
        last = _to(self._addresses[-1], name, request) if self._addresses else request
        return super().send(last, **options)


def _to(address: str, name: str, request: httpx2.Request) -> httpx2.Request:
    request.url = request.url.copy_with(host=address)
    request.extensions = {**request.extensions, "sni_hostname": name}
    return request


def decoded(content: bytes) -> Any:
    """Decode JSON.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If it is not JSON, or nested too deeply.

    Examples
    --------
    >>> decoded(b"[" * 100_000)
    Traceback (most recent call last):
    ValueError: it is nested too deeply
    """
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _unanswered(error: BaseException) -> UnansweredError:
    if isinstance(error, OutOfBoundsError):
        return UnansweredError(str(error), code=error.code)
    return UnansweredError(f"no answer ({type(error).__name__})", code="no_answer")


def _error(response: httpx2.Response) -> tuple[str, str]:
    """The endpoint's own code and message, the latter on one line."""
    try:
        body = decoded(response.content)
        error = body.get("error", body)
        code, message = error.get("code"), error.get("message") or error.get("detail") or error
    except (ValueError, AttributeError):
        code, message = None, response.content.decode("utf-8", errors="replace")
    return str(code), " ".join(storable(str(message)).split()) or response.reason_phrase


def _retry_after(value: str) -> float | None:
    """Seconds from now, of a number of seconds or an HTTP date."""
    with suppress(ValueError):
        return max(0.0, float(value))
    try:
        time_of_retry = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if time_of_retry.tzinfo is None:
        time_of_retry = time_of_retry.replace(tzinfo=UTC)
    return max(0.0, (time_of_retry - datetime.now(UTC)).total_seconds())


class Throttle:
    """Spaces requests evenly, so that no minute sees more than the limit.

    There is no burst: half the limit takes half a minute. So the endpoint's own count, whatever
    window it uses, is never exceeded.

    Parameters
    ----------
    per_minute : float or None
        The limit; None is no limit.
    clock, sleep : callable
        Seconds that only grow, and how to wait for so many.

    Examples
    --------
    >>> waits = []
    >>> throttle = Throttle(30, clock=lambda: 0.0, sleep=waits.append)
    >>> for _ in range(3):
    ...     throttle.wait(1)
    >>> waits
    [2.0, 4.0]
    """

    def __init__(
        self,
        per_minute: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._free_at = 0.0
        self._lock = Lock()

    def wait(self, weight: float) -> None:
        if self.per_minute is None:
            return
        with self._lock:
            now = self._clock()
            turn = max(now, self._free_at)
            self._free_at = turn + weight * 60 / self.per_minute
        if turn > now:
            self._sleep(turn - now)
