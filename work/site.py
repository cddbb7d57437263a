import json
import os
import socket
import sys

from django.conf import settings

from work.exceptions import AddressUnfit
from work.registry import QUEUES
from work.supervision import PLAN_VARIABLE, Part

MANAGE = [sys.executable, "manage.py"]


def serve_site(bind: str, *, threads: int, greeting: str) -> None:
    """Become the supervisor of the site's processes: this process runs until it is interrupted.

    The supervisor is a program of its own because this process has imported all of Django, which
    would take 80 MB as long as the site runs.
    """
    plan = {
        "parts": [[part.name, part.command] for part in site_parts(bind, threads)],
        "folder": str(settings.BASE_DIR),
        "bind": bind,
        "greeting": greeting,
    }
    sys.stdout.flush()
    os.chdir(settings.BASE_DIR)
    # Not as an argument: the greeting may hold a password, and all users may list arguments.
    os.environ[PLAN_VARIABLE] = json.dumps(plan)
    os.execv(sys.executable, [sys.executable, "-m", "work.supervision"])


def site_command(bind: str, *, processes: int = 2, threads: int = 8) -> list[str]:
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", bind]
    command += ["--config", "python:config.gunicorn"]
    command += ["--workers", str(processes), "--threads", str(threads)]
    # A worker who thinks for half a minute comes back on the same connection.
    return [*command, "--keep-alive", "30", "--log-level", "warning", "--preload"]


def require_free(bind: str) -> None:
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


def site_parts(bind: str, threads: int) -> list[Part]:
    processes = settings.WEB_PROCESSES
    return [
        Part(
            f"web server (processes: {processes}, threads of each: {threads})",
            site_command(bind, processes=processes, threads=threads),
        ),
        *(_worker(queues) for queues in shared_queues(settings.WORKER_PROCESSES)),
    ]


def shared_queues(n_workers: int) -> list[list[str]]:
    """The queues of each worker: each queue has a worker, and workers beyond that have all."""
    return [list(QUEUES[position::n_workers] or QUEUES) for position in range(n_workers)]


def _worker(queues: list[str]) -> Part:
    options = [option for queue in queues for option in ("--queue", queue)]
    return Part(f"worker (queues: {', '.join(queues)})", [*MANAGE, "run_worker", *options])
