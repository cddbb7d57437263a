import sys
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from tqdm import tqdm

T = TypeVar("T")


class Progress(Protocol):
    def __call__(self, things: Iterable[T], total: int) -> Iterable[T]: ...


# Gives the progress to report for the work of that name.
Reporter = Callable[[str], Progress]


def silently(things: Iterable[T], total: int) -> Iterable[T]:
    return things


def bar(what: str) -> Progress:
    """A bar on standard error, with rate and time left; nothing where that is not a terminal."""

    def progress(things: Iterable[T], total: int) -> Iterable[T]:
        return tqdm(things, total=total, desc=what, file=sys.stderr, disable=None)

    return progress


def without_bars(what: str) -> Progress:
    return silently
