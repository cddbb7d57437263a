"""Sums by group, the one operation every statistic of a long frame is made of."""

import numpy as np

from stats.arguments import Floats, Integers


def sum_by(group: Integers, values: Floats, n_groups: int) -> Floats:
    """The sum of the values in each of groups 0 to ``n_groups - 1``; 0 in an empty one.

    Examples
    --------
    >>> sum_by(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 0.0, 5.0]
    """
    return np.bincount(group, values, n_groups).astype(np.float64, copy=False)


def pairs_within(group: Integers, n_groups: int) -> tuple[Integers, Integers]:
    """Every two rows of the same group, as two columns of row numbers.

    Examples
    --------
    >>> left, right = pairs_within(np.array([0, 1, 0, 0]), 2)
    >>> list(zip(left.tolist(), right.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    order = np.argsort(group, kind="stable")
    end = np.cumsum(np.bincount(group, minlength=n_groups))[group[order]]
    partners = end - np.arange(len(order)) - 1
    left = np.repeat(np.arange(len(order)), partners)
    step = np.arange(len(left)) - np.repeat(np.cumsum(partners) - partners, partners)
    return order[left], order[left + 1 + step]
