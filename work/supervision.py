"""Keeps the parts of a site running: one that dies is started again, and none outlives it all.

`serve` starts it as `python -m work.supervision`. It imports no Django, so that it stays small.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from work.exceptions import PartFailed

# Ending with the supervisor: a part of the site must not outlive the process that started it.
#
# The supervisor keeps the writing end of a pipe that nobody ever writes to. However it ends, the
# system closes that end, and every part reads the end of the file.

PIPE_VARIABLE = "ASSAY_SUPERVISOR_PIPE"
# Longer than a web request, shorter than whoever starts the site anew will wait.
GRACE_SECONDS = 8
LOOK_SECONDS = 0.5


def end_with_supervisor() -> None:
    # Taken out: what this process starts in turn does not inherit the pipe.
    pipe = os.environ.pop(PIPE_VARIABLE, "")
    if pipe.isdecimal():
        threading.Thread(target=_watch, args=(int(pipe),), name="supervisor", daemon=True).start()


def end_with_parent(*, grace_seconds: float = GRACE_SECONDS) -> None:
    """Kill this process when the one that forked it is gone and the grace has passed.

    For web workers, which end by themselves then, except where a second signal reached one in
    the handler of the first: gunicorn's handler waits for a lock that it holds.
    """
    threading.Thread(
        target=_watch_parent, args=(os.getppid(), grace_seconds), name="parent", daemon=True
    ).start()


def _watch_parent(parent: int, grace_seconds: float) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    time.sleep(grace_seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def _watch(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


PLAN_VARIABLE = "ASSAY_SUPERVISOR_PLAN"
POLL_SECONDS = 0.2
# A part that lived for so long was started well; what ended it then is another matter.
LONG_LIFE_SECONDS = 10.0
MOST_SHORT_LIVES = 6
FIRST_PAUSE_SECONDS = 0.5
STOP_SECONDS = 10.0


@dataclass
class Part:
    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    n_short_lives: int = 0

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    def __init__(
        self, parts: Sequence[Part], *, folder: Path, report: Callable[[str], object]
    ) -> None:
        self.parts = parts
        self.folder = folder
        self.report = report
        # Nobody writes to it: whatever ends this process closes it, and the parts read that.
        self._read_end, self._write_end = os.pipe()

    def watch(self) -> None:
        while True:
            for part in self.parts:
                self.look_after(part)
            time.sleep(POLL_SECONDS)

    def look_after(self, part: Part) -> None:
        if part.is_running:
            return
        now = time.monotonic()
        if part.process is not None:
            self._note_end(part, part.process, now)
        if now >= part.start_at:
            self._start(part)

    def stop(self) -> None:
        running = [part.process for part in self.parts if part.process and part.is_running]
        for process in running:
            process.terminate()
        end = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(timeout=max(end - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, part: Part) -> None:
        part.process = subprocess.Popen(
            part.command,
            cwd=self.folder,
            env=os.environ | {PIPE_VARIABLE: str(self._read_end)},
            pass_fds=[self._read_end],
        )
        part.started_at = time.monotonic()

    def _note_end(self, part: Part, process: subprocess.Popen[bytes], now: float) -> None:
        code = process.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        part.process = None
        if now - part.started_at >= LONG_LIFE_SECONDS:
            part.n_short_lives = 0
        part.n_short_lives += 1
        if part.n_short_lives > MOST_SHORT_LIVES and code >= 0:
            raise PartFailed(
                f"The {part.name} {how}, {part.n_short_lives} times as soon as it was started; "
                "its messages are above."
            )
        # A first death, or one by a signal from outside, needs no long pause.
        pause = FIRST_PAUSE_SECONDS * 2 ** min(part.n_short_lives - 1, 5) if code >= 0 else 0.0
        part.start_at = now + pause
        again = f"in {pause:g} s" if pause else "now"
        self.report(f"The {part.name} {how}; it is started again {again}.")


def main(plan: dict[str, Any]) -> int:
    parts = [Part(name, command) for name, command in plan["parts"]]
    supervisor = Supervisor(parts, folder=Path(plan["folder"]), report=_report)
    _report(f"Starting: {', '.join(part.name for part in parts)}.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_greet, args=(plan["bind"], plan["greeting"]), daemon=True).start()
    try:
        supervisor.watch()
    except KeyboardInterrupt:
        _report("Stopping.")
    except PartFailed as failed:
        _report(str(failed))
        return 1
    finally:
        supervisor.stop()
    return 0


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _greet(bind: str, greeting: str) -> None:
    host, _, port = bind.rpartition(":")
    while True:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            print(greeting, end="", flush=True)  # noqa: T201
            return
        time.sleep(0.2)


if __name__ == "__main__":
    raise SystemExit(main(json.loads(os.environ.pop(PLAN_VARIABLE))))
