"""What becomes of groups with a constant side, by policy."""

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats
from stats.correlation.coefficients import GroupValues
from stats.correlation.result import Reason, Undefined

CONSTANT = (Reason.CONSTANT_HUMAN, Reason.CONSTANT_METRIC)


def constant_groups(groups: GroupValues) -> NDArray[np.bool_]:
    """Which groups have no coefficient because a side is constant."""
    human, metric = (np.equal(groups.reason, reason) for reason in CONSTANT)
    return np.asarray(human | metric, dtype=bool)


def with_policy(groups: GroupValues, undefined: Undefined) -> Floats:
    """The groups' values as they enter a mean, which leaves out those that are NaN.

    A group with fewer than two cells is missing rather than undefined, and always left out.
    """
    if undefined == "drop" or not np.isnan(groups.value).any():
        return groups.value
    constant = constant_groups(groups)
    if undefined == "zero":
        return np.where(constant, 0.0, groups.value)
    return np.full_like(groups.value, np.nan) if constant.any() else groups.value
