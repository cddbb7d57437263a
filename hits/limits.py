"""How long a marketplace may take over its answers, and a run over all; how much it may say,
and where it may be.

A marketplace may be another team's own, and drip a byte a minute. A timeout of a socket begins
anew with every byte; these limits do not. They hold below boto3 and requests alike, in the
response that both read from, headers included.

A heartbeat keeps the lease of a job however long its calls wait, so that a marketplace which
answers each of them just within its limit would hold a worker for days. A run has some minutes, and
more with each thing that is done: what goes on at a fair pace never ends."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import requests
from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from django.conf import settings
from django.utils.translation import gettext as _
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from error_codes import CodedText, require
from hits.exceptions import (
    ConnectionUnfit,
    MarketplaceRefused,
    MarketplaceSlow,
    MarketplaceUnreachable,
)
from presentation.progress import Progress, silently
from work.addresses import checked_addresses
from work.exceptions import JobPostponed

ANSWER_SECONDS = 60.0
# A hundred assignments of the most that a form may hold fit in several times.
MOST_BYTES = 64 * 2**20


@dataclass
class Deadline:
    until: float
    cuts: bool = True

    def seconds_left(self) -> float:
        return self.until - time.monotonic()


_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def repeated_later() -> Iterator[None]:
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
    # All calls within the block together may take this long.
    deadline = Deadline(time.monotonic() + seconds, cuts)
    token = _deadline.set(deadline)
    try:
        yield deadline
    finally:
        _deadline.reset(token)


def require_time_left(*event: Any, **details: Any) -> None:
    deadline = _deadline.get()
    if deadline is not None and deadline.seconds_left() <= 0:
        raise MarketplaceSlow


def _seconds_left() -> float:
    deadline = _deadline.get()
    if deadline is None or not deadline.cuts:
        return ANSWER_SECONDS
    return min(ANSWER_SECONDS, deadline.seconds_left())


class _BoundedReader(RawIOBase):
    def __init__(self, raw: RawIOBase, connection: socket) -> None:
        self._raw, self._socket = raw, connection
        self._patience = connection.gettimeout()
        self._until = time.monotonic() + _seconds_left()
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds_left = self._until - time.monotonic()
        require(seconds_left > 0, TimeoutError(_("the answer takes too long")))
        self._socket.settimeout(
            seconds_left if self._patience is None else min(self._patience, seconds_left)
        )
        n = self._raw.readinto(buffer) or 0
        self._n_bytes += n
        require(
            self._n_bytes <= MOST_BYTES,
            OSError(_("the answer has more than {n:,} bytes").format(n=MOST_BYTES)),
        )
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


def _bounded_pool(pool: type, connection: type) -> type:
    pinned = type("_Connection", (_Pinned, connection), {"response_class": _Response})
    return type("_Pool", (pool,), {"ConnectionCls": pinned})


POOLS: dict[str, Any] = {
    "http": _bounded_pool(HTTPConnectionPool, HTTPConnection),
    "https": _bounded_pool(HTTPSConnectionPool, HTTPSConnection),
}
AWS_POOLS = {
    "http": _bounded_pool(AWSHTTPConnectionPool, AWSHTTPConnection),
    "https": _bounded_pool(AWSHTTPSConnectionPool, AWSHTTPSConnection),
}


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
    # botocore offers no other way to its connections; tests/hits/test_limits.py notices if
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
        return _(
            "The marketplace answers too slowly: {n:,} done in {minutes:.0f} min, and nothing more "
            "is sent. What was done is kept. Try again to go on with the rest; if that is as slow, "
            "ask whoever runs the marketplace."
        ).format(n=self.n_done, minutes=(time.monotonic() - self._began) / 60)


_run: ContextVar[RunTime | None] = ContextVar("run", default=None)


@contextmanager
def run_time() -> Iterator[None]:
    """Hold a run to its time; an inner one has the time of the outer. It ends before a call,
    never in the middle of one, so that no answer is lost to it."""
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
    # Each thing done gives the run around it more time.

    def passes(things: Iterable[T], total: int) -> Iterator[T]:
        for thing in progress(things, total):
            yield thing
            if (run := _run.get()) is not None:
                run.earn()

    return passes


THIS_SITE = "local"
PROFILES = (THIS_SITE,)
# What connections of former studies are called, and where they led.
AMAZON = ("sandbox", "production")
AMAZON_HOSTS = (
    "mturk-requester.us-east-1.amazonaws.com",
    "mturk-requester-sandbox.us-east-1.amazonaws.com",
)


def profile_problem(name: str) -> CodedText | None:
    if name in PROFILES:
        return None
    if name in AMAZON:
        return CodedText(amazon_closed(), code="amazon_closed")
    return CodedText(
        _("There is no marketplace profile '{profile}'. Profiles: {profiles}.").format(
            profile=name, profiles=", ".join(PROFILES)
        ),
        code="unknown_profile",
    )


def amazon_closed() -> str:
    return _(
        "Amazon closed Mechanical Turk on 2026-09-30. Use this site's own marketplace (profile "
        "local) or a connection to another Assay's; programs with Amazon's address in their code "
        "are led there by `python manage.py mturk_bridge`."
    )


PORTS = {"http": 80, "https": 443}
THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]")


@dataclass(frozen=True)
class MarketplaceAddress:
    name: str
    endpoint_url: str
    fees: str | None = None


def marketplace_at(address: str) -> MarketplaceAddress:
    if not address:
        return _this_site()
    parts = _parts(address)
    ours = {_origin(_parts(url)) for url in (settings.MARKETPLACE_ENDPOINT_URL, settings.SITE_URL)}
    if _origin(parts) in ours:
        return _this_site()
    require(
        _host(parts) not in AMAZON_HOSTS, ConnectionUnfit(amazon_closed(), code="amazon_closed")
    )
    return MarketplaceAddress(_name(parts), f"{parts.scheme}://{_netloc(parts)}{parts.path}")


def is_marketplace_here() -> bool:
    return _origin(_parts(settings.MARKETPLACE_ENDPOINT_URL)) == _origin(_parts(settings.SITE_URL))


def _this_site() -> MarketplaceAddress:
    return MarketplaceAddress(THIS_SITE, "", settings.MARKETPLACE_FEE_SCHEDULE)


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address.strip())
        is_valid = parts.port != 0 and bool(parts.hostname) and parts.scheme in PORTS
    except ValueError:
        is_valid = False
    if not is_valid or parts.username is not None or parts.query or parts.fragment:
        raise MarketplaceUnreachable(
            _(
                "“{address}” is not a marketplace's address: it needs http(s)://, a host and a "
                "path, and nothing else."
            ).format(address=address),
            code="not_an_address",
        )
    return parts._replace(path=parts.path.rstrip("/"))


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    return f"[{host}]" if ":" in host else host


def _origin(parts: SplitResult) -> tuple[str, int]:
    host = _host(parts)
    is_here = host in THIS_MACHINE or host.startswith("127.")
    # http and https of one host, each at its usual port, are one site.
    port = parts.port or PORTS[parts.scheme]
    return "localhost" if is_here else host, 443 if port == 80 else port


def _netloc(parts: SplitResult) -> str:
    port = parts.port
    own = "" if port in (None, PORTS[parts.scheme]) else f":{port}"
    return f"{_host(parts)}{own}"


def _name(parts: SplitResult) -> str:
    netloc = _netloc(parts)
    return f"{netloc}:{PORTS[parts.scheme]}" if netloc in PROFILES else netloc


def require_outside(endpoint_url: str) -> None:
    """Refuse addresses inside the site's own network. This check only fails early: the name can
    lead elsewhere later, so each connection is made to what `outside_addresses` returns then
    (hits.limits)."""
    outside_addresses(endpoint_url)


def outside_addresses(endpoint_url: str) -> list[str]:
    """The addresses to connect to, looked up once; [] if any is allowed."""
    host = urlsplit(endpoint_url).hostname or ""
    if not host or marketplace_at(endpoint_url).name == THIS_SITE:
        return []
    try:
        addresses = checked_addresses(host)
    except OSError as error:
        raise MarketplaceUnreachable(
            _("There is no marketplace at “{host}”: {error}.").format(host=host, error=error),
            code="unknown_host",
        ) from error
    if addresses is None:
        raise ConnectionUnfit(
            _("“{host}” is an address inside this site's own network.").format(host=host),
            code="internal_address",
        )
    return addresses
