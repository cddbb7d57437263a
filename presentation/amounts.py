"""Amounts of US dollars as a person types them, read in one way: in forms, files and commands."""

from __future__ import annotations

import re
from decimal import Decimal

from django.utils.translation import gettext as _

from error_codes import InvalidValue

# No sign, exponent, separator of thousands, or digits of other scripts, which Decimal takes.
PLAIN_AMOUNT = re.compile(r"\$?([0-9]{1,12}(?:\.[0-9]{1,2})?)")
LARGEST_USD = Decimal("99999999.99")


def read_usd(text: str) -> Decimal:
    """The dollars and cents that a text such as 12, $12 or 0.50 says; ValueError for any other."""
    match = PLAIN_AMOUNT.fullmatch(text.strip())
    if match is None:
        raise InvalidValue(
            _(
                "%(text)s is not an amount of dollars, such as 12 or 0.50. Digits, and at most two "
                "after a point, are all that may be in it."
            )
            % {"text": repr(text[:40])},
            code="not_an_amount",
        )
    amount_usd = Decimal(match[1])
    if amount_usd > LARGEST_USD:
        largest = f"{LARGEST_USD:,}"
        text = _("No amount is larger than $%(largest)s.") % {"largest": largest}
        raise InvalidValue(text, code="too_large")
    return amount_usd
