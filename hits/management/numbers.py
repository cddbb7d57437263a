"""Amounts on the command line."""

from argparse import ArgumentTypeError
from decimal import Decimal

from presentation.numbers import read_usd


def dollars(text: str) -> Decimal:
    """An amount of money in whole cents, above nothing."""
    try:
        amount = read_usd(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if not amount:
        raise ArgumentTypeError(f"'{text}' is not an amount from 0.01 on")
    return amount
