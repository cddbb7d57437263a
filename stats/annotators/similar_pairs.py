from __future__ import annotations

from stats.aggregation.result import code_ratings, code_votes
from stats.arguments import (
    Column,
    Floats,
    Integers,
    pairs_within,
    require,
    require_at_least,
    sum_by,
)
from stats.libraries import np, pd, scipy


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
    require_at_least(1, min_overlap=min_overlap)
    for name, share in (("min_equal", min_equal), ("alpha", alpha)):
        require(
            0 <= share <= 1,
            f"{name} must lie between 0 and 1, not {share}",
            code=f"{name}_out_of_range",
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


def colluding_pairs(
    units: Column,
    annotators: Column,
    values: Column,
    *,
    tolerance: float = 0.03,
    min_overlap: int = 8,
    min_others: int = 2,
    min_near: float = 0.8,
    alpha: float = 0.002,
) -> pd.DataFrame:
    """Pairs of annotators whose ratings are near each other more often than their units explain.

    Parameters
    ----------
    units, annotators : array-like, shape (n_ratings,)
        One row a rating; a unit is a candidate under one question.
    values : array-like of float, shape (n_ratings,)
        From 0 to 1: the share of its scale.
    tolerance : float
        How far apart near ratings are at most, as a share of the scale.
    min_overlap : int
        Least number of shared units.
    min_others : int
        Least number of other annotators that each of a pair shares so many units with: without
        them nobody knows how near people are on these units.
    min_near : float
        Least share of near ratings, between 0 and 1.
    alpha : float
        Largest `p_value` listed, between 0 and 1.

    Returns
    -------
    DataFrame
        A row a suspicious pair, the most suspicious first: ``annotator_a, annotator_b, n_shared,
        n_near, share_near, expected_share, p_value``.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, an annotator rates a unit twice, or
        an option is out of range.

    Notes
    -----
    As `stats.annotators.similar_pairs`, which counts equal answers: exact equality misses copies
    that were moved by a point. The chance of near ratings of a unit is that among its other pairs
    (with one pair's worth of the mean over all units), and the binomial tail at the mean of these
    bounds that of unequal chances (Hoeffding, 1956); ``p_value`` is it times the number of pairs.

    Where annotators fall into groups, as experts and beginners do, all of a group are near each
    other. So ``expected_share`` is no less than the upper decile of what either annotator shares
    with the rest: a pair must be nearer than its members are to their other neighbours. With two
    categories few copies stand out so, which is as it should be.

    References
    ----------
    W. Hoeffding (1956). On the distribution of the number of successes in independent trials.
    Annals of Mathematical Statistics 27(3), 713-721.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ratings = rng.random((20, 5))
    >>> ratings[:, 4] = np.clip(ratings[:, 0] + 0.01, 0, 1)
    >>> unit, annotator = np.indices(ratings.shape)
    >>> pairs = colluding_pairs(unit.ravel(), annotator.ravel(), ratings.ravel())
    >>> pairs[["annotator_a", "annotator_b", "n_near"]]
       annotator_a  annotator_b  n_near
    0            0            4      20
    """
    require(
        min_overlap >= 1 and tolerance >= 0,
        f"min_overlap must be at least 1 and tolerance at least 0, not {min_overlap} and "
        f"{tolerance}",
        code="min_overlap_out_of_range",
    )
    for name, share in (("min_near", min_near), ("alpha", alpha)):
        require(
            0 <= share <= 1,
            f"{name} must lie between 0 and 1, not {share}",
            code=f"{name}_out_of_range",
        )
    ratings = code_ratings(units, annotators, values, "refuse")
    n_units, n_people = len(ratings.items), max(len(ratings.annotators), 1)
    left, right = pairs_within(ratings.item, n_units)
    apart = np.abs(ratings.value[left] - ratings.value[right])
    near = (apart <= tolerance + 1e-12).astype(np.float64)
    unit = ratings.item[left]
    n_near, n_pairs = (sum_by(unit, amount, n_units) for amount in (near, np.ones(len(unit))))
    usual = near.mean() if len(near) else 0.0
    chance = (n_near[unit] - near + usual) / n_pairs[unit]
    low, high = np.sort([ratings.annotator[left], ratings.annotator[right]], axis=0)
    key, pair = np.unique(low * n_people + high, return_inverse=True)
    n_shared = np.bincount(pair, minlength=len(key))
    names = pd.Series(ratings.annotators, dtype=object).to_numpy()
    table = pd.DataFrame(
        {
            "annotator_a": names[key // n_people] if len(key) else [],
            "annotator_b": names[key % n_people] if len(key) else [],
            "n_shared": n_shared,
            "n_near": sum_by(pair, near, len(key)).astype(np.intp),
            "expected_share": sum_by(pair, chance, len(key)) / np.maximum(n_shared, 1),
        }
    )
    code_a, code_b = key // n_people, key % n_people
    is_compared = n_shared >= min_overlap
    table, code_a, code_b = table[is_compared], code_a[is_compared], code_b[is_compared]
    table.insert(4, "share_near", table["n_near"] / table["n_shared"])
    has_others = _n_partners(code_a, code_b) > min_others
    usual_here = _usual_shares(code_a, code_b, table["share_near"].to_numpy())
    table["expected_share"] = np.maximum(table["expected_share"], usual_here)
    tail = scipy.stats.binom.sf(table["n_near"] - 1, table["n_shared"], table["expected_share"])
    table["p_value"] = np.minimum(tail * len(table), 1.0)
    is_near = has_others & (table["share_near"] >= min_near)
    return table[is_near & (table["p_value"] <= alpha)].sort_values(
        ["p_value", "annotator_a", "annotator_b"], ignore_index=True, kind="stable"
    )


def _n_partners(code_a: Integers, code_b: Integers) -> Integers:
    n = np.bincount(np.concatenate([code_a, code_b]))
    return np.minimum(n[code_a], n[code_b])


def _usual_shares(code_a: Integers, code_b: Integers, shares: Floats) -> Floats:
    """For each pair the upper decile of the near shares of its members with others, the greater
    of the two; 0 where neither has another neighbour."""
    n = len(shares)
    person = np.concatenate([code_a, code_b])
    share = np.concatenate([shares, shares])
    order = np.lexsort((-share, person))
    starts = np.searchsorted(person[order], person, side="left")
    n_partners = np.bincount(person)[person] if n else np.zeros(0, dtype=np.intp)
    rank = np.empty(2 * n, dtype=np.intp)
    rank[order] = np.arange(2 * n)
    rank -= starts
    # The decile of the others: one further down where this partner is among those above it.
    index = np.floor(0.1 * np.maximum(n_partners - 2, 0)).astype(np.intp)
    index += rank <= index
    has_others = n_partners > 1
    ranked = share[order]
    at = np.minimum(starts + index, max(2 * n - 1, 0))
    usual = np.where(has_others, ranked[at] if n else 0.0, 0.0)
    return np.asarray(np.maximum(usual[:n], usual[n:]))
