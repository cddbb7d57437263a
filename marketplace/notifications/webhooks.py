"""Notifications by HTTPS, signed as Standard Webhooks says (https://www.standardwebhooks.com).

The connection is made to an address that was looked up and checked, and to no other; the name
stays that of the certificate. Nothing that is answered is followed or kept.
"""

import base64
import hashlib
import hmac
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from http.client import HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from marketplace.models import Notification
from marketplace.people.access_keys import PREFIX, webhook_secret
from work.addresses import checked_addresses

CONNECT_SECONDS = 5
# Of an answer as a whole: a timeout of a socket begins anew with every byte.
ANSWER_SECONDS = 15


def post(notification: Notification, *, now: datetime) -> None:
    """Raises OSError or ValueError if it was not accepted."""
    parts = urlsplit(notification.destination)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    body = notification.body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "Assay"}
    secret = webhook_secret(notification.requester)
    headers |= signed_headers(secret, notification.event_doc_id, body, now=now)
    connection = _Pinned(parts.hostname or "", parts.port or 443, timeout=CONNECT_SECONDS)
    try:
        connection.connect()
        with _cut_after(connection.sock, ANSWER_SECONDS):
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
    except HTTPException as error:
        raise ValueError(f"no answer of HTTP: {type(error).__name__}") from error
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise ValueError(f"answered with HTTP {status}")


def signed_headers(secret: str, event_id: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """The id stays the same when it is sent again."""
    timestamp = str(int(now.timestamp()))
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


class _Pinned(HTTPSConnection):
    """Connects to an address that was checked."""

    def connect(self) -> None:
        addresses = checked_addresses(self.host)
        if addresses is None:
            raise ValueError("the address is inside this marketplace's own network")
        plain = _connected(addresses or [self.host], self.port)
        context = ssl.create_default_context()
        try:
            self.sock = context.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def _connected(addresses: list[str], port: int) -> socket.socket:
    problem = OSError("no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=CONNECT_SECONDS)
        except OSError as error:
            problem = error
    raise problem


@contextmanager
def _cut_after(connection: socket.socket, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, _shut, [connection])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
