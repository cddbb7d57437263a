"""Intervals of means on a scale that ends, and of differences of coefficients, which end too.

A t interval knows no scale, and of few ratings, or many at one end, it may reach beyond it. The
mean lies on the scale, so that the interval without what is beyond holds it exactly as often:
coverage is that of the interval as it is computed, which records keep. The same holds of the
difference of two coefficients, of few items.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext, gettext_noop

from presentation.documents import Number
from validation.results import Results

Limits = tuple[float | None, float | None]
CUT = gettext_noop(
    "An interval that would reach beyond the scale ends with it, since no mean lies beyond."
)
CUT_DIFFERENCES = gettext_noop(
    "An interval that would reach beyond %(least)s or %(most)s ends there, since no two values of "
    "this coefficient lie further apart."
)
# Shares of pairs, from 0 to 1; other coefficients are from -1 to 1.
SHARES_OF_PAIRS = ("acc_eq", "acc_star", "spa")


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


def widest_difference(coefficient: str) -> float:
    """How far two values of a coefficient can lie apart."""
    return 1.0 if coefficient in SHARES_OF_PAIRS else 2.0


def difference_within(delta: float | None, limits: Limits, coefficient: str) -> Limits:
    """The limits of a difference of two coefficients as far as it can be."""
    most = widest_difference(coefficient)
    return on_scale(delta, limits, (-most, most))


def note_of_cut_differences(
    coefficient: str, differences: Iterable[tuple[float | None, Limits]]
) -> str:
    """What a table of differences of a coefficient says below where it cut an interval."""
    if all(
        difference_within(delta, limits, coefficient) == limits for delta, limits in differences
    ):
        return ""
    most = f"{widest_difference(coefficient):g}"
    return gettext(CUT_DIFFERENCES) % {"least": f"\N{MINUS SIGN}{most}", "most": most}
