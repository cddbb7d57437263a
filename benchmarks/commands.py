"""Shared by the benchmarks: options, lines printed at once, the source measured, free ports."""

import argparse
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, TypeVar

CHECKOUT = Path(__file__).resolve().parent.parent
DATABASE = {"database_url": (str, "a PostgreSQL database to make; else an SQLite file")}
POSTGRES = {"postgres": ("postgres://postgres@127.0.0.1:5432", "a server")}
T = TypeVar("T")
SERVER = {"processes": (2, "of the server"), "threads": (8, "of each process of the server")}


def parse_options(text: str | None, **options: tuple[Any, str]) -> argparse.Namespace:
    """Parse options given as (default, help); the first line of the text describes the program.

    A type instead of a default means None by default. False makes a flag, a tuple lists the
    choices with the default first, and a list sets the number of values.
    """
    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    for name, (default, meaning) in options.items():
        rules: dict[str, Any] = {"default": default, "type": type(default)}
        if default is False:
            rules = {"action": "store_true"}
        elif isinstance(default, type):
            rules = {"type": default}
        elif isinstance(default, tuple):
            rules = {"default": default[0], "choices": default}
        elif isinstance(default, list):
            rules = {"default": default, "type": type(default[0]), "nargs": len(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", help=meaning, **rules)
    return parser.parse_args()


def say(line: object = "") -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def say_row(*cells: object) -> None:
    say(f"| {' | '.join(map(str, cells))} |")


def say_head(*titles: object) -> None:
    say_row(*titles)
    say(f"|{'---|' * len(titles)}")


def run_git(*words: str, root: Path = CHECKOUT) -> str:
    """Output of git, or "" if it fails."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def source(root: Path = CHECKOUT) -> str:
    """The commit of the source, marked if files were changed since."""
    return run_git("describe", "--always", "--dirty", "--exclude=*", root=root) or "unknown"


def run_again(module: str, options: argparse.Namespace, **changes: object) -> Any:
    """Run a benchmark in its own process with changed options; return the JSON it prints last."""
    words = [
        word
        for name, value in (vars(options) | changes).items()
        if value is not None
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(find: Callable[[], T], *, seconds: float, failure: str) -> T:
    """Return the first true result; raise TimeoutError if there is none within these seconds."""
    end = monotonic() + seconds
    while not (found := find()):
        if monotonic() > end:
            raise TimeoutError(failure)
        sleep(0.2)
    return found


@contextmanager
def in_background(act: Callable[[Event], object]) -> Iterator[None]:
    """Run a function in a thread; at the end of the block the event tells it to return."""
    ended = Event()
    thread = Thread(target=act, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
