"""How long a marketplace may take over its answers, and a run over all; how much it may say,
and where it may be.

A marketplace may be another team's own, and drip a byte a minute. A timeout of a socket begins
anew with every byte; these limits do not. They hold below boto3 and requests alike, in the
response that both read from, headers included.

A heartbeat keeps the lease of a job however long its calls wait, so that a marketplace which
answers each of them just within its limit would hold a worker for days. A run has some minutes, and
more with each thing that is done: what goes on at a fair pace never ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any, TypeVar

import requests
from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from django.utils.translation import gettext as _
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from hits.exceptions import MarketplaceRefused, MarketplaceSlow, MarketplaceUnreachable
from hits.marketplaces import PORTS, outside_addresses
from presentation.progress import Progress, silently
from work.exceptions import JobPostponed

ANSWER_SECONDS = 60.0
# A hundred assignments of the most that a form may hold fit in several times.
MOST_BYTES = 64 * 2**20


@dataclass
class Deadline:
    """When the calls of a block have had their time; where it `cuts`, an answer's middle too.

    Threads that call for the block share it, so that one that is put off holds for all of them.
    """

    until: float
    cuts: bool = True

    def seconds_left(self) -> float:
        return self.until - time.monotonic()


_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def repeated_later() -> Iterator[None]:
    """Let a job be tried again where the marketplace does not answer, or not now."""
    try:
        yield
    except MarketplaceUnreachable as away:
        # It may be starting again, as this site's own is after its web server was killed.
        raise JobPostponed(str(away)) from away
    except MarketplaceRefused as refusal:
        if refusal.is_momentary:
            raise JobPostponed(str(refusal)) from refusal
        raise


@contextmanager
def call_time(seconds: float, *, cuts: bool = True) -> Iterator[Deadline]:
    """Let all calls within the block take so long together; then they raise MarketplaceSlow."""
    deadline = Deadline(time.monotonic() + seconds, cuts)
    token = _deadline.set(deadline)
    try:
        yield deadline
    finally:
        _deadline.reset(token)


def require_time_left(*event: Any, **details: Any) -> None:
    """MarketplaceSlow where the calls of this block have had their time."""
    deadline = _deadline.get()
    if deadline is not None and deadline.seconds_left() <= 0:
        raise MarketplaceSlow


def _seconds_left() -> float:
    deadline = _deadline.get()
    if deadline is None or not deadline.cuts:
        return ANSWER_SECONDS
    return min(ANSWER_SECONDS, deadline.seconds_left())


class _BoundedReader(RawIOBase):
    """What a socket sends, until the time is over or it is too much."""

    def __init__(self, raw: RawIOBase, connection: socket) -> None:
        self._raw, self._socket = raw, connection
        self._patience = connection.gettimeout()
        self._until = time.monotonic() + _seconds_left()
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds_left = self._until - time.monotonic()
        if seconds_left <= 0:
            raise TimeoutError(_("the answer takes too long"))
        patience = seconds_left if self._patience is None else min(self._patience, seconds_left)
        self._socket.settimeout(patience)
        n = self._raw.readinto(buffer) or 0
        self._n_bytes += n
        if self._n_bytes > MOST_BYTES:
            raise OSError(_("the answer has more than {n:,} bytes").format(n=MOST_BYTES))
        return n

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    def __init__(self, sock: socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        raw: Any = self.fp.detach()
        self.fp = BufferedReader(_BoundedReader(raw, sock))


class _Pinned(HTTPConnection):
    """Connects to an address that was checked, and to no other that the name leads to by then.

    The Host header, and the name that a certificate is for, stay the marketplace's. To a proxy,
    which is the site's own, it connects as it is told to; a tunnel is asked for to the address.
    """

    def _new_conn(self) -> socket:
        name = self._dns_host
        error: Exception | None = None
        for address in self._addresses(name, self.port) if self.proxy is None else []:
            self._dns_host = address
            try:
                return super()._new_conn()
            except (NewConnectionError, ConnectTimeoutError) as failure:
                error = failure
            finally:
                self._dns_host = name
        if error is not None:
            raise error
        return super()._new_conn()

    def _tunnel(self) -> None:
        name = self._tunnel_host
        try:
            for address in self._addresses(name or "", self._tunnel_port)[:1]:
                self._tunnel_host = f"[{address}]" if ":" in address else address
            super()._tunnel()
        finally:
            self._tunnel_host = name

    def _addresses(self, host: str, port: int | None) -> list[str]:
        scheme = "https" if isinstance(self, HTTPSConnection) else "http"
        host = f"[{host}]" if ":" in host else host
        return outside_addresses(f"{scheme}://{host}:{port or PORTS[scheme]}")


class _Connection(_Pinned):
    response_class = _Response


class _SecureConnection(_Pinned, HTTPSConnection):
    response_class = _Response


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _AwsConnection(_Pinned, AWSHTTPConnection):  # type: ignore[misc]
    response_class = _Response  # type: ignore[assignment]


class _AwsSecureConnection(_Pinned, AWSHTTPSConnection):  # type: ignore[misc]
    response_class = _Response  # type: ignore[assignment]


class _AwsPool(AWSHTTPConnectionPool):
    ConnectionCls = _AwsConnection


class _AwsSecurePool(AWSHTTPSConnectionPool):
    ConnectionCls = _AwsSecureConnection


POOLS = {"http": _Pool, "https": _SecurePool}
AWS_POOLS = {"http": _AwsPool, "https": _AwsSecurePool}


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*arguments, **options)
        manager.pool_classes_by_scheme = POOLS
        return manager


def bounded_session() -> requests.Session:
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter())
    return session


def bind(client: Any) -> None:
    # botocore offers no other way to its connections; tests/hits/test_call_limits.py notices if
    # this is none any more. The second is for those through a proxy.
    session = client._endpoint.http_session
    session._manager.pool_classes_by_scheme = AWS_POOLS
    session._pool_classes_by_scheme = AWS_POOLS
    client.meta.events.register("before-send.mturk", require_time_left)


T = TypeVar("T")
RUN_SECONDS = 300.0
# Two a second; a call takes a tenth of a second where nothing is wrong.
SECONDS_EACH = 0.5


class RunTime:
    def __init__(self, deadline: Deadline) -> None:
        self._deadline, self._began = deadline, time.monotonic()
        self.n_done = 0

    def earn(self) -> None:
        self.n_done += 1
        self._deadline.until += SECONDS_EACH

    def message(self) -> str:
        minutes = (time.monotonic() - self._began) / 60
        return _(
            "The marketplace answers too slowly: {n:,} done in {minutes:.0f} min, and nothing more "
            "is sent. What was done is kept. Try again to go on with the rest; if that is as slow, "
            "ask whoever runs the marketplace."
        ).format(n=self.n_done, minutes=minutes)


_run: ContextVar[RunTime | None] = ContextVar("run", default=None)


@contextmanager
def run_time() -> Iterator[None]:
    """Hold a run to its time; one within another has the time of that.

    It ends before a call, never in the middle of one, so that no answer is lost to it.
    MarketplaceSlow says how much was done.
    """
    if _run.get() is not None:
        yield
        return
    with call_time(RUN_SECONDS, cuts=False) as deadline:
        run = RunTime(deadline)
        token = _run.set(run)
        try:
            yield
        except MarketplaceSlow as slow:
            raise MarketplaceSlow(run.message()) from slow
        finally:
            _run.reset(token)


def earning(progress: Progress = silently) -> Progress:
    """The progress, where each thing that goes by earns the run it is in more time."""

    def passes(things: Iterable[T], total: int) -> Iterator[T]:
        for thing in progress(things, total):
            yield thing
            if (run := _run.get()) is not None:
                run.earn()

    return passes
