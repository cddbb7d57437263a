"""Sums of dollars as a person types them: in forms and on the command line, read in one way."""

import re
from decimal import Decimal

from django.utils.translation import gettext as _

from marketplace.exceptions import InvalidAmount

# More is a slip of the finger. Twelve digits before the point would still fit the ledger.
LARGEST_AMOUNT_USD = Decimal("1000000.00")
# No sign, exponent, separator of thousands, or digits of other scripts.
PLAIN_AMOUNT = re.compile(r"\$?([0-9]{1,12}(?:\.[0-9]{1,2})?)")


def parse_amount(text: str) -> Decimal:
    """The dollars and cents that a text such as 1000, $1000 or 49.50 says."""
    match = PLAIN_AMOUNT.fullmatch(text.strip())
    if match is None:
        raise InvalidAmount(
            _(
                "%(text)s is not an amount of dollars, such as 1000 or 49.50. Digits, and at most "
                "two after a point, are all that may be in it."
            )
            % {"text": repr(text)}
        )
    amount_usd = Decimal(match[1])
    if amount_usd > LARGEST_AMOUNT_USD:
        refusal = _("$%(amount)s is more than $%(largest)s at once.")
        raise InvalidAmount(
            refusal % {"amount": f"{amount_usd:,}", "largest": f"{LARGEST_AMOUNT_USD:,}"},
            code="too_large",
        )
    return amount_usd
