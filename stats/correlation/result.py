"""What a correlation at a level returns."""

from dataclasses import dataclass
from enum import StrEnum
from math import isnan
from typing import Literal

Level = Literal["pooled", "system", "item"]
Resample = Literal["items", "systems", "both"]
Undefined = Literal["drop", "zero", "nan"]


class Reason(StrEnum):
    """Why a correlation, of one group or overall, is undefined."""

    TOO_FEW = "too_few"
    CONSTANT_HUMAN = "constant_human"
    CONSTANT_METRIC = "constant_metric"
    NO_DEFINED_ITEM = "no_defined_item"
    CONSTANT_ITEMS = "constant_items"


class CiMethod(StrEnum):
    """How an interval was computed."""

    BOOTSTRAP_ITEMS = "bootstrap-items-percentile"
    BOOTSTRAP_SYSTEMS = "bootstrap-systems-percentile"
    BOOTSTRAP_BOTH = "bootstrap-items-and-systems-percentile"
    FISHER_CELLS = "fisher-z-cells"
    FISHER_SYSTEMS = "fisher-z-systems"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """A correlation of a metric with human values at one level, and what it rests on.

    Attributes
    ----------
    value : float
        The coefficient; NaN where undefined, and then `reason` says why.
    coefficient : {"pearson", "spearman", "kendall", "kendall_c", "acc_eq", "acc_star", "spa"}
        Kendall is tau-b, or tau-c with ``_c``; ``acc`` is pairwise accuracy with ties, calibrated
        with ``_star``; ``spa`` is soft pairwise accuracy.
    level : {"pooled", "system", "item"}
        What was correlated: all cells, the systems' means, or the cells of each item, averaged
        over items (also called sample level).
    n_groups : int
        Coefficients there could have been: the items at the item level, otherwise 1.
    n_used : int
        Coefficients that were defined and entered `value`.
    undefined : {"drop", "zero", "nan"}
        What was done with constant groups: left out, counted as 0, or passed on as NaN.
    n_zeroed : int
        Constant groups that entered `value` as 0.
    n_too_few, n_constant_human, n_constant_metric : int
        Undefined groups, by the first reason that applies: fewer than two cells (or systems),
        all human values equal, all metric values equal.
    n_items, n_systems : int or None
        Distinct items and systems with a complete cell; None where the column was not given.
    n_rows : int
        Complete cells.
    n_missing : int
        Cells dropped because the human or the metric value is missing.
    threshold : float or None
        With ``"acc_star"``, how far apart two scores may be (at the system level, two means of
        scores) and count as tied; otherwise None.
    reason : Reason or None
        Why `value` is undefined; None where it is defined.
    ci_low, ci_high : float
        Confidence limits; NaN where there are none.
    ci_method : CiMethod
        How the limits were computed, and what was resampled.
    confidence : float
        The confidence level of the limits, between 0 and 1.
    n_resamples, n_resamples_undefined : int
        Bootstrap resamples drawn, and those of them without a defined coefficient.
    seed : int or None
        The seed of the bootstrap; None where a generator was handed in or nothing was drawn.
    """

    value: float
    coefficient: str
    level: Level
    n_groups: int
    n_used: int
    n_too_few: int
    n_constant_human: int
    n_constant_metric: int
    n_items: int | None
    n_systems: int | None
    n_rows: int
    n_missing: int
    reason: Reason | None
    ci_low: float
    ci_high: float
    ci_method: CiMethod
    confidence: float
    undefined: Undefined = "drop"
    n_zeroed: int = 0
    threshold: float | None = None
    n_resamples: int = 0
    n_resamples_undefined: int = 0
    seed: int | None = None

    @property
    def n_undefined(self) -> int:
        """Groups left out of the value because their coefficient is undefined."""
        return self.n_groups - self.n_used

    @property
    def is_defined(self) -> bool:
        """Whether the correlation has a value."""
        return not isnan(self.value)
