"""The site under test: `serve` and all that it started, as processes to be killed."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from benchmarks.commands import CHECKOUT, is_listening, wait_for
from tests.hits import cutting_proxy as cuts
from tests.hits.cutting_proxy import CuttingProxy, read_message

START_SECONDS = 120.0
END_SECONDS = 30.0
# Those that do most of the work are killed more often.
ROLES = ("web server", "web worker", "web worker", *["worker"] * 3)


class Site:
    """A running `serve`; every process it ever started is in one of its sessions."""

    def __init__(self, *, port: int, log: Path, environment: Mapping[str, str]) -> None:
        self.port, self.log, self.environment = port, log, environment
        self.sessions: set[int] = set()
        self.supervisor: subprocess.Popen[bytes]

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.supervisor = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--bind", f"127.0.0.1:{self.port}"],
                cwd=CHECKOUT,
                env=os.environ | self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.sessions.add(self.supervisor.pid)

    def wait_until_it_answers(self) -> None:
        failure = "The site does not answer."
        wait_for(lambda: is_listening(self.port), seconds=START_SECONDS, failure=failure)

    def kill_one(self, rng: random.Random) -> str:
        role = rng.choice(ROLES)
        failure = f"There is no {role}."
        pids = wait_for(
            lambda: self.processes().get(role, []), seconds=START_SECONDS, failure=failure
        )
        os.kill(rng.choice(sorted(pids)), signal.SIGKILL)
        return role

    def processes(self) -> dict[str, list[int]]:
        roles: dict[str, list[int]] = {}
        for pid, parent, command in _processes(self.sessions):
            if "gunicorn" in command:
                role = "web server" if parent == self.supervisor.pid else "web worker"
            elif "run_worker" in command:
                role = "worker"
            else:
                continue
            roles.setdefault(role, []).append(pid)
        return roles

    def end(self) -> int:
        """Kill the supervisor, and count the processes that outlive it."""
        self.supervisor.kill()
        self.supervisor.wait()
        end = time.monotonic() + END_SECONDS
        while (left := list(_processes(self.sessions))) and time.monotonic() < end:
            time.sleep(0.2)
        for pid, _, _ in left:
            os.kill(pid, signal.SIGKILL)
        return len(left)


def _processes(sessions: set[int]) -> list[tuple[int, int, str]]:
    rows = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            if int(session) in sessions and state != "Z":
                rows.append((int(folder.name), int(parent), command.strip()))
    return rows


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
    return (
        b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        % (status, kind, len(body))
        + body
    )


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
