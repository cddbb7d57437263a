"""Annotators who depart further from the others after some time than before."""

from __future__ import annotations

import numpy as np

from stats.arguments import Column, coded_in_order, complete_numbers, require_same_length
from stats.libraries import pd, scipy


def late_change(
    annotators: Column, order: Column, departures: Column, *, least_pages: int = 10
) -> pd.DataFrame:
    """For each annotator when departures from the others grew, and the chance of that.

    Parameters
    ----------
    annotators : array-like, shape (n_pages,)
        One row a page.
    order : array-like of float, shape (n_pages,)
        When it was worked on; only the order within an annotator counts.
    departures : array-like of float, shape (n_pages,)
        How far its ratings lie from the others' means.
    least_pages : int
        Annotators with fewer pages have no `p_value`.

    Returns
    -------
    DataFrame
        A row an annotator, by annotator: ``annotator, n, n_before`` (pages before the change),
        ``before, after`` (mean departures) and ``p_value``; NaN with too few pages.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value.

    Notes
    -----
    The cumulative sum of the ranks of the departures, less their mean, is lowest where they change
    from small to great. Over the standard deviation and the root of n it is a Brownian bridge if
    nothing changes, whose least value is below -x with chance exp(-2 x^2).

    References
    ----------
    A. N. Pettitt (1979). A non-parametric approach to the change-point problem. Applied
    Statistics 28(2), 126-135.

    Examples
    --------
    >>> table = late_change(["a"] * 20, range(20), [0.1] * 10 + [0.4] * 10)
    >>> table[["annotator", "n_before", "p_value"]].round(4)
      annotator  n_before  p_value
    0         a        10      0.0
    """
    require_same_length(annotators=annotators, order=order, departures=departures)
    who, names = coded_in_order(annotators, "annotators")
    when = complete_numbers(order, "order")
    departure = complete_numbers(departures, "departures")
    in_turn = np.lexsort((when, who))
    starts = np.searchsorted(who[in_turn], np.arange(len(names) + 1))
    rows = []
    for number, name in enumerate(names):
        own = departure[in_turn[starts[number] : starts[number + 1]]]
        rows.append((name, len(own), *_change(own, least_pages)))
    columns = ["annotator", "n", "n_before", "before", "after", "p_value"]
    return pd.DataFrame(rows, columns=columns)


def _change(own: np.ndarray, least_pages: int) -> tuple[int, float, float, float]:
    ranks = scipy.stats.rankdata(own)
    spread = ranks.std()
    if len(own) < least_pages or not spread:
        return len(own), float(own.mean()), np.nan, np.nan
    sums = np.cumsum(ranks - ranks.mean())[:-1]
    split = int(sums.argmin()) + 1
    depth = max(-sums[split - 1], 0.0) / (spread * np.sqrt(len(own)))
    p = float(np.exp(-2 * depth**2))
    return split, float(own[:split].mean()), float(own[split:].mean()), p
