"""The proxy itself: CONNECT to one of Amazon's two names, and to nothing else.

It listens on this machine alone. What comes through a tunnel is one kind of request, `POST /`;
the rest is refused, with the reason where the program's user reads it.
"""

import json
import shutil
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import IO, Any
from urllib.parse import urlsplit

from error_codes import CodedText, require
from marketplace.api.authentication import AMAZON_HOSTS, SIGNED_HOST, SIGNED_PATH
from marketplace.exceptions import BridgeUnfit

# One request of a program's, sent on to the marketplace as it was signed.

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
    """No whole answer came, so it is unknown whether the request was carried out."""


@dataclass(frozen=True)
class Answer:
    # The content may be large, so it is in a file.
    status: int
    headers: list[tuple[str, str]]
    content: IO[bytes]
    n_bytes: int


@dataclass(frozen=True)
class Marketplace:
    url: str

    def forward(
        self, *, signed_host: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> Answer:
        # What was signed stays as it is; a header names the signed host.
        forwarded = {
            name: value for name, value in headers if name.lower() not in NOT_FORWARDED
        } | {SIGNED_HOST: signed_host}
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=SECONDS)
        try:
            connection.request("POST", parts.path or "/", body, forwarded)
            return _read(connection.getresponse())
        except (OSError, HTTPException) as error:
            raise MarketplaceLost(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()


def find_marketplace(url: str) -> Marketplace:
    """The marketplace at the address of a site or its API. Raises BridgeUnfit if none answers."""
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
    try:
        answer = marketplace.forward(signed_host="", headers=[], body=b"{}")
    except MarketplaceLost as error:
        return CodedText(f"{error}.", "no_answer")
    with answer.content as content:
        text = content.read(IN_MEMORY_BYTES)
    if b"InvalidSignatureException" in text:  # an empty name was signed by nobody
        return None
    if b'"__type"' in text:
        return CodedText(
            "the marketplace there does not know of bridges: it needs a newer Assay.", "too_old"
        )
    return CodedText(f"something else does (HTTP {answer.status}).", "not_a_marketplace")


def _read(response: HTTPResponse) -> Answer:
    # Read the whole answer before passing any of it on: a half would look like a whole.
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
        require(
            n_bytes <= MOST_ANSWER_BYTES,
            HTTPException(f"the answer has more than {MOST_ANSWER_BYTES:,} bytes"),
        )
        content.write(chunk)
    if response.length:  # what was announced and did not come
        raise HTTPException(f"the answer ended {response.length:,} bytes early")
    content.seek(0)
    return n_bytes


LOOPBACK = "127.0.0.1"
# A boto3 client keeps up to ten connections; each has a thread here.
MOST_CONNECTIONS = 64
# How long a tunnel may stand idle, and a handshake or a request stop in its middle.
IDLE_SECONDS = 90
CONTENT_TYPE = "application/x-amz-json-1.1"
TOO_MANY = (
    b"HTTP/1.1 503 Too many connections\r\nConnection: close\r\nContent-Length: 0\r\n"
    b"Proxy-Agent: Assay\r\n\r\n"
)


class Bridge(ThreadingHTTPServer):
    daemon_threads = True  # a program's idle tunnel keeps nobody from ending the bridge
    block_on_close = False
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self,
        port: int,
        *,
        marketplace: Marketplace,
        context: ssl.SSLContext,
        report: Callable[[str], object],
    ) -> None:
        self.marketplace, self.context, self.report = marketplace, context, report
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((LOOPBACK, port), _Tunnel)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        try:
            request.send(TOO_MANY)
        except OSError:
            pass
        finally:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A program went away, or we failed: only this connection ends.
        self.report("A connection was cut.")


class _Tunnel(BaseHTTPRequestHandler):
    """One connection: CONNECT, TLS, then requests until the program closes it."""

    server: Bridge
    protocol_version = "HTTP/1.1"
    server_version = sys_version = "Assay"
    timeout = IDLE_SECONDS
    host = ""  # Amazon's name that the tunnel is to

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        if self.host or host.lower() not in AMAZON_HOSTS or port != "443":
            self._refuse_destination(self.path)
            return
        self.send_response_only(200, "Connection established")
        self.end_headers()
        try:
            self._start_tls()
        except OSError as error:  # of ssl's too
            self.close_connection = True
            self.server.report(
                f"A program did not accept the bridge's certificate for {host}, or went away "
                f"({type(error).__name__}). Does it have AWS_CA_BUNDLE as printed above?"
            )
            return
        self.host = host.lower()

    def do_POST(self) -> None:
        if not self.host:
            self._refuse_destination(self.path)
        elif self.path != SIGNED_PATH or self.headers.get_all("Host") != [self.host]:
            self._refuse(404, "UnknownOperationException", "Only POST / is led on.")
        elif (body := self._read_body()) is not None:
            self._forward(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        if code != HTTPStatus.NOT_IMPLEMENTED:
            self._refuse(code, "SerializationException", (message or "")[:200])
        elif self.host:
            self._refuse(404, "UnknownOperationException", "Only POST / is led on.")
        else:
            self._refuse_destination(self.path)

    def _start_tls(self) -> None:
        plain: socket = self.connection
        self.connection = self.server.context.wrap_socket(plain, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb")
        self.close_connection = False

    def finish(self) -> None:
        # The server has only the socket that TLS took over.
        try:
            super().finish()
        finally:
            self.connection.close()

    def _read_body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdecimal()):
            self._refuse(411, "SerializationException", "The request needs a Content-Length.")
            return None
        if len(length) > 12 or int(length) > MOST_REQUEST_BYTES:
            self._refuse(413, "RequestEntityTooLargeException", "The request is too large.")
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return None
        return body

    def _forward(self, body: bytes) -> None:
        try:
            answer = self.server.marketplace.forward(
                signed_host=self.host, headers=self.headers.items(), body=body
            )
        except MarketplaceLost as error:
            message = f"The marketplace at {self.server.marketplace.url} did not answer: {error}."
            self.server.report(message)
            self._refuse(502, "ServiceFault", message)
        except ValueError:
            self._refuse(400, "SerializationException", "A header cannot be led on.")
        else:
            with answer.content as content:
                self.send_response_only(answer.status)
                for name, value in answer.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(answer.n_bytes))
                self.end_headers()
                shutil.copyfileobj(content, self.wfile)

    def _refuse_destination(self, destination: str) -> None:
        self.server.report(
            f"Refused {destination[:200]!r}: the bridge leads to Amazon's two MTurk names only. "
            "Name other hosts in NO_PROXY."
        )
        names = " and ".join(AMAZON_HOSTS)
        self._refuse(403, "AccessDeniedException", f"This bridge leads to {names} only.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        # The connection closes: the rest of the request is not read.
        content = json.dumps({"__type": code, "Message": message}).encode()
        self.close_connection = True
        self.send_response_only(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: refusals are reported, and the marketplace logs requests."""
