"""What a test of two metrics returns."""

from dataclasses import dataclass
from enum import StrEnum


class Undecided(StrEnum):
    """Why a test of two metrics has no p-value."""

    UNDEFINED = "undefined_correlation"
    TOO_FEW = "too_few"
    SAME_METRIC = "same_metric"
    TOO_FEW_SYSTEMS = "too_few_systems"
    NO_RESAMPLES = "no_resamples"
    UNDEFINED_RESAMPLES = "undefined_resamples"
    NO_SPREAD = "no_spread"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much better metric a agrees with human ratings than metric b, and how sure that is.

    Attributes
    ----------
    value_a, value_b : float
        The coefficients on the cells both metrics and annotators have a value for.
    delta : float
        ``value_a - value_b``.
    p : float
        Two-sided; NaN where there is no test, and then `reason` says why.
    n_cells : int
        Cells the test rests on.
    n_permutations : int
        Permutations drawn; 0 where none are.
    seed : int or None
        Their seed; None where a generator was handed in or nothing was drawn.
    reason : Undecided or None
        Why there is no `p`.
    """

    value_a: float
    value_b: float
    delta: float
    p: float
    n_cells: int
    n_permutations: int = 0
    seed: int | None = None
    reason: Undecided | None = None
