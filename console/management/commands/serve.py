import contextlib
import io
import signal
import socket
import subprocess
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.first_run import RESEARCHER, WORKER

SWEEP_EVERY_SECONDS = 60
MANAGE = [sys.executable, "manage.py"]


class Command(BaseCommand):
    help = "Start the site with its marketplace, and the background worker; stop both together."

    def add_arguments(self, parser: CommandParser) -> None:
        where = urlsplit(settings.SITE_URL)
        parser.add_argument("--bind", default=f"{where.hostname}:{where.port or 8000}")
        parser.add_argument("--threads", type=int, default=8)

    def handle(self, *args: Any, bind: str, threads: int, **options: Any) -> None:
        _require_free(bind)
        signal.signal(signal.SIGTERM, _interrupt)
        commands = [
            site_command(bind, threads=threads),
            [*MANAGE, "db_worker", "--queue-name", "*", "-v", "0"],
        ]
        processes = [subprocess.Popen(command, cwd=settings.BASE_DIR) for command in commands]
        try:
            _wait_for_answer(bind, processes)
            self.stdout.write(_welcome(bind))
            _watch(processes)
        except KeyboardInterrupt:
            self.stdout.write("Stopping.")
        finally:
            _stop(processes)


def site_command(bind: str, *, processes: int = 2, threads: int = 8) -> list[str]:
    """What starts the servers of the site."""
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", bind]
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


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _wait_for_answer(bind: str, processes: list[subprocess.Popen[bytes]]) -> None:
    host, _, port = bind.rpartition(":")
    while True:
        _require_running(processes)
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.2)


def _require_running(processes: list[subprocess.Popen[bytes]]) -> None:
    if any(process.poll() is not None for process in processes):
        raise CommandError("A part of the site stopped; its message is above.")


def _watch(processes: list[subprocess.Popen[bytes]]) -> None:
    next_sweep = 0.0
    while True:
        _require_running(processes)
        if time.monotonic() >= next_sweep:
            call_command("sweep_marketplace", stdout=io.StringIO())
            call_command("send_notifications", stdout=io.StringIO())
            next_sweep = time.monotonic() + SWEEP_EVERY_SECONDS
        time.sleep(0.5)


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


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
