"""A line to a marketplace that loses, doubles, cuts and refuses: by chance, from a seed."""

from __future__ import annotations

import random
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from tests.hits import cutting_proxy as cuts
from tests.hits.cutting_proxy import CuttingProxy, read_message

CUTS = (cuts.half_a_body, cuts.no_body, cuts.no_keys, cuts.half_a_character, cuts.a_cut_line)
# What happens to one request in six; the others pass.
KINDS = ("lost on the way", "answer lost", "doubled", "cut", "throttled", "bad gateway")
FAULT_SHARE = 1 / 6
THROTTLED = b'{"__type": "ThrottlingException", "Message": "Rate exceeded"}'


class HostileLine(CuttingProxy):
    """Carries the requester's calls; whatever else comes along passes untouched."""

    def __init__(self, site_url: str, *, seed: int) -> None:
        super().__init__(site_url)
        self.rng = random.Random(seed)
        self.is_hostile = True
        self.faults: Counter[str] = Counter()

    def _carry(self, downstream: socket.socket) -> None:
        with downstream, suppress(OSError):
            request = read_message(downstream)
            kind = self._fault()
            if kind == "lost on the way":
                return
            answer = self._answer(request, kind)
            if kind != "answer lost":
                downstream.sendall(answer)

    def _fault(self) -> str:
        with self._lock:
            if not self.is_hostile or self.rng.random() >= FAULT_SHARE:
                return ""
            kind = self.rng.choice(KINDS)
            self.faults[kind] += 1
            return kind

    def _answer(self, request: bytes, kind: str) -> bytes:
        if kind == "throttled" and b" /marketplace-api/" in request[:200]:
            return _response(b"429 Too Many Requests", b"application/json", b"{}")
        if kind == "throttled":
            return _response(b"400 Bad Request", b"application/x-amz-json-1.1", THROTTLED)
        if kind == "bad gateway":
            return _response(b"502 Bad Gateway", b"text/html", b"<h1>Bad gateway</h1>")
        answer = self._upstream(request)
        if kind == "doubled":
            # The second is answered: what the first one did is why it may be refused.
            answer = self._upstream(request)
        head, _, body = answer.partition(b"\r\n\r\n")
        head = re.sub(rb"(?i)\r\nconnection: *\S+", b"", head) + b"\r\nConnection: close\r\n\r\n"
        return self.rng.choice(CUTS)(head, body) if kind == "cut" else head + body

    def _upstream(self, request: bytes) -> bytes:
        with socket.create_connection(self.upstream, timeout=60) as upstream:
            upstream.sendall(request)
            return read_message(upstream)


def _response(status: bytes, kind: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, kind, len(body)) + body


@contextmanager
def hostile_line(site_url: str, *, seed: int) -> Iterator[HostileLine]:
    line = HostileLine(site_url, seed=seed)
    thread = Thread(target=line.serve, daemon=True)
    thread.start()
    try:
        yield line
    finally:
        line.server.shutdown(socket.SHUT_RDWR)
        line.server.close()
        thread.join()
