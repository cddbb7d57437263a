"""One request of a program's, sent on to the marketplace as it was signed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import IO
from urllib.parse import urlsplit

from error_codes import CodedText
from marketplace.api.signed_hosts import SIGNED_HOST
from marketplace.exceptions import BridgeUnfit

# A marketplace's own limit of a request; an answer has at most a hundred assignments.
MOST_REQUEST_BYTES = 2 * 2**20
MOST_ANSWER_BYTES = 64 * 2**20
IN_MEMORY_BYTES = 2**20
SECONDS = 60
# Between two neighbours only (RFC 9110, 7.6.1), or ours to say.
NOT_FORWARDED = {
    *("host", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te"),
    *("trailer", "transfer-encoding", "upgrade", "expect", "content-length", "accept-encoding"),
    SIGNED_HOST.lower(),
}
RETURNED = ("Content-Type", "x-amzn-RequestId", "Retry-After")


class MarketplaceLost(Exception):
    """No whole answer came; whether the request was carried out nobody knows."""


@dataclass(frozen=True)
class Answer:
    """What the marketplace answered; the content, which may be large, in a file."""

    status: int
    headers: list[tuple[str, str]]
    content: IO[bytes]
    n_bytes: int


@dataclass(frozen=True)
class Marketplace:
    """Where requests are sent on to: a Requester API's own address."""

    url: str

    def forward(
        self, *, signed_host: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> Answer:
        """Send a request on, once: what was signed stays as it is, and a header says for whom."""
        forwarded = {
            name: value for name, value in headers if name.lower() not in NOT_FORWARDED
        } | {SIGNED_HOST: signed_host}
        connection = self._connection()
        try:
            connection.request("POST", urlsplit(self.url).path or "/", body, forwarded)
            return _read(connection.getresponse())
        except (OSError, HTTPException) as error:
            raise MarketplaceLost(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=SECONDS)


def find_marketplace(url: str) -> Marketplace:
    """The marketplace at an address, which may be its site's or its API's; BridgeUnfit where none
    answers."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.fragment or parts.username:
        raise BridgeUnfit(
            f"'{url}' is not a marketplace's address: it needs http(s):// and a host.",
            code="invalid_address",
        )
    if parts.hostname is not None and parts.hostname.endswith(".amazonaws.com"):
        raise BridgeUnfit(
            "--marketplace is Amazon's own address; name that of an Assay site.",
            code="amazons_address",
        )
    here = url.rstrip("/")
    candidates = [here] if parts.path.strip("/") else [f"{here}/requester", f"{here}/"]
    problems = []
    for candidate in map(Marketplace, candidates):
        problem = _problem(candidate)
        if problem is None:
            return candidate
        problems.append(problem)
    raise BridgeUnfit(
        f"No marketplace answers at {candidates[0]}: {problems[0]}", code=problems[0].code
    )


def _problem(marketplace: Marketplace) -> CodedText | None:
    """Why this is not a marketplace; None if it is one, which asks who calls."""
    try:
        answer = marketplace.forward(signed_host="", headers=[], body=b"{}")
    except MarketplaceLost as error:
        return CodedText(f"{error}.", "no_answer")
    with answer.content as content:
        text = content.read(IN_MEMORY_BYTES)
    if b"InvalidSignatureException" in text:  # an empty name was signed by nobody
        return None
    if b'"__type"' in text:
        reason = "the marketplace there does not know of bridges: it needs a newer Assay."
        return CodedText(reason, "too_old")
    return CodedText(f"something else does (HTTP {answer.status}).", "not_a_marketplace")


def _read(response: HTTPResponse) -> Answer:
    """The whole answer, before any of it is passed on: half of one would look like a whole."""
    content = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115
    try:
        n_bytes = _copy(response, content)
    except BaseException:
        content.close()
        raise
    headers = [(name, value) for name in RETURNED if (value := response.getheader(name))]
    return Answer(response.status, headers, content, n_bytes)


def _copy(response: HTTPResponse, content: IO[bytes]) -> int:
    n_bytes = 0
    while chunk := response.read(2**16):
        n_bytes += len(chunk)
        if n_bytes > MOST_ANSWER_BYTES:
            raise HTTPException(f"the answer has more than {MOST_ANSWER_BYTES:,} bytes")
        content.write(chunk)
    if response.length:  # what was announced and did not come
        raise HTTPException(f"the answer ended {response.length:,} bytes early")
    content.seek(0)
    return n_bytes
