"""A value with its interval on a scale, as percentages of the width that it is drawn in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from django.utils.translation import gettext as _

from console.templatetags.numbers import minus, percent
from presentation.numbers import format_interval, format_number
from stats.libraries import pd

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
        values = [
            self.low + (self.high - self.low) * at / self.steps for at in range(self.steps + 1)
        ]
        return [(value, self.x(value)) for value in values]

    @property
    def labels(self) -> list[str]:
        values = [value for value, _x in self.ticks]
        return [percent(one) if self.is_share else minus(f"{one:g}") for one in values]

    def span(self, value: float | None, low: float | None, high: float | None) -> Span | None:
        if value is None or not isfinite(value):
            return None
        limits = (low, high) if low is not None and high is not None else (value, value)
        return Span(self.x(value), self.x(limits[0]), self.x(limits[1]))


@dataclass(frozen=True)
class Span:
    value: str
    low: str
    high: str

    @property
    def width(self) -> str:
        return f"{float(self.high[:-1]) - float(self.low[:-1]):.2f}%"


# Of fewer items no interval is shown; and the number of colors.
LEAST_ITEMS, N_SERIES = 5, 6


@dataclass(frozen=True)
class IntervalRow:
    """A value and its interval, as text and on an axis. Without `span` there are too few items."""

    label: str
    value: str
    interval: str
    span: Span | None
    series: int = 1


def interval_row(
    axis: Axis,
    label: str,
    limits: tuple[float | None, float | None, float | None],
    texts: tuple[str, str],
    *,
    n_items: int,
    series: int = 1,
) -> IntervalRow:
    """`limits` are the value and the ends of its interval, `texts` the value and the interval."""
    if n_items < LEAST_ITEMS:
        return IntervalRow(label, "", "", None, series)
    return IntervalRow(label, *texts, axis.span(*limits), series)


@dataclass(frozen=True)
class IntervalChart:
    title: str
    axis: Axis
    rows: Sequence[IntervalRow]
    band: Span | None = None

    @property
    def state(self) -> str:
        return "shown" if any(row.span for row in self.rows) else "few"


STEP = 0.25
LOWEST = (0.0, -0.25, -0.5, -0.75, -1.0)


def correlation_axis(values: list[float]) -> Axis:
    """From zero to one, or from the quarter below zero that holds the lowest of the values."""
    lowest = min(values, default=0.0)
    return Axis(next((low for low in LOWEST if low <= lowest), LOWEST[-1]), 1.0, STEP)


# Values that may be listened to one by one; of more, the ends are named.
MOST_NAMED = 8


def values_in_words(frame: pd.DataFrame) -> str:
    """Each `name` with its value and interval, or the lowest and the highest of many."""
    rows = frame.to_dict(orient="records")
    text = "{values}."
    if len(rows) > MOST_NAMED:
        rows = sorted(rows, key=lambda row: float(row["value"]))[:: len(rows) - 1]
        text = _("Of {n} values the lowest and the highest: {values}.")
    said = (f"{row['name']} {_with_interval(row)}" for row in rows)
    return text.format(n=f"{len(frame):,}", values="; ".join(said))


def _with_interval(row: Mapping[Hashable, Any]) -> str:
    low, high = (None if pd.isna(row[name]) else row[name] for name in ("ci_low", "ci_high"))
    return f"{format_number(row['value'])} {format_interval(low, high)}".strip()


def range_in_words(values: pd.Series[Any]) -> str:
    """From the lowest to the highest, or the one value that all have; a dash where none has."""
    said = list(dict.fromkeys(format_number(one) for one in sorted(values.dropna())))
    if len(said) < 2:
        return said[0] if said else format_number(None)
    return _("{low} to {high}").format(low=said[0], high=said[-1])


def ranges_in_words(frame: pd.DataFrame) -> str:
    """Over users, the means of each `recommender`."""
    return "; ".join(
        f"{name} {range_in_words(means)}"
        for name, means in frame.groupby("recommender", sort=False)["mean"]
    )
