"""Annotators with more hits than the other annotators explain."""

from __future__ import annotations

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    require_same_length,
    require_shares,
    series,
    sum_by,
)
from stats.libraries import pd, scipy

MOST_PASSES = 5


def excess_hits(
    annotators: Column,
    hits: Column,
    *,
    units: Column | None = None,
    prior_rate: float = 0.02,
    prior_weight: float = 10.0,
    alpha: float = 0.002,
) -> pd.DataFrame:
    """How many hits each annotator has, and the chance of so many by the others' rates.

    Parameters
    ----------
    annotators : array-like, shape (n_rows,)
        One row an opportunity, such as a check that an annotator answered.
    hits : array-like of bool, shape (n_rows,)
        Whether it was hit, such as a check that was failed.
    units : array-like, shape (n_rows,), optional
        What the opportunity was, such as which check; each has a rate of its own. Without it all
        share one rate.
    prior_rate : float
        The rate where nobody else says anything, strictly between 0 and 1.
    prior_weight : float
        How many opportunities the prior, and for a unit the rate over all units, counts as.
    alpha : float
        Annotators with a smaller `p_value` are left out of the rates of the others.

    Returns
    -------
    DataFrame
        A row an annotator, by annotator: ``annotator, n, n_hits, expected`` (hits by the rates of
        the others) and ``p_value``, of that many hits or more.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or an option is out of range.

    Notes
    -----
    A unit's rate is that of the other annotators, drawn towards the rate over all units, which is
    drawn towards the prior. So a check that everybody fails speaks against the check. Rates are
    taken again without annotators below `alpha` until these stay the same, since bad ones would
    otherwise hide each other. ``p_value`` is the binomial tail at the mean of an annotator's
    rates, which bounds that of unequal chances (Hoeffding, 1956) where there are more hits than
    expected, averaged over what the others' opportunities leave open of that mean (a
    beta-binomial tail): five annotators' checks say little of what is usual.

    References
    ----------
    W. Hoeffding (1956). On the distribution of the number of successes in independent trials.
    Annals of Mathematical Statistics 27(3), 713-721.

    Examples
    --------
    >>> names = [name for name in "abcdefgh" for _ in range(10)]
    >>> table = excess_hits(names, [name == "h" for name in names])
    >>> table.loc[table["p_value"] <= 0.002, ["annotator", "n", "n_hits"]]
      annotator   n  n_hits
    7         h  10      10
    """
    require_shares(prior_rate=prior_rate)
    if prior_weight <= 0:
        raise InvalidValue(
            f"prior_weight must be more than 0, not {prior_weight}",
            code="prior_weight_out_of_range",
        )
    require_same_length(annotators=annotators, hits=hits)
    who, names = coded_in_order(annotators, "annotators")
    hit = _booleans(hits)
    what = np.zeros(len(who), dtype=np.intp)
    if units is not None:
        require_same_length(annotators=annotators, units=units)
        what, _ = coded_in_order(units, "units")
    n, n_hits = (sum_by(who, amount, len(names)) for amount in (np.ones(len(who)), hit))
    trusted = np.ones(len(names), dtype=bool)
    expected, p = np.zeros(len(names)), np.ones(len(names))
    for _ in range(MOST_PASSES):
        rates = _rates(who, what, hit, trusted, prior_rate, prior_weight)
        expected = sum_by(who, rates, len(names))
        mean = np.minimum(expected / np.maximum(n, 1), 1.0)
        weight = prior_weight + (trusted[who].sum() - trusted * n)
        tail = scipy.stats.betabinom.sf(n_hits - 1, n, mean * weight, (1 - mean) * weight)
        p = np.where(n_hits > expected, tail, 1.0)
        is_same = np.array_equal(trusted, p > alpha)
        trusted = p > alpha
        if is_same:
            break
    return pd.DataFrame(
        {
            "annotator": pd.Series(names, dtype=object),
            "n": n.astype(np.intp),
            "n_hits": n_hits.astype(np.intp),
            "expected": expected,
            "p_value": p,
        }
    )


def _booleans(hits: Column) -> Floats:
    column = series(hits, "hits")
    if column.isna().any():
        raise InvalidValue(
            f"hits has {int(column.isna().sum())} missing values; leave them out",
            code="hits_missing",
        )
    return column.to_numpy(dtype=bool).astype(np.float64)


def _rates(
    who: Integers, what: Integers, hit: Floats, trusted: np.ndarray, rate: float, weight: float
) -> Floats:
    """For each row the rate of its unit by trusted annotators other than its own."""
    counts = trusted[who].astype(np.float64)
    n_people, n_units = int(who.max(initial=-1)) + 1, int(what.max(initial=-1)) + 1
    own_all = (sum_by(who, amount, n_people)[who] for amount in (counts, counts * hit))
    n_all, hits_all = (
        total.sum() - own for total, own in zip((counts, counts * hit), own_all, strict=True)
    )
    overall = (hits_all + rate * weight) / (n_all + weight)
    cell = what * n_people + who
    distinct, of_cell = np.unique(cell, return_inverse=True)
    n_unit, hits_unit = (
        sum_by(what, amount, n_units)[what] - sum_by(of_cell, amount, len(distinct))[of_cell]
        for amount in (counts, counts * hit)
    )
    return np.asarray((hits_unit + overall * weight) / (n_unit + weight))
