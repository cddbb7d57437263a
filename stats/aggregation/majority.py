import numpy as np

from stats.aggregation.result import (
    TIE,
    Aggregation,
    Repeats,
    annotator_table,
    code_votes,
    label_table,
    nothing,
    probability_table,
    repeat_warnings,
    sign,
)
from stats.arguments import Column, Floats, Integers


def majority(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The category that most annotators gave each item, with ties reported.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are categories. A missing label is an absent row.
    repeats : {"refuse", "count"}
        Whether an annotator may label an item more than once; each time is then a vote.

    Returns
    -------
    Aggregation
        ``probability`` is the share of the votes, which is not calibrated; ``tied`` marks the
        items where categories have equally many votes: over these items the winners take
        turns, so that no category is favoured. ``annotators`` has ``agreement``: the share of an
        annotator's labels that equal the label of the item, ties left out (NaN where all are).

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or repeat an (item, annotator)
        pair while `repeats` is ``"refuse"``.

    References
    ----------
    R. Snow, B. O'Connor, D. Jurafsky and A. Y. Ng (2008). Cheap and fast - but is it good?
    EMNLP, 254-263.

    Examples
    --------
    >>> result = majority([1, 1, 1, 2, 2], list("abcab"), list("xxyxy"))
    >>> result.labels[["item", "n_labels", "tied"]]
       item  n_labels  tied
    0     1         3  False
    1     2         2   True
    >>> result.n_ties, result.label_by_item[1]
    (1, 'x')
    """
    votes = code_votes(items, annotators, values, repeats)
    signature = sign("majority", ties="turns", repeats=repeats)
    if not votes.n_labels:
        return nothing(signature)
    shares = votes.shares()
    choice = _in_turns(shares)
    labels = label_table(votes, shares, choice)
    settled = ~labels["tied"].to_numpy()[votes.item]
    agrees = (choice[votes.item] == votes.value) & settled
    with np.errstate(invalid="ignore"):
        agreement = votes.per_annotator(agrees * 1.0) / votes.per_annotator(settled * 1.0)
    return Aggregation(
        method="majority",
        signature=signature,
        labels=labels,
        annotators=annotator_table(votes, agreement=agreement),
        probabilities=probability_table(votes, shares),
        n_ties=int(labels["tied"].sum()),
        warnings=repeat_warnings(votes),
    )


def _in_turns(shares: Floats) -> Integers:
    """The category with the largest share; tied items choose among theirs in rotation."""
    best = shares >= shares.max(axis=1, keepdims=True) - TIE
    n_best = best.sum(axis=1)
    tied = n_best > 1
    turn = np.zeros(len(shares), dtype=np.intp)
    turn[tied] = np.arange(tied.sum()) % n_best[tied]
    return np.asarray((best.cumsum(axis=1) > turn[:, None]).argmax(axis=1))
