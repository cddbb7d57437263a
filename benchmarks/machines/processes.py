"""The processes of the site, which can be killed or hung, and a balancer in front of them."""

import asyncio
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.commands import CHECKOUT, free_port, is_listening
from work.site import site_command

START_SECONDS = 120.0
# As a process manager starts again what was killed (deploy/systemd).
RESTART_SECONDS = 2.0
END_SECONDS = 20.0
THREADS = 8


@dataclass
class Process:
    name: str
    command: Sequence[str]
    log: Path
    port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    end_signal: signal.Signals = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process is None or self.process.poll() is not None:
                with self.log.open("ab") as log:
                    self.process = subprocess.Popen(
                        self.command,
                        cwd=CHECKOUT if self.user is None else "/",
                        env=os.environ | self.environment,
                        stdout=log,
                        stderr=log,
                        user=self.user,
                        start_new_session=True,
                    )
            if not self.port or is_listening(self.port):
                return
            time.sleep(0.2)
        raise TimeoutError(f"{self.name} did not start: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """To it and everything below it. PostgreSQL's back ends have sessions of their own."""
        for pid in self._family():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            return True
        self.process.send_signal(self.end_signal)
        try:
            self.process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def _family(self) -> list[int]:
        if self.process is None:
            return []
        family = [self.process.pid]
        children: dict[int, list[int]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(stat.parent.name))
        for pid in family:
            family += children.get(pid, [])
        return family


@dataclass(frozen=True)
class Machines:
    port: int
    postgres: Process | None
    redis: Process
    balancer: Process
    webs: Sequence[Process]
    workers: Sequence[Process]

    @property
    def site_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def in_turn(self) -> list[Process]:
        """What is killed, one after the other; the second of each kind after all firsts."""
        firsts, seconds = zip(self.webs, self.workers, strict=True)
        return [*firsts, self.redis, *seconds, *([self.postgres] if self.postgres else [])]

    @property
    def stores(self) -> list[Process]:
        return [self.redis, *([self.postgres] if self.postgres else [])]

    @property
    def all(self) -> list[Process]:
        return [self.balancer, *self.webs, *self.workers, *self.stores]


def lay_out(folder: Path, *, with_postgres: bool) -> Machines:
    """The processes, none of them started; a cluster of PostgreSQL is made where it can be."""
    port, backends = free_port(), [free_port(), free_port()]
    redis_port = free_port()
    # It stores nothing on a disk: killed, it has forgotten every message.
    redis = ["redis-server", "--port", str(redis_port), "--bind", "127.0.0.1"]
    redis += ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
    balancer = [sys.executable, "-m", "benchmarks.machines.processes", *map(str, [port, *backends])]
    return Machines(
        port=port,
        postgres=_postgres(folder) if with_postgres else None,
        redis=Process("redis", redis, folder / "redis.log", redis_port),
        balancer=Process("balancer", balancer, folder / "b.log", port),
        webs=[
            Process(
                f"web {n}",
                site_command(f"127.0.0.1:{each}", processes=1, threads=THREADS),
                folder / f"web{n}.log",
                each,
            )
            for n, each in enumerate(backends, start=1)
        ],
        workers=[
            Process(
                f"worker {n}",
                [sys.executable, "manage.py", "run_worker"],
                folder / f"worker{n}.log",
            )
            for n in (1, 2)
        ],
    )


def _postgres(folder: Path) -> Process | None:
    """A cluster of its own, which nobody else uses and which may be killed; None without initdb."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = installed[-1] if installed else shutil.which("initdb")
    if found is None:
        return None
    initdb = Path(found).resolve()
    # PostgreSQL refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else None
    data, port = folder / "postgres", free_port()
    data.mkdir()
    folder.chmod(0o755)
    if user:
        shutil.chown(data, user, pwd.getpwnam(user).pw_gid)
    words = [str(initdb), "--pgdata", str(data), "--username", "postgres", "--auth", "trust"]
    subprocess.run(words, check=True, cwd="/", stdout=subprocess.DEVNULL, user=user)
    server = [str(initdb.parent / "postgres"), "-D", str(data), "-p", str(port), "-k", str(data)]
    # Processes are killed here, and no machine: what was written is there without a disk's wait.
    server += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    process = Process("postgresql", server, folder / "postgresql.log", port, user=user)
    # At SIGTERM it would wait for its clients.
    process.end_signal = signal.SIGINT
    return process


HOST = "127.0.0.1"
CHUNK = 65_536


async def balance(port: int, backends: list[int]) -> None:
    turns = itertools.cycle(range(len(backends)))

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(turns)
        upstream = await _connect(backends[first:] + backends[:first])
        if upstream is None:
            writer.close()
            return
        ways = [_pump(reader, upstream[1]), _pump(upstream[0], writer)]
        tasks = [asyncio.create_task(way) for way in ways]
        # Who hangs up on one side is to be seen to on the other.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in (writer, upstream[1]):
            each.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    server = await asyncio.start_server(carry, HOST, port, backlog=1024)
    await server.serve_forever()


async def _connect(
    ports: Sequence[int],
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    for port in ports:
        with suppress(OSError):
            return await asyncio.open_connection(HOST, port)
    return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()


if __name__ == "__main__":
    asyncio.run(balance(int(sys.argv[1]), [int(each) for each in sys.argv[2:]]))
