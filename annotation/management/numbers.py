"""Whole numbers on a command line, refused where they are out of range."""

from argparse import ArgumentTypeError


def natural(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is not a whole number from 0 up")
    return int(text)


def positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise ArgumentTypeError(f"'{text}' is not a whole number from 1 up")
    return int(text)
