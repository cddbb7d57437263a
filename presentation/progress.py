import sys
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from tqdm import tqdm

T = TypeVar("T")
LOGGED_EACH_SECONDS = 30


class Progress(Protocol):
    def __call__(self, things: Iterable[T], total: int) -> Iterable[T]: ...


# Gives the progress to report for the work of that name.
Reporter = Callable[[str], Progress]


def silently(things: Iterable[T], total: int) -> Iterable[T]:
    return things


def bar(what: str) -> Progress:
    """A bar on standard error, with rate and time left. If that is not a terminal, such as a log,
    work of more than half a minute prints a line each half minute."""

    def progress(things: Iterable[T], total: int) -> Iterable[T]:
        seconds = 0.1 if sys.stderr.isatty() else LOGGED_EACH_SECONDS
        return tqdm(
            things,
            total=total,
            desc=what,
            file=sys.stderr,
            delay=0 if sys.stderr.isatty() else seconds,
            mininterval=seconds,
            maxinterval=10 * seconds,
        )

    return progress


def without_bars(what: str) -> Progress:
    return silently
