"""Numbers within sentences and tables: rounded, with a real minus sign, a dash if undefined.

Records of numbers are grouped, and become plain values for JSON and pages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import isnan
from typing import Any, TypeVar

from django.utils.translation import gettext as _, ngettext

from error_codes import InvalidValue
from presentation.libraries import np, pd

DASH = "–"
MINUS = "\N{MINUS SIGN}"


def format_number(value: float | None, digits: int = 3) -> str:
    if value is None or isnan(value):
        return DASH
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", MINUS)


def format_interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{format_number(low)}, {format_number(high)}]"


def format_estimate(value: float | None, low: float | None, high: float | None) -> str:
    return f"{format_number(value)} {format_interval(low, high)}".strip()


def format_percent(share: float | None) -> str:
    return DASH if share is None or isnan(share) else f"{100 * share:.0f} %"


MOST_LISTED = 3


def join_names(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return _("%(names)s and %(last)s") % {"names": ", ".join(names[:-1]), "last": names[-1]}


def shorten_names(names: Sequence[str]) -> str:
    rest = len(names) - MOST_LISTED + 1
    if rest < 2:
        return join_names(list(names))
    others = ngettext("%(n)d other", "%(n)d others", rest) % {"n": rest}
    return join_names([*names[: MOST_LISTED - 1], others])


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
        text = _("No amount is larger than $%(largest)s.") % {"largest": f"{LARGEST_USD:,}"}
        raise InvalidValue(text, code="too_large")
    return amount_usd


def count_of(n: int, singular: str, plural: str = "") -> str:
    """The number with its noun.

    >>> count_of(1, "assignment"), count_of(2500, "study", "studies")
    ('1 assignment', '2,500 studies')
    """
    return f"{n:,} {singular if n == 1 else plural or f'{singular}s'}"


K = TypeVar("K")
T = TypeVar("T")


def group_values(pairs: Iterable[tuple[K, T]]) -> defaultdict[K, list[T]]:
    """The values of each key; keys and values are in the order of the pairs."""
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def plain_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record for JSON: None where a number is undefined."""
    return {name: _plain(value) for name, value in record.items()}


def plain_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.to_dict(orient="records")
    return [plain_values({str(name): value for name, value in row.items()}) for row in rows]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and isnan(value) else value
