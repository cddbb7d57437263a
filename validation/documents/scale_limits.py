"""Intervals of means on a scale that ends.

A t interval knows no scale, and of few ratings, or many at one end, it may reach beyond it. The
mean lies on the scale, so that the interval without what is beyond holds it exactly as often:
coverage is that of the interval as it is computed, which records keep.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext, gettext_noop

from validation.documents.documents import Number
from validation.results import Results

Limits = tuple[float | None, float | None]
CUT = gettext_noop(
    "An interval that would reach beyond the scale ends with it, since no mean lies beyond."
)


def on_scale(value: float | None, limits: Limits, scale: tuple[float, float] | None) -> Limits:
    """The limits without what lies beyond the scale, where the value itself lies on it."""
    low, high = limits
    if scale is None or value is None or low is None or high is None:
        return limits
    if not scale[0] <= value <= scale[1]:
        return limits
    return max(low, scale[0]), min(high, scale[1])


def mean_on_scale(
    results: Results, question: str, value: float | None, limits: Limits, decimals: int, reason: str
) -> Number:
    """A mean rating of a question, with its limits as a table shows them."""
    low, high = on_scale(value, limits, results.scales.get(question))
    return Number(value, decimals, low, high, reason=reason)


def note_of_cuts(results: Results, means: Iterable[tuple[str, float | None, Limits]]) -> str:
    """What a table says below where it cut an interval; nothing else."""
    is_cut = any(
        on_scale(value, limits, results.scales.get(question)) != limits
        for question, value, limits in means
    )
    return gettext(CUT) if is_cut else ""
