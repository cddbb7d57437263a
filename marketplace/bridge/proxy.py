"""The proxy itself: CONNECT to one of Amazon's two names, and to nothing else.

It listens on this machine alone. What comes through a tunnel is one kind of request, `POST /`;
the rest is refused, with the reason where the program's user reads it.
"""

from __future__ import annotations

import json
import shutil
import ssl
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any

from marketplace.api.signed_hosts import AMAZON_HOSTS, SIGNED_PATH
from marketplace.bridge.forwarding import MOST_REQUEST_BYTES, Answer, Marketplace, MarketplaceLost

LOOPBACK = "127.0.0.1"
# A boto3 client keeps up to ten connections; each has a thread here.
MOST_CONNECTIONS = 64
# How long a tunnel may stand idle, and a handshake or a request stop in its middle.
IDLE_SECONDS = 90
HTTPS_PORT = "443"
CONTENT_TYPE = "application/x-amz-json-1.1"
TOO_MANY = (
    b"HTTP/1.1 503 Too many connections\r\nConnection: close\r\nContent-Length: 0\r\n"
    b"Proxy-Agent: Assay\r\n\r\n"
)


class Bridge(ThreadingHTTPServer):
    """Leads tunnels to Amazon's names to a marketplace."""

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
        """Let a thread of its own answer, unless too many do."""
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
        """A program that went away, or a fault of ours; either ends this connection only."""
        self.report("A connection was cut.")


class _Tunnel(BaseHTTPRequestHandler):
    """One connection: CONNECT, then TLS, then requests, until the program closes it."""

    server: Bridge
    protocol_version = "HTTP/1.1"
    server_version = sys_version = "Assay"
    timeout = IDLE_SECONDS
    host = ""  # Amazon's name that the tunnel is to

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        if self.host or host.lower() not in AMAZON_HOSTS or port != HTTPS_PORT:
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
        """What the base class refuses: another method, or what is no request."""
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
        """Close the tunnel, of which the server has only the socket that TLS took over."""
        try:
            super().finish()
        finally:
            self.connection.close()

    def _read_body(self) -> bytes | None:
        """What was sent; None where that was refused."""
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
            self._pass_on(answer)

    def _pass_on(self, answer: Answer) -> None:
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
        """Answer in the form of the service, and close: what else was sent is not read."""
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
        """Nothing: what is refused is reported, and a log of requests is the marketplace's."""
