"""How near a judge's probabilities are to what happens."""

from dataclasses import dataclass

import numpy as np

from error_codes import InvalidValue
from stats.arguments import Column, Floats, complete_numbers, require_same_length


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How near a judge's probabilities are to what happens.

    Attributes
    ----------
    error : float
        Mean distance of probability and share in bins of the same size (ECE), weighted.
    error_by_width : float
        The same in ten bins of the same width.
    error_if_calibrated, error_p : float
        What a judge with these probabilities would show if it were calibrated, in the mean of
        simulations, since the error is never 0 in a sample; and the share of simulations with
        no less than `error`.
    brier : float
        Mean squared distance of probability and outcome.
    n, n_bins : int
        Items and bins.
    """

    error: float
    error_by_width: float
    error_if_calibrated: float
    error_p: float
    brier: float
    n: int
    n_bins: int


def calibration(
    probability: Column,
    outcome: Column,
    *,
    bins: int | None = None,
    n_simulations: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Calibration:
    """Whether what a judge calls 80 % sure is right in 80 % of cases.

    Parameters
    ----------
    probability : array-like of float, shape (n_items,)
        The judge's probability of the outcome, 0 to 1.
    outcome : array-like of bool or 0 and 1, shape (n_items,)
        Whether it was so.
    bins : int, optional
        Bins of the same size; 10, or 5 below 100 items.
    n_simulations : int
        Of a calibrated judge with the same probabilities.
    rng : int or Generator
        Seed or generator of the simulations.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        If the columns differ in length, are empty, or hold anything else.

    References
    ----------
    M. P. Naeini, G. F. Cooper and M. Hauskrecht (2015). Obtaining well calibrated probabilities
    using Bayesian binning. AAAI 2015.
    G. W. Brier (1950). Verification of forecasts expressed in terms of probability. Monthly
    Weather Review 78(1), 1-3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probability = rng.random(400)
    >>> found = calibration(probability, rng.random(400) < probability)
    >>> found.error_p > 0.05
    True
    """
    n = require_same_length(probability=probability, outcome=outcome)
    p = complete_numbers(probability, "probability")
    y = complete_numbers(outcome, "outcome")
    if not n or ((p < 0) | (p > 1)).any() or not np.isin(y, (0, 1)).all():
        raise InvalidValue(
            "probability must lie between 0 and 1, and outcome be 0 or 1",
            code="probability_out_of_range",
        )
    count = bins or (10 if n >= 100 else 5)
    order = np.argsort(p, kind="stable")
    p, y = p[order], y[order]
    error = float(_mass_error(p, y[None], count)[0])
    generator = np.random.default_rng(rng)
    simulated = _mass_error(p, (generator.random((n_simulations, n)) < p).astype(float), count)
    return Calibration(
        error=error,
        error_by_width=_width_error(p, y),
        error_if_calibrated=float(simulated.mean()),
        error_p=float((1 + (simulated >= error).sum()) / (1 + n_simulations)),
        brier=float(np.square(p - y).mean()),
        n=n,
        n_bins=count,
    )


def _mass_error(p: Floats, outcomes: Floats, bins: int) -> Floats:
    """By bins of the same size, for each row of outcomes of items by ascending probability."""
    total = np.zeros(len(outcomes))
    for part in np.array_split(np.arange(len(p)), bins):
        if len(part):
            total += np.abs(outcomes[:, part].mean(axis=1) - p[part].mean()) * len(part)
    return np.asarray(total / len(p))


def _width_error(p: Floats, y: Floats, bins: int = 10) -> float:
    code = np.minimum((p * bins + 1e-9).astype(np.intp), bins - 1)
    sums = (np.bincount(code, column, bins) for column in (p, y))
    first, second = sums
    return float(np.abs(first - second).sum() / len(p))
