"""Amounts on the command line."""

from argparse import ArgumentTypeError
from decimal import Decimal, InvalidOperation

from hits.costs import CENT


def dollars(text: str) -> Decimal:
    """An amount of money in whole cents, above nothing."""
    try:
        amount = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        raise ArgumentTypeError(f"'{text}' is not an amount of dollars, such as 0.50") from None
    if not amount.is_finite() or amount <= 0 or amount != amount.quantize(CENT):
        raise ArgumentTypeError(f"'{text}' is not an amount from 0.01 on, in whole cents")
    return amount
