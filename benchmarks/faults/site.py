"""The site under test: `serve` and all that it started, as processes to be killed."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
START_SECONDS = 120.0
END_SECONDS = 30.0
# The workers that are busy for longest come twice.
ROLES = (
    "supervisor",
    "web server",
    "web worker",
    "worker of interactive",
    "worker of scoring",
    "worker of scoring",
    "worker of marketplace",
    "worker of marketplace",
)


class Site:
    """A running `serve`; every process it ever started is in one of its sessions."""

    def __init__(
        self,
        *,
        port: int,
        log: Path,
        command: str = "serve_faults",
        roles: Sequence[str] = ROLES,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port
        self.log = log
        self.command, self.roles, self.environment = command, roles, environment or {}
        self.sessions: set[int] = set()
        self.supervisor: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start `serve`, as systemd would after it was killed: until the port is free again."""
        end = time.monotonic() + START_SECONDS
        while not _is_free(self.port):
            if time.monotonic() > end:
                raise TimeoutError(f"Port {self.port} is still in use.")
            time.sleep(0.2)
        with self.log.open("ab") as log:
            self.supervisor = subprocess.Popen(
                [sys.executable, "manage.py", self.command, "--bind", f"127.0.0.1:{self.port}"],
                cwd=PROJECT,
                env=os.environ | self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.sessions.add(self.supervisor.pid)

    def wait_until_it_answers(self) -> None:
        end = time.monotonic() + START_SECONDS
        while _is_free(self.port):
            if time.monotonic() > end:
                raise TimeoutError("The site does not answer.")
            time.sleep(0.2)

    def kill_one(self, rng: random.Random) -> str:
        """Kill a part, or the supervisor, which is then started again; what it was."""
        role = rng.choice(self.roles)
        end = time.monotonic() + START_SECONDS
        while not (processes := self.processes().get(role)):
            if time.monotonic() > end:
                raise TimeoutError(f"There is no {role}.")
            time.sleep(0.1)
        os.kill(rng.choice(sorted(processes)), signal.SIGKILL)
        if role == "supervisor":
            self._reap()
            self.start()
        return role

    def processes(self) -> dict[str, list[int]]:
        roles: dict[str, list[int]] = {}
        for pid, parent, command in _processes(self.sessions):
            if "gunicorn" in command:
                role = "web server" if parent == self._pid() else "web worker"
            elif "run_worker" in command:
                role = "worker of " + command.split()[-1]
            elif pid == self._pid():
                role = "supervisor"
            else:
                continue
            roles.setdefault(role, []).append(pid)
        return roles

    def end(self) -> int:
        """Kill the supervisor, and count the processes that outlive it."""
        if self.supervisor:
            self.supervisor.kill()
            self._reap()
        end = time.monotonic() + END_SECONDS
        while (left := list(_processes(self.sessions))) and time.monotonic() < end:
            time.sleep(0.2)
        for pid, _, _ in left:
            os.kill(pid, signal.SIGKILL)
        return len(left)

    def _pid(self) -> int:
        return self.supervisor.pid if self.supervisor else 0

    def _reap(self) -> None:
        if self.supervisor:
            self.supervisor.wait()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _processes(sessions: set[int]) -> list[tuple[int, int, str]]:
    """Key, parent and command line of the living processes of these sessions."""
    rows = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            continue
        if int(session) in sessions and state != "Z":
            rows.append((int(folder.name), int(parent), command.strip()))
    return rows
