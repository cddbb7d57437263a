"""Numbers within sentences and tables: rounded, with a real minus sign, a dash if undefined."""

from __future__ import annotations

from math import isnan

DASH = "–"
MINUS = "\N{MINUS SIGN}"


def format_number(value: float | None, digits: int = 3) -> str:
    """Rounded, without a minus before zero."""
    if value is None or isnan(value):
        return DASH
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", MINUS)


def format_interval(low: float | None, high: float | None) -> str:
    """`[0.123, 0.456]`; empty if there is no interval."""
    return "" if low is None or high is None else f"[{format_number(low)}, {format_number(high)}]"


def format_estimate(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval, within a sentence."""
    return f"{format_number(value)} {format_interval(low, high)}".strip()


def format_percent(share: float | None) -> str:
    """`12 %` of a share."""
    return DASH if share is None or isnan(share) else f"{100 * share:.0f} %"
