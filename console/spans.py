"""A value with its interval on a scale, as percentages of the width that it is drawn in."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from console.templatetags.numbers import minus, percent

# Half of the width of a tick's label, which stands centred below its line.
MARGIN = 6.0
MOST_STEPS = 6
QUARTERS = 4


@dataclass(frozen=True)
class Axis:
    """A scale from `low` to `high`, drawn once for all rows of a table, and on a telephone below
    each of them."""

    low: float
    high: float
    step: float = 0.0
    is_share: bool = False

    def x(self, value: float) -> str:
        """Where a value lies; one beyond the scale at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{MARGIN + (100 - 2 * MARGIN) * share:.2f}%"

    @property
    def steps(self) -> int:
        """By the step that is named; else whole numbers where those are few, and quarters."""
        width = self.high - self.low
        if self.step:
            return round(width / self.step)
        return int(width) if width.is_integer() and 1 < width <= MOST_STEPS else QUARTERS

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Values at even distances, with where they lie."""
        values = [
            self.low + (self.high - self.low) * at / self.steps for at in range(self.steps + 1)
        ]
        return [(value, self.x(value)) for value in values]

    @property
    def labels(self) -> list[str]:
        """What stands at the ticks."""
        values = [value for value, _x in self.ticks]
        return [percent(one) if self.is_share else minus(f"{one:g}") for one in values]

    def span(self, value: float | None, low: float | None, high: float | None) -> Span | None:
        """The value and its interval on the scale; None where there is no value."""
        if value is None or not isfinite(value):
            return None
        limits = (low, high) if low is not None and high is not None else (value, value)
        return Span(self.x(value), self.x(limits[0]), self.x(limits[1]))


@dataclass(frozen=True)
class Span:
    """Where a value and the ends of its interval lie."""

    value: str
    low: str
    high: str

    @property
    def width(self) -> str:
        return f"{float(self.high[:-1]) - float(self.low[:-1]):.2f}%"


STEP = 0.25
LOWEST = (0.0, -0.25, -0.5, -0.75, -1.0)


def correlation_axis(values: list[float]) -> Axis:
    """From zero to one, or from the quarter below zero that holds the lowest of the values."""
    lowest = min(values, default=0.0)
    return Axis(next((low for low in LOWEST if low <= lowest), LOWEST[-1]), 1.0, STEP)
