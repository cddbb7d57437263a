"""Prediction-powered correlations of human ratings with a column that is known of all items."""

from dataclasses import dataclass, replace
from math import atanh, nan, tanh
from typing import Literal, get_args

import numpy as np

from error_codes import InvalidValue
from stats.arguments import Column, Floats, complete_numbers, require_one_of, require_same_length
from stats.correlation.item_limits import INFLUENCES
from stats.inference.powered_means import (
    Estimate,
    PredictionPowered,
    Withheld,
    check_sampling,
    result_of,
)
from stats.inference.powered_moments import Rules, checked_columns, moments_of
from stats.libraries import scipy

PoweredCoefficient = Literal["pearson", "spearman", "kendall"]
LEAST_FOR_A_CORRELATION = 10
NEARLY_ONE = 1 - 1e-9
# Where Fisher's scale ends for a correlation without one item.
FARTHEST = 1 - 1e-6


def prediction_powered_correlation(
    human: Column,
    judge: Column,
    other: Column,
    *,
    coefficient: PoweredCoefficient = "pearson",
    clusters: Column | None = None,
    power: float | None = None,
    small_sample: bool = True,
    confidence: float = 0.95,
) -> PredictionPowered:
    """The correlation of human ratings with another column, of all items, from a part rated.

    Parameters
    ----------
    human : array-like of float, shape (n_items,)
        The human rating of each item, NaN for an item without one. Which items have one must be
        random.
    judge : array-like of float, shape (n_items,)
        A judge's score of each item, in any unit: what stands in for people.
    other : array-like of float, shape (n_items,)
        What people are correlated with, a metric or a length; not the judge itself.
    coefficient : {"pearson", "spearman", "kendall"}
        r, rho or tau-b.
    clusters : array-like, shape (n_items,), optional
        The cluster of each item, where items are not independent.
    power : float, optional
        Lambda between 0 and 1; without it, tuned to the least variance.
    small_sample : bool
        Student's t and a variance that pays for the tuning; otherwise normal.
    confidence : float
        Confidence level of the intervals, by Student's t on Fisher's scale.

    Returns
    -------
    PredictionPowered
        `se` is that of Fisher's z. Without an interval, and with `reason`, where fewer than 10
        items (or clusters) are rated or the correlation is perfect. Without any value where the
        judge's scores, or `other`, of rated items and of the others do not overlap; with a note
        where they differ.

    Raises
    ------
    ValueError
        If the columns differ in length, `judge`, `other` or a cluster is missing, `other` is
        the judge, or `coefficient`, `power` or `confidence` is unknown or out of range.

    Notes
    -----
    ``z = z(human, other) + lambda (z(judge, other; unlabelled) - z(judge, other; labelled))``:
    the judge's correlation on the same items says how far the people's may be off by the draw.
    Each is the mean of its items' pseudo-values (itself and what the item moves it by), and so
    lambda and the variance are those of a prediction-powered mean of pseudo-values.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023). PPI++: Efficient prediction-powered
    inference. arXiv:2311.01453.
    Y.-H. Chen and H. Chen (2000). A unified approach to regression analysis under double-sampling
    designs. JRSS B 62(3), 449-460 (an estimate corrected by a surrogate's on both parts).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> length = rng.normal(size=400)
    >>> truth = 0.5 * length + rng.normal(size=400)
    >>> human = np.where(np.arange(400) < 50, truth, np.nan)
    >>> judge = truth + 0.3 * rng.normal(size=400)
    >>> found = prediction_powered_correlation(human, judge, length)
    >>> found.ci_low < 0.447 < found.ci_high, found.effective_n > 80
    (True, True)
    """
    require_one_of(coefficient=(coefficient, get_args(PoweredCoefficient)))
    rules = Rules(power, small_sample, confidence)
    y, f, cluster = checked_columns(human, judge, clusters, rules)
    require_same_length(human=human, other=other)
    x = complete_numbers(other, "other")
    if np.array_equal(x, f):
        raise InvalidValue(
            "other must not be the judge, whose scores cannot correct themselves",
            code="other_is_judge",
        )
    labelled = ~np.isnan(y)
    own = _pseudo_values(y[labelled], x[labelled], coefficient, rules)
    values = np.full(len(y), np.nan)
    values[labelled] = own.values
    stand_in = np.zeros(len(y))
    parts = [
        (part, _pseudo_values(f[part], x[part], coefficient, rules))
        for part in (labelled, ~labelled)
    ]
    if not any(one.undefined for _, one in parts):
        for part, one in parts:
            stand_in[part] = one.values
    if own.undefined:
        values[labelled] = 0.0
    moments = moments_of(values, stand_in, cluster, rules)
    few = Withheld.TOO_FEW_LABELS if moments.count < LEAST_FOR_A_CORRELATION else None
    result = result_of(moments, y, f, rules, few)
    if own.undefined:
        nothing = Estimate(value=own.value, ci_low=nan, ci_high=nan, se=nan)
        reason = result.reason if few else own.undefined
        result = replace(result, **vars(nothing), people_only=nothing, reason=reason)
    else:
        people = _from_fishers_scale(result.people_only)
        result = replace(result, **vars(_from_fishers_scale(result)), people_only=people)
    columns = {"the judge's score": f, "the other column": x}
    return check_sampling(result, labelled, columns, cluster=cluster)


@dataclass(frozen=True)
class _PseudoValues:
    """A correlation on Fisher's scale, as the mean of what each item makes of it."""

    value: float
    values: Floats
    undefined: Withheld | None


def _pseudo_values(
    one: Floats, other: Floats, coefficient: PoweredCoefficient, rules: Rules
) -> _PseudoValues:
    if len(one) < 2:
        return _PseudoValues(nan, np.full(len(one), np.nan), Withheld.NO_VARIATION)
    influences = INFLUENCES[coefficient](one, other)
    if np.isnan(influences.value):
        return _PseudoValues(nan, influences.of_cell, Withheld.NO_VARIATION)
    if abs(influences.value) >= NEARLY_ONE:
        return _PseudoValues(influences.value, influences.of_cell, Withheld.PERFECT)
    n = len(one)
    moved = n * influences.of_cell / (1 - influences.value**2)
    if rules.small_sample and coefficient == "kendall":
        moved *= n / (n - 1)  # what an item moves is larger without its own pull
    elif rules.small_sample:
        moved = _jackknifed(one, other, influences.value, coefficient)
    return _PseudoValues(influences.value, atanh(influences.value) + moved, None)


def _jackknifed(one: Floats, other: Floats, r: float, coefficient: PoweredCoefficient) -> Floats:
    """How far Fisher's z falls without each item, times n - 1, less their mean.

    The items' own influences make an interval too narrow: with 20 items, r of .5 and normal
    values it held the truth in 91 % of samples, this one in 94 %.
    """
    n = len(one)
    sides = (
        [scipy.stats.rankdata(side) for side in (one, other)] if coefficient == "spearman" else None
    )
    a, b = ((side - side.mean()) / side.std() for side in sides or (one, other))
    spread = np.sqrt((1 - a**2 / (n - 1)) * (1 - b**2 / (n - 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.nan_to_num((r - a * b / (n - 1)) / spread)
    z = np.arctanh(np.clip(without, -FARTHEST, FARTHEST))
    return np.asarray((n - 1) * (z.mean() - z), dtype=np.float64)


def _from_fishers_scale(one: Estimate) -> Estimate:
    value, low, high = (tanh(side) for side in (one.value, one.ci_low, one.ci_high))
    return Estimate(value=value, ci_low=low, ci_high=high, se=one.se)
