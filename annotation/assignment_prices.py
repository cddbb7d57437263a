"""What an assignment of a study costs, for reports that say what to buy next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from annotation.models import Study
from console.registrations import load_registrations


@dataclass(frozen=True)
class AssignmentPrice:
    reward_usd: Decimal
    cost_usd: Callable[[int], Decimal]


_find_prices: list[Callable[[Study], AssignmentPrice | None]] = []


def register_assignment_price(find_price: Callable[[Study], AssignmentPrice | None]) -> None:
    """Let the app that pays for assignments say what one costs."""
    _find_prices.append(find_price)


def assignment_price(study: Study) -> AssignmentPrice | None:
    """None if no app knows a price."""
    load_registrations()
    prices = (find_price(study) for find_price in _find_prices)
    return next((price for price in prices if price is not None), None)
