"""Pairs of annotators whose answers are too alike to be independent."""

from __future__ import annotations

import numpy as np

from error_codes import InvalidValue
from stats.aggregation.crowd import code_votes
from stats.arguments import Column, pairs_within, sum_by
from stats.libraries import pd, scipy


def near_duplicates(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    min_overlap: int = 10,
    min_equal: float = 0.9,
    alpha: float = 0.01,
) -> pd.DataFrame:
    """Pairs of annotators who gave equal answers more often than their items explain.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label, of any level of measurement: only equality counts.
    min_overlap : int
        Least number of shared items.
    min_equal : float
        Least share of equal answers, between 0 and 1.
    alpha : float
        Largest `p_value` listed, between 0 and 1.

    Returns
    -------
    DataFrame
        A row a suspicious pair, the most suspicious first: ``annotator_a, annotator_b,
        n_shared, n_equal, share_equal, expected_share, p_value``.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, an annotator labels an item
        twice, or an option is out of range.

    Notes
    -----
    The chance of equal answers on an item is estimated from the item's other pairs (plus one
    pair's worth of the mean over all items), so that easy items prove nothing. ``p_value`` is
    the binomial tail at the mean of these chances, which Hoeffding (1956) showed to bound that
    of unequal chances, times the number of pairs compared (Bonferroni). Two very good
    annotators agree more than the crowd does, so a pair is a reason to look, not a verdict.

    References
    ----------
    W. Hoeffding (1956). On the distribution of the number of successes in independent trials.
    Annals of Mathematical Statistics 27(3), 713-721.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> answers = rng.integers(4, size=(30, 5))
    >>> answers[:, 4] = answers[:, 0]
    >>> item, annotator = np.indices(answers.shape)
    >>> pairs = near_duplicates(item.ravel(), annotator.ravel(), answers.ravel())
    >>> pairs[["annotator_a", "annotator_b", "n_equal"]]
       annotator_a  annotator_b  n_equal
    0            0            4       30
    """
    if min_overlap < 1:
        raise InvalidValue(
            f"min_overlap must be at least 1, not {min_overlap}", code="min_overlap_out_of_range"
        )
    for name, share in (("min_equal", min_equal), ("alpha", alpha)):
        if not 0 <= share <= 1:
            raise InvalidValue(
                f"{name} must lie between 0 and 1, not {share}", code=f"{name}_out_of_range"
            )
    votes = code_votes(items, annotators, values, "refuse")
    left, right = pairs_within(votes.item, len(votes.items))
    equal = (votes.value[left] == votes.value[right]) * 1.0
    item = votes.item[left]
    n_equal, n_pairs = (
        sum_by(item, amount, len(votes.items)) for amount in (equal, np.ones(len(item)))
    )
    usual = equal.mean() if len(equal) else 0.0
    chance = (n_equal[item] - equal + usual) / n_pairs[item]
    low, high = np.sort([votes.annotator[left], votes.annotator[right]], axis=0)
    key, pair = np.unique(low * len(votes.annotators) + high, return_inverse=True)
    overlap = np.bincount(pair, minlength=len(key))
    table = pd.DataFrame(
        {
            "annotator_a": pd.Series(votes.annotators)[key // max(len(votes.annotators), 1)].array,
            "annotator_b": pd.Series(votes.annotators)[key % max(len(votes.annotators), 1)].array,
            "n_shared": overlap,
            "n_equal": sum_by(pair, equal, len(key)).astype(np.intp),
            "expected_share": sum_by(pair, chance, len(key)) / np.maximum(overlap, 1),
        }
    )
    table = table[table["n_shared"] >= min_overlap]
    tail = scipy.stats.binom.sf(table["n_equal"] - 1, table["n_shared"], table["expected_share"])
    table.insert(4, "share_equal", table["n_equal"] / table["n_shared"])
    table["p_value"] = np.minimum(tail * len(table), 1.0)
    suspicious = table[(table["share_equal"] >= min_equal) & (table["p_value"] <= alpha)]
    return suspicious.sort_values(
        ["p_value", "annotator_a", "annotator_b"], ignore_index=True, kind="stable"
    )
