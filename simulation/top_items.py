"""The best items of each row of scores, ties by position: exact, and without sorting all."""

import numpy as np

from stats.arguments import Floats, Integers

GROUPS_PER_ITEM = 4


def top_items(scores: Floats, depth: int) -> Integers:
    """The `depth` best of each row, best first; of equal ones the one that comes first.

    The depth-th best of groups' maxima is a bound that every one of them reaches, ties too, so
    that only what reaches it is sorted. Shapes: (n, n_items) in, (n, depth) out.
    """
    n, n_items = scores.shape
    n_groups = GROUPS_PER_ITEM * depth
    if n_items < 4 * n_groups or not n:
        return np.asarray(np.argsort(-scores, axis=1, kind="stable")[:, :depth])
    width = n_items // n_groups
    maxima = scores[:, : width * n_groups].reshape(n, n_groups, width).max(axis=2)
    bound = np.partition(maxima, n_groups - depth, axis=1)[:, n_groups - depth]
    row, item = np.nonzero(scores >= bound[:, None])
    order = np.lexsort((item, -scores[row, item], row))
    first = np.searchsorted(row, np.arange(n))
    return np.asarray(item[order][first[:, None] + np.arange(depth)])
