"""The processes of a site, kept running together: the web server, and a worker for each queue."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from django.conf import settings

from work.exceptions import AddressUnfit
from work.registry import QUEUES
from work.supervision import Part, Supervisor

MANAGE = [sys.executable, "manage.py"]


def serve_site(
    bind: str, *, threads: int, report: Callable[[str], object], greet: Callable[[], object]
) -> None:
    """Serve until interrupted; `greet` is called once the site answers."""
    signal.signal(signal.SIGTERM, _interrupt)
    supervisor = Supervisor(_parts(bind, threads), folder=settings.BASE_DIR, report=report)
    threading.Thread(target=_greet, args=(bind, greet), daemon=True).start()
    try:
        supervisor.watch()
    except KeyboardInterrupt:
        report("Stopping.")
    finally:
        supervisor.stop()


def site_command(bind: str, *, processes: int = 2, threads: int = 8) -> list[str]:
    """What starts the servers of the site."""
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", bind]
    command += ["--config", "python:config.gunicorn"]
    command += ["--workers", str(processes), "--threads", str(threads)]
    # A worker who thinks for half a minute comes back on the same connection.
    return [*command, "--keep-alive", "30", "--log-level", "warning", "--preload"]


def require_free(bind: str) -> None:
    """AddressUnfit where that is no address, or something listens there."""
    host, _, port = bind.rpartition(":")
    if not (host and port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise AddressUnfit(f"--bind takes HOST:PORT, not '{bind}'.")
    try:
        socket.create_server((host, int(port))).close()
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        raise AddressUnfit(
            f"The site cannot be served at {bind}: {reason}. Give another SITE_URL or --bind."
        ) from None


def _parts(bind: str, threads: int) -> list[Part]:
    workers = [
        Part(f"worker of the queue {queue}", [*MANAGE, "run_worker", "--queue", queue])
        for queue in QUEUES
    ]
    return [Part("web server", site_command(bind, threads=threads)), *workers]


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _greet(bind: str, greet: Callable[[], object]) -> None:
    host, _, port = bind.rpartition(":")
    while True:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            greet()
            return
        time.sleep(0.2)
