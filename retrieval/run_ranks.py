"""Where a run's ranks and scores contradict each other; tools read the scores alone."""

from __future__ import annotations

import numpy as np

from stats.arguments import Floats, Integers


def contradicting(topic: Integers, rank: Floats, score: Floats) -> Integers:
    """Lines that have a worse rank and a greater score than the one before them by rank.

    Ranks that are no numbers are NaN, and contradict nothing.

    Returns
    -------
    ndarray of int, shape (n, 2)
        The positions of each such line and of the one that it contradicts, in the file's order.
    """
    # Most files are in order already; of equal ranks the greatest score is first.
    order = None if _is_in_order(topic, rank) else np.lexsort((-score, rank, topic))
    if order is not None:
        topic, rank, score = topic[order], rank[order], score[order]
    is_worse = (topic[1:] == topic[:-1]) & (rank[1:] > rank[:-1]) & (score[1:] > score[:-1])
    at = np.flatnonzero(is_worse)
    pairs = np.column_stack((at + 1, at)) if order is None else order[np.column_stack((at + 1, at))]
    return pairs[np.argsort(pairs[:, 0], kind="stable")]


def _is_in_order(topic: Integers, rank: Floats) -> bool:
    """Whether each topic's lines follow one another by rank, no two with the same."""
    is_same = topic[1:] == topic[:-1]
    if int((~is_same).sum()) + 1 != int(topic.max(initial=0)) + 1:
        return False
    return bool((rank[1:] > rank[:-1])[is_same].all())
