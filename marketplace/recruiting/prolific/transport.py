"""Prolific's API over HTTPS: one attempt at what changes something, a few at what only reads.

What an answer, or its absence, says about the world over there is decided here and nowhere else
(see marketplace.recruiting.records). The token is in a header and in no message.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from ssl import SSLCertVerificationError
from typing import Any

import requests
from urllib3.exceptions import NameResolutionError, NewConnectionError

from marketplace.recruiting.records import (
    NotAuthorized,
    NotFound,
    RecruiterProblem,
    Refused,
    Uncertain,
    Unreachable,
    Unreadable,
)

API = "https://api.prolific.com"
PREFIX = "/api/v1"
CONNECT_SECONDS, ANSWER_SECONDS = 5, 30
READS, LONGEST_WAIT = 3, 5.0
MOST_BYTES = 10 * 1024**2
MOST_PAGES = 500
PAGE_SIZE = 100
LONGEST_TEXT = 500
TOKEN_REFUSED = "Prolific does not accept the token"
TOO_MANY = 429
AN_ID = re.compile(r"\b[0-9a-fA-F]{24}\b")
# What is asked here is of no participant: ids in what is said of it are of studies and filters.
OF_STUDIES = ("/studies/", "/projects/", "/workspaces/", "/study-cost-calculator/")


class Transport:
    """Calls under one token. `is_hurried`: a person waits, so one short attempt."""

    def __init__(
        self,
        token: str,
        *,
        url: str = API,
        is_hurried: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._token, self._url, self._sleep = token, url.rstrip("/"), sleep
        self._reads, self._seconds = (1, CONNECT_SECONDS) if is_hurried else (READS, ANSWER_SECONDS)

    def __repr__(self) -> str:
        return f"Transport({self._url})"

    def read(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        for attempt in range(1, self._reads + 1):
            try:
                return self.call("GET", path, query=query)[0]
            except Unreachable as problem:
                if attempt == self._reads:
                    raise
                self._sleep(min(problem.retry_after or 0.2 * 2**attempt, LONGEST_WAIT))
            except Uncertain as problem:
                if attempt == self._reads:
                    raise Unreachable(str(problem)) from problem
                self._sleep(0.2 * 2**attempt)
        raise AssertionError("the last attempt raises or returns")

    def change(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One attempt. Raises Uncertain if no answer says whether it was done."""
        return self.call(method, path, body=body)[0]

    def pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """All rows of a list, page by page; a page past the end is the end."""
        for number in range(1, MOST_PAGES + 1):
            try:
                page = self.read(path, {**query, "page": number, "page_size": PAGE_SIZE})
            except NotFound:
                if number == 1:
                    raise
                return
            rows = page.get("results") if isinstance(page, dict) else None
            if not isinstance(rows, list):
                raise Unreadable("Prolific's answer is no list.")
            yield from rows
            if not _has_next(page):
                return
        raise Refused(f"Prolific's list at {path} has more than {MOST_PAGES} pages.")

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Mapping[str, str]]:
        try:
            # A connection of its own: one that was kept open may be closed over there just as
            # the request leaves, and then nobody knows whether it was read.
            response = requests.request(
                method,
                f"{self._url}{PREFIX}{path}",
                params=query,
                json=body,
                headers={"Authorization": f"Token {self._token}", "Connection": "close"},
                timeout=(CONNECT_SECONDS, self._seconds),
                allow_redirects=False,
                stream=True,
            )
            content = _content(response)
        except requests.RequestException as error:
            raise _unanswered(error) from None
        if response.status_code >= 300:
            raise _problem(response, content, path)
        if not content:
            return None, response.headers
        if "csv" in response.headers.get("Content-Type", ""):
            return content.decode("utf-8-sig", "replace"), response.headers
        try:
            return json.loads(content, parse_float=Decimal), response.headers
        except ValueError:
            raise Uncertain("Prolific's answer is no JSON.") from None


def _has_next(page: Mapping[str, Any]) -> bool:
    links = page.get("_links")
    following = links.get("next") if isinstance(links, dict) else None
    return bool(isinstance(following, dict) and following.get("href"))


def _content(response: requests.Response) -> bytes:
    with response:
        parts, n_bytes = [], 0
        for part in response.iter_content(1 << 16):
            n_bytes += len(part)
            if n_bytes > MOST_BYTES:
                raise Uncertain(f"Prolific's answer has more than {MOST_BYTES // 1024**2} MiB.")
            parts.append(part)
    return b"".join(parts)


def _unanswered(error: requests.RequestException) -> RecruiterProblem:
    reason = getattr(_first(error), "reason", None)
    # A certificate is looked at before anything is sent; other errors of TLS come with the answer.
    never_left = (
        isinstance(error, requests.ConnectTimeout)
        or isinstance(reason, NewConnectionError | NameResolutionError)
        or isinstance(_first(reason), SSLCertVerificationError)
    )
    if never_left:
        return Unreachable("Prolific could not be reached.")
    return Uncertain("Prolific did not answer.")


def _first(error: BaseException | None) -> Any:
    return error.args[0] if error is not None and error.args else None


def _problem(response: requests.Response, content: bytes, path: str) -> RecruiterProblem:
    # Pages show the text, so it names no participant.
    status, (text, code) = response.status_code, _said(content)
    if not path.startswith(OF_STUDIES):
        text = AN_ID.sub("…", text)
    if status == TOO_MANY:
        return Unreachable(text or "Prolific is busy.", retry_after=_seconds(response))
    if status >= 500:
        return Uncertain(f"Prolific answered {status}.")
    if status in (401, 403):
        return NotAuthorized(f"{TOKEN_REFUSED}: {text}", status=status)
    kind = NotFound if status == 404 else Refused
    return kind(f"Prolific refused: {text or status}", status=status, remote_code=code)


def _seconds(response: requests.Response) -> float:
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isdigit() else 0.0


def _said(content: bytes) -> tuple[str, str]:
    try:
        body = json.loads(content)
    except ValueError:
        return "", ""
    error = body.get("error", body) if isinstance(body, dict) else {}
    if not isinstance(error, dict):
        return _kept(str(error)), ""
    detail = error.get("detail") or error.get("title") or ""
    return _kept(_as_text(detail)), _kept(str(error.get("error_code", "")))


def _kept(text: str) -> str:
    # A database stores no half of a surrogate pair and no NUL.
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()[:LONGEST_TEXT]


def _as_text(detail: Any) -> str:
    if isinstance(detail, dict):
        return "; ".join(f"{name}: {_as_text(each)}" for name, each in detail.items())
    return " ".join(map(_as_text, detail)) if isinstance(detail, list) else str(detail)
