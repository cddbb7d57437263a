"""Workers at their browsers, cheaply: plain sockets that speak just enough HTTP, so that
the machine's cores go to the servers and not to who measures them."""

import re
import select
import socket
import sys
from dataclasses import dataclass, field
from time import perf_counter, sleep
from urllib.parse import urlencode

PERCENTILES = (50, 95, 99)
HEADER_END = b"\r\n\r\n"
CSRF_TOKEN = "benchmarkbenchmarkbenchmarkbench"
FRAME = re.compile(r'src="([^"]*/worker/frame/[^"]*)"')


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    location: str
    text: str


@dataclass
class Browser:
    """One person's connection, kept open between requests as browsers do."""

    host: str
    port: int
    session_key: str
    _socket: socket.socket | None = field(default=None, repr=False)

    def get(self, path: str) -> Answer:
        """Fetch a page."""
        return self._exchange(self._head("GET", path))

    def post(self, path: str, fields: dict[str, str], *, is_ours: bool = True) -> Answer:
        """Send a form, from a page of the site or, without a cookie, from a sandboxed frame."""
        body = urlencode(fields).encode()
        kind = "Content-Type: application/x-www-form-urlencoded\r\n"
        more = f"{kind}Content-Length: {len(body)}\r\n"
        return self._exchange(self._head("POST", path, more, with_cookies=is_ours) + body)

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _head(self, method: str, path: str, more: str = "", *, with_cookies: bool = True) -> bytes:
        cookies = (
            f"Cookie: sessionid={self.session_key}; csrftoken={CSRF_TOKEN}\r\n"
            f"X-CSRFToken: {CSRF_TOKEN}\r\n"
        )
        host = f"{self.host}:{self.port}"
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n"
            f"{cookies if with_cookies else ''}{more}\r\n"
        ).encode()

    def _exchange(self, message: bytes) -> Answer:
        connection = self._connection()
        connection.sendall(message)
        received = b""
        while HEADER_END not in received:
            received += self._more(connection)
        head, _, body = received.partition(HEADER_END)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        while len(body) < int(headers["content-length"]):
            body += self._more(connection)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(int(first.split()[1]), headers.get("location", ""), body.decode())

    def _connection(self) -> socket.socket:
        """The open connection; a new one where the server has hung up meanwhile."""
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()
        if self._socket is None:
            self._socket = socket.create_connection((self.host, self.port), timeout=60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _more(self, connection: socket.socket) -> bytes:
        chunk = connection.recv(65_536)
        if not chunk:
            self.close()
            raise ConnectionError("The server hung up in the middle of an answer.")
        return chunk


@dataclass
class Tally:
    """How long each step took each time, in seconds, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    cycles: int = 0
    lasted: float = 0.0

    def timed(self, step: str, start: float) -> None:
        """Note a step that began at `start`."""
        self.seconds.setdefault(step, []).append(perf_counter() - start)

    def add(self, other: "Tally") -> None:
        """Take over another's figures."""
        for step, seconds in other.seconds.items():
            self.seconds.setdefault(step, []).extend(seconds)
        self.failures += other.failures
        self.cycles += other.cycles


def do_one_hit(browser: Browser, group_path: str, tally: Tally, *, thinking_seconds: float) -> bool:
    """Accept the group's next HIT, read its page and its frame, and submit. False where
    nothing is left or something went wrong, which the tally then says."""
    try:
        return _do_one_hit(browser, group_path, tally, thinking_seconds)
    except OSError as error:
        tally.failures.append(f"connection: {error}")
        return False


def _do_one_hit(browser: Browser, group_path: str, tally: Tally, thinking_seconds: float) -> bool:
    start = perf_counter()
    accepted = browser.post(f"{group_path}accept/", {})
    tally.timed("accept", start)
    if accepted.status == 410:
        return False
    if accepted.status != 302:
        return _failed(tally, "accept", accepted)
    sleep(thinking_seconds)
    start = perf_counter()
    page = browser.get(accepted.location)
    source = FRAME.search(page.text)
    frame = browser.get(source[1].replace("&amp;", "&")) if source else page
    tally.timed("page", start)
    if page.status != 200 or frame.status != 200 or source is None:
        return _failed(tally, "page", page if page.status != 200 else frame)
    sleep(thinking_seconds)
    assignment_id = accepted.location.rstrip("/").rpartition("/")[2]
    start = perf_counter()
    form = {"assignmentId": assignment_id, "rating": "4"}
    receipt = browser.post("/mturk/externalSubmit", form, is_ours=False)
    tally.timed("submit", start)
    if receipt.status != 200:
        return _failed(tally, "submit", receipt)
    tally.cycles += 1
    sleep(thinking_seconds)
    return True


def _failed(tally: Tally, step: str, answer: Answer) -> bool:
    tally.failures.append(f"{step}: {answer.status} {answer.text[:300]}")
    return False


def print_percentiles(tally: Tally) -> None:
    """A line for each step, in milliseconds."""
    heads = "".join(f"{f'p{percent}':>9}" for percent in PERCENTILES)
    sys.stdout.write(f"{'step (ms)':<24}{heads}{'max':>9}\n")
    for step, seconds in tally.seconds.items():
        ordered = sorted(seconds)
        percentiles = [ordered[min(len(ordered) * p // 100, len(ordered) - 1)] for p in PERCENTILES]
        cells = "".join(f"{value * 1000:9.1f}" for value in (*percentiles, ordered[-1]))
        sys.stdout.write(f"{step:<24}{cells}\n")
