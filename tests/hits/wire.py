"""The way to the marketplace, which a test can cut in either direction."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

from tests.boto_clients import ENDPOINT_URL, network_client, send_in_process

Fault = Callable[[AWSPreparedRequest], AWSResponse]


class Wire:
    """Carries requests into this process's marketplace, and counts them by operation."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.calls: Counter[str] = Counter()
        self._faults: dict[tuple[str, int], Fault] = {}
        client.meta.events.register("before-send.mturk.*", self._carry)

    def fail(self, operation: str, how: Fault, *, at: int = 1) -> None:
        """Let the operation, or any (*), fail once, at the `at`-th call of it from now on."""
        n_before = self.calls.total() if operation == "*" else self.calls[operation]
        self._faults[operation, n_before + at] = how

    def _carry(self, request: AWSPreparedRequest, event_name: str, **kwargs: Any) -> AWSResponse:
        operation = event_name.rsplit(".", 1)[-1]
        self.calls[operation] += 1
        fault = self._faults.pop((operation, self.calls[operation]), send_in_process)
        return self._faults.pop(("*", self.calls.total()), fault)(request)


class _Json:
    def __init__(self, content: Mapping[str, str]) -> None:
        self.content = content

    def stream(self) -> list[bytes]:
        return [json.dumps(self.content).encode()]


def unreachable(request: AWSPreparedRequest) -> AWSResponse:
    """The request never arrives."""
    raise EndpointConnectionError(endpoint_url=request.url)


def answer_lost(request: AWSPreparedRequest) -> AWSResponse:
    """The marketplace does what it was asked, and nobody hears of it."""
    assert send_in_process(request).status_code == 200
    raise ConnectionClosedError(endpoint_url=request.url)


class Killed(BaseException):
    """What ends a process: nothing that it would still do is done."""


def killed_before(request: AWSPreparedRequest) -> AWSResponse:
    """The process is killed as it is about to send."""
    raise Killed


def killed_after(request: AWSPreparedRequest) -> AWSResponse:
    """The marketplace does what it was asked, and the process is killed before it hears of it."""
    assert send_in_process(request).status_code == 200
    raise Killed


def refusal(code: str) -> Fault:
    """An error that AWS answers with before any operation has a look."""

    def refuse(request: AWSPreparedRequest) -> AWSResponse:
        raw: Any = _Json({"__type": code, "Message": "Not now."})
        return AWSResponse(request.url, 400, {}, raw)

    return refuse


def wire_of(requester_keys: Mapping[str, str]) -> Wire:
    """A wire whose client tries everything once."""
    return Wire(network_client(ENDPOINT_URL, requester_keys))
