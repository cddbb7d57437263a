"""Whether a qualification's value meets a requirement."""

from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt
from typing import NamedTuple


class Locale(NamedTuple):
    """A country, and perhaps a part of it."""

    country: str
    subdivision: str = ""

    def includes(self, other: "Locale") -> bool:
        """Whether the other locale lies in this one; a country includes its parts."""
        return self.country == other.country and self.subdivision in ("", other.subdivision)

    def __str__(self) -> str:
        return f"{self.country}-{self.subdivision}" if self.subdivision else self.country


ORDERS: dict[str, Callable[[int, int], bool]] = {
    "LessThan": lt,
    "LessThanOrEqualTo": le,
    "GreaterThan": gt,
    "GreaterThanOrEqualTo": ge,
    "EqualTo": eq,
}
NEGATIONS = {"NotEqualTo": "EqualTo", "NotIn": "In"}


def meets_integer(comparator: str, value: int | None, required: Sequence[int]) -> bool:
    """Whether a number, or the lack of one, meets the comparison."""
    if comparator in NEGATIONS:
        return not meets_integer(NEGATIONS[comparator], value, required)
    if value is None:
        return False
    if comparator == "In":
        return value in required
    return ORDERS[comparator](value, required[0])


def meets_locale(comparator: str, value: Locale | None, required: Sequence[Locale]) -> bool:
    """Whether a locale, or the lack of one, meets the comparison."""
    if comparator in NEGATIONS:
        return not meets_locale(NEGATIONS[comparator], value, required)
    return value is not None and any(locale.includes(value) for locale in required)


def meets(
    comparator: str,
    *,
    is_held: bool,
    value: int | Locale | None,
    required: Sequence[int] | Sequence[Locale],
) -> bool:
    """Whether a worker who holds the qualification with this value, or doesn't hold it, meets
    the requirement. Who doesn't hold it meets DoesNotExist alone: nothing can be compared."""
    if comparator == "DoesNotExist":
        return not is_held
    if comparator == "Exists" or not is_held:
        return is_held
    if value is None:
        return False
    locales = [locale for locale in required if isinstance(locale, Locale)]
    if isinstance(value, Locale):
        return meets_locale(comparator, value, locales)
    return meets_integer(comparator, value, [each for each in required if isinstance(each, int)])
