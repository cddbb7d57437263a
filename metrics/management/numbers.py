"""What a command line gives: numbers, refused where out of range, and choices, each once."""

import argparse
from collections.abc import Iterable
from typing import TypeVar

from annotation.management.plain_table import natural

MOST_DRAWS = 100_000
Choice = TypeVar("Choice")


def draws(text: str) -> int:
    """A number of random draws, of which as many fit into memory for every metric."""
    number = natural(text)
    if number > MOST_DRAWS:
        raise argparse.ArgumentTypeError(f"'{text}' is more than {MOST_DRAWS:,}")
    return number


def some_draws(text: str) -> int:
    """A number of random draws from 1 up."""
    number = draws(text)
    if not number:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


def share(text: str) -> float:
    """A number between 0 and 1, neither of them included."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return number


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if not abs(value) < 1e15:
        raise argparse.ArgumentTypeError(f"'{text}' is not a finite number")
    return value


def once(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """The choices in their order, those named again left out."""
    return tuple(dict.fromkeys(choices))
