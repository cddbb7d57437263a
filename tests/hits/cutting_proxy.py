"""A TCP proxy that cuts answers short, as a bad line or a broken intermediary does."""

import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

CutFunction = Callable[[bytes, bytes], bytes]
"""Makes of an answer's head and body what the client gets before its connection closes."""


def half_a_body(head: bytes, body: bytes) -> bytes:
    """A 200 whose length is right for the half that is left."""
    return _frame_bytes(head, body[: len(body) // 2])


def no_body(head: bytes, body: bytes) -> bytes:
    return _frame_bytes(head, b"")


def no_keys(head: bytes, body: bytes) -> bytes:
    return _frame_bytes(head, b"{}")


def a_list(head: bytes, body: bytes) -> bytes:
    return _frame_bytes(head, b"[]")


def half_a_character(head: bytes, body: bytes) -> bytes:
    return _frame_bytes(head, b'{"HIT": {"Title": "\xc3')


def a_cut_line(head: bytes, body: bytes) -> bytes:
    """The connection ends before the length that was announced."""
    return head + body[: len(body) // 2]


def _frame_bytes(head: bytes, body: bytes) -> bytes:
    return re.sub(rb"(?i)content-length: *\d+", b"Content-Length: %d" % len(body), head) + body


class CuttingProxy:
    """Hands requests on to a site, and cuts the answers that it was asked to."""

    def __init__(self, site_url: str) -> None:
        parts = urlsplit(site_url)
        self.upstream = (parts.hostname, parts.port)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        self.calls: Counter[str] = Counter()
        self.cuts: dict[tuple[str, int], CutFunction] = {}
        self.n_cut = 0
        self._lock = threading.Lock()

    def cut(self, operation: str, how: CutFunction, *numbers: int) -> None:
        """Cut the answers to these calls of the operation, counted from now on, from 1."""
        for number in numbers:
            self.cuts[operation, self.calls[operation] + number] = how

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                threading.Thread(target=self._carry, args=[connection], daemon=True).start()

    def _carry(self, downstream: socket.socket) -> None:
        with downstream, suppress(OSError):
            request = read_message(downstream)
            operation = re.search(rb"(?i)x-amz-target: *(?:\S+\.)?(\w+)", request)
            name = operation[1].decode() if operation else ""
            with self._lock:
                self.calls[name] += 1
                how = self.cuts.pop((name, self.calls[name]), None)
                self.n_cut += how is not None
            with socket.create_connection(self.upstream, timeout=60) as upstream:
                upstream.sendall(request)
                head, _, body = read_message(upstream).partition(b"\r\n\r\n")
            head = (
                re.sub(rb"(?i)\r\nconnection: *\S+", b"", head) + b"\r\nConnection: close\r\n\r\n"
            )
            downstream.sendall(how(head, body) if how else head + body)


def read_message(connection: socket.socket) -> bytes:
    """A whole request or answer, which has a length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += (chunk := connection.recv(65_536))
        if not chunk:
            raise ConnectionResetError
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", data)
    size = data.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
    while len(data) < size:
        data += (chunk := connection.recv(65_536))
        if not chunk:
            raise ConnectionResetError
    return data


@contextmanager
def cutting_proxy(site_url: str) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(site_url)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.server.shutdown(socket.SHUT_RDWR)
        proxy.server.close()
        thread.join()
