"""Dropping a connection, as a network does that fails between commit and answer. Only a
test does it (see marketplace.api.fault_injection)."""

import socket
from contextlib import suppress
from typing import Any

from django.http import HttpRequest, HttpResponse


def disconnect(request: HttpRequest) -> HttpResponse:
    """Close the connection that the request came on. The response goes nowhere; where the
    server hides its socket, it promises more than it holds, so that a client finds it broken."""
    connection = _socket_of(request.META)
    if connection is not None:
        with suppress(OSError):  # the client may have been quicker
            connection.shutdown(socket.SHUT_RDWR)
    return HttpResponse(b"{", headers={"Content-Length": "1024"})


def _socket_of(environ: dict[str, Any]) -> socket.socket | None:
    """Gunicorn names the socket; under Django's own server it is what the input reads from."""
    named = environ.get("gunicorn.socket")
    if isinstance(named, socket.socket):
        return named
    stream: Any = environ.get("wsgi.input")
    for _ in range(4):
        reader = getattr(getattr(stream, "_read", None), "__self__", None)
        sock = getattr(getattr(reader or stream, "raw", None), "_sock", None)
        if isinstance(sock, socket.socket):
            return sock
        stream = reader
    return None
