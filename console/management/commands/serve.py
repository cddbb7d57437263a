import contextlib
import signal
import socket
import sys
import threading
import time
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.first_run import RESEARCHER, WORKER
from work.exceptions import PartFailed
from work.registry import QUEUES
from work.supervision import Part, Supervisor

MANAGE = [sys.executable, "manage.py"]


class Command(BaseCommand):
    help = "Start the site with its marketplace and the background workers, and keep them running."

    def add_arguments(self, parser: CommandParser) -> None:
        where = urlsplit(settings.SITE_URL)
        parser.add_argument("--bind", default=f"{where.hostname}:{where.port or 8000}")
        parser.add_argument("--threads", type=int, default=8)

    def handle(self, *args: Any, bind: str, threads: int, **options: Any) -> None:
        _require_free(bind)
        _require_private_keys(bind)
        signal.signal(signal.SIGTERM, _interrupt)
        supervisor = Supervisor(
            _parts(bind, threads), folder=settings.BASE_DIR, report=self.stderr.write
        )
        greeting = threading.Thread(target=self._greet, args=(bind,), daemon=True)
        greeting.start()
        try:
            supervisor.watch()
        except KeyboardInterrupt:
            self.stdout.write("Stopping.")
        except PartFailed as failed:
            raise CommandError(str(failed)) from failed
        finally:
            supervisor.stop()

    def _greet(self, bind: str) -> None:
        """Say where the site is, as soon as it answers."""
        host, _, port = bind.rpartition(":")
        while True:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((host, int(port)), timeout=1),
            ):
                self.stdout.write(_welcome(bind))
                return
            time.sleep(0.2)


def _parts(bind: str, threads: int) -> list[Part]:
    workers = [
        Part(f"worker of the queue {queue}", [*MANAGE, "run_worker", "--queue", queue])
        for queue in QUEUES
    ]
    return [Part("web server", site_command(bind, threads=threads)), *workers]


def site_command(bind: str, *, processes: int = 2, threads: int = 8) -> list[str]:
    """What starts the servers of the site."""
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", bind]
    command += ["--config", "python:config.gunicorn"]
    command += ["--workers", str(processes), "--threads", str(threads)]
    # A worker who thinks for half a minute comes back on the same connection.
    return [*command, "--keep-alive", "30", "--log-level", "warning", "--preload"]


def _require_free(bind: str) -> None:
    host, _, port = bind.rpartition(":")
    if not (host and port.isdecimal() and 0 < int(port) < 65536):
        raise CommandError(f"--bind takes HOST:PORT, not '{bind}'.", returncode=2)
    try:
        socket.create_server((host, int(port))).close()
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]
        told = f"The site cannot be served at {bind}: {reason}. Give another SITE_URL or --bind."
        raise CommandError(told, returncode=2) from None


def _require_private_keys(bind: str) -> None:
    """The settings judge by SITE_URL and ALLOWED_HOSTS; binding to more opens the site to more."""
    host = socket.gethostbyname(bind.rpartition(":")[0])
    if settings.SECRET_KEY.startswith("django-insecure-") and not ip_address(host).is_loopback:
        raise CommandError(
            f"At {bind} others can reach the site, and its SECRET_KEY is a published one. Set "
            "SECRET_KEY and ENCRYPTION_KEYS as .env.example says.",
            returncode=2,
        )


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _welcome(bind: str) -> str:
    site = f"http://{bind}"
    password = settings.SAMPLE_PASSWORD or "the one you chose"
    return (
        f"\nAssay is at {site}\n"
        f"  Researchers:  {site}/          log in as {RESEARCHER}, password {password}\n"
        f"  Workers:      {site}/worker/   log in as {WORKER}, password {password}\n"
        f"  Requester API for boto3: AWS_ENDPOINT_URL_MTURK={site}/requester\n"
        "Ctrl-C stops it.\n"
    )
