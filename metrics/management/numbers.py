"""Numbers on a command line, refused where they are out of range."""

import argparse


def natural(text: str) -> int:
    """A whole number from 0 up."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 up")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 up."""
    number = natural(text)
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
