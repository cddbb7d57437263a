"""Options of commands that score: caps on judges, numbers, and warnings."""

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Any, TextIO, TypeVar

from django.core.management.base import CommandParser

from annotation.management.plain_table import natural
from metrics.exceptions import ParameterRefused
from metrics.scorers.errors import ScoringWarning
from metrics.study_judges import Caps


def add_caps(parser: CommandParser) -> None:
    parser.add_argument(
        "--max-requests", type=int, metavar="N", help="the most that judges may send"
    )
    parser.add_argument("--max-usd", metavar="USD", help="the most that judges may cost")


def caps_of(options: Mapping[str, Any]) -> Caps:
    max_usd = options["max_usd"]
    try:
        return Caps(options["max_requests"], None if max_usd is None else Decimal(max_usd))
    except InvalidOperation as error:
        raise ParameterRefused(
            f"--max-usd must be a number, got '{max_usd}'.", code="not_a_number"
        ) from error


MOST_DRAWS = 100_000
Choice = TypeVar("Choice")


def draws(text: str) -> int:
    """A number of random draws, of which as many fit into memory for every metric."""
    number = natural(text)
    if number > MOST_DRAWS:
        raise argparse.ArgumentTypeError(f"'{text}' is more than {MOST_DRAWS:,}")
    return number


def some_draws(text: str) -> int:
    number = draws(text)
    if not number:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


def share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return number


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if not abs(value) < 1e15:
        raise argparse.ArgumentTypeError(f"'{text}' is not a finite number")
    return value


def once(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    return tuple(dict.fromkeys(choices))


@contextmanager
def plain_warnings() -> Iterator[None]:
    """What may mislead about a score is a line on standard error, without Python's trappings."""
    with warnings.catch_warnings():
        otherwise = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, ScoringWarning):
                sys.stderr.write(f"Warning: {message}.\n")
            else:
                otherwise(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield
