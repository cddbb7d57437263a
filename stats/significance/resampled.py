from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import combinations
from math import isnan, nan
from typing import Any, get_args

from stats.arguments import (
    Column,
    Floats,
    numbers,
    require_at_least,
    require_confidence,
    require_one_of,
)
from stats.correlation.coefficients import Coefficient, require_coefficient
from stats.correlation.estimates import Plan
from stats.correlation.levels import replicates_of_cells, require_level
from stats.correlation.result import (
    FEW_UNITS,
    LEAST_SYSTEMS,
    LEAST_SYSTEMS_FOR_INTERVAL,
    MOST_UNDEFINED,
    Cells,
    Level,
    Resample,
    Undefined,
    complete_cells,
)
from stats.libraries import np, pd, scipy
from stats.significance.adjustments import benjamini_hochberg, holm


class Undecided(StrEnum):
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


LEAST_SYSTEMS_FOR_P = LEAST_SYSTEMS
# Below this, a p counted from the resamples has too few of them behind it.
COUNTED_FROM = 0.02
ROUNDING = 1e-12


@dataclass(frozen=True)
class DifferenceLimits:
    low: float
    high: float
    p: float
    reason: Undecided | None = None


def difference_limits(
    delta: float,
    drawn: Floats | None,
    resample: Resample,
    n_systems: int | None,
    confidence: float,
    *,
    n_units: int | None = None,
) -> DifferenceLimits:
    """The interval of a difference and the p of the same draws, which never contradict each other.

    Parameters
    ----------
    delta : float
        The difference observed.
    drawn : ndarray of float, shape (n_resamples,), or None
        The difference in each resample, NaN where it is undefined.
    resample : {"items", "systems", "both"}
        What was drawn.
    n_systems : int or None
        How many systems there are.
    confidence : float
        Confidence level.
    n_units : int, optional
        How many items (or clusters of them) were drawn from.

    Returns
    -------
    DifferenceLimits

    Notes
    -----
    Percentiles, and p twice the smaller share of differences beyond 0, counting one more; below
    .02 the normal tail is taken where that is less. Of fewer than 60 items, whose percentiles are
    too narrow, Student's t with the draws' standard deviation. None where over one in twenty
    draws is undefined.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall,
    chapters 12 and 13.

    Examples
    --------
    >>> limits = difference_limits(0.5, np.linspace(0.1, 0.9, 999), "items", 4, 0.95)
    >>> round(limits.low, 2), round(limits.high, 2), limits.p < 0.05
    (0.12, 0.88, True)
    >>> str(difference_limits(0.5, np.ones(99), "both", 3, 0.95).reason)
    'too_few_systems'
    """
    if isnan(delta):
        return DifferenceLimits(nan, nan, nan, Undecided.UNDEFINED)
    of_systems = resample != "items"
    if of_systems and (n_systems or 0) < LEAST_SYSTEMS_FOR_INTERVAL:
        return DifferenceLimits(nan, nan, nan, Undecided.TOO_FEW_SYSTEMS)
    known = np.empty(0) if drawn is None else drawn[~np.isnan(drawn)]
    if drawn is None or not len(drawn):
        return DifferenceLimits(nan, nan, nan, Undecided.NO_RESAMPLES)
    if len(known) < max(2, (1 - MOST_UNDEFINED) * len(drawn)):
        return DifferenceLimits(nan, nan, nan, Undecided.UNDEFINED_RESAMPLES)
    if np.ptp(known) <= ROUNDING:
        same = abs(delta) <= ROUNDING
        return DifferenceLimits(
            nan, nan, nan, Undecided.SAME_METRIC if same else Undecided.NO_SPREAD
        )
    if not of_systems and n_units is not None and 2 <= n_units < FEW_UNITS:
        return _student(delta, known, n_units, confidence)
    low, high = _percentiles(known, confidence)
    if of_systems and (n_systems or 0) < LEAST_SYSTEMS_FOR_P:
        return DifferenceLimits(low, high, nan, Undecided.TOO_FEW_SYSTEMS)
    return DifferenceLimits(low, high, p_of_draws(delta, known))


def _student(delta: float, drawn: Floats, n_units: int, confidence: float) -> DifferenceLimits:
    """By Student's t; draws of n units spread as if there were one unit fewer to know."""
    se = float(drawn.std(ddof=1)) * (n_units / (n_units - 1)) ** 0.5
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n_units - 1)) * se
    p = float(2 * scipy.stats.t.sf(abs(delta) / se, n_units - 1))
    return DifferenceLimits(delta - half, delta + half, p)


def _percentiles(drawn: Floats, confidence: float) -> tuple[float, float]:
    """The draws that leave out 0 exactly where `p_of_draws` is below 1 less the confidence."""
    ordered = np.sort(drawn)
    cut = int(np.ceil((1 - confidence) / 2 * (len(drawn) + 1) - ROUNDING)) - 1
    cut = min(max(cut, 1), len(drawn) // 2)
    return float(ordered[cut - 1]), float(ordered[-cut])


def p_of_draws(delta: float, drawn: Floats) -> float:
    """Two-sided p of a difference from what it is in resamples, one more counted.

    Examples
    --------
    >>> round(p_of_draws(0.5, np.linspace(-0.1, 0.9, 101)), 3)
    0.235
    """
    beyond = min(int((drawn <= ROUNDING).sum()), int((drawn >= -ROUNDING).sum()))
    counted = min(1.0, 2 * (1 + beyond) / (1 + len(drawn)))
    if counted > COUNTED_FROM:
        return counted
    return min(counted, float(2 * scipy.special.ndtr(-abs(delta) / float(drawn.std(ddof=1)))))


ESTIMANDS: dict[Resample, str] = {
    "items": "these systems",
    "systems": "new systems, these items",
    "both": "new systems",
}


@dataclass(frozen=True, kw_only=True)
class ResampledDifference:
    """How much better metric a agrees with human ratings than b, from shared resamples.

    Attributes
    ----------
    value_a, value_b, delta : float
        The coefficients on the cells both have, and a less b.
    ci_low, ci_high, p : float
        Percentiles of the differences, and the two-sided p of the same draws; NaN with a
        `reason`.
    estimand : str
        Of what they speak: these systems, or new systems of this kind.
    n_resamples, n_undefined : int
        Resamples drawn, and those in which a coefficient is undefined.
    """

    value_a: float
    value_b: float
    delta: float
    ci_low: float
    ci_high: float
    p: float
    estimand: str
    n_cells: int
    n_resamples: int
    n_undefined: int
    seed: int | None
    reason: Undecided | None = None


def compare_by_resampling(
    human: Column,
    metrics: Mapping[str, Column],
    *,
    level: Level,
    coefficient: Coefficient,
    items: Column,
    systems: Column | None = None,
    clusters: Column | None = None,
    resample: Resample = "items",
    undefined: Undefined = "drop",
    confidence: float = 0.95,
    n_resamples: int = 1000,
    rng: int = 0,
) -> pd.DataFrame:
    """Compare every two metrics by the same resamples of items, systems or both.

    Parameters
    ----------
    human : array-like of float, shape (n_cells,)
        One row a cell: an item under a system.
    metrics : mapping of str to array-like of float, shape (n_cells,)
        Scores of the same cells by metric. A pair is compared on the cells that annotators and
        both metrics have a value for.
    level, coefficient, items, systems, clusters, undefined
        As in `stats.correlation.correlation_at_level`.
    resample : {"items", "systems", "both"}
        What is drawn anew: items answer for these very systems, both for new systems of this
        kind.
    confidence : float
        Confidence level of the intervals.
    n_resamples : int
        Resamples; every metric is computed in the same ones.
    rng : int
        Their seed.

    Returns
    -------
    DataFrame
        A row for each pair in the order of `metrics`: metric_a, metric_b, test, estimand,
        value_a, value_b, delta, ci_low, ci_high, p, p_holm, p_bh, n_cells, n_resamples,
        n_undefined, seed, reason.

    Raises
    ------
    ValueError
        If a column, level, coefficient or option is not usable.

    Notes
    -----
    A cell weighs the product of how often its item and its system were drawn. What the interval
    and p are of the draws, `difference_limits` says. Of new systems nothing is said below 4
    systems, and no p below 6: with so few even whole swaps of systems cannot be significant.
    Drawing both is mildly conservative.

    References
    ----------
    A. B. Owen (2007). The pigeonhole bootstrap. Annals of Applied Statistics 1(2), 386-411.
    D. Deutsch, R. Dror and D. Roth (2021). A statistical analysis of summarization evaluation
    metrics using resampling methods. TACL 9, 1132-1146.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> items, systems = np.arange(30).repeat(8), np.tile(np.arange(8), 30)
    >>> human = systems / 4 + rng.normal(size=240)
    >>> metrics = {"good": human + rng.normal(size=240), "bad": rng.normal(size=240)}
    >>> table = compare_by_resampling(
    ...     human, metrics, level="system", coefficient="pearson", items=items, systems=systems
    ... )
    >>> table[["metric_a", "estimand"]].to_dict("records")
    [{'metric_a': 'good', 'estimand': 'these systems'}]
    """
    require_coefficient(coefficient)
    require_level(level, coefficient, items, systems)
    require_confidence(confidence)
    require_one_of(
        resample=(resample, get_args(Resample)), undefined=(undefined, get_args(Undefined))
    )
    require_at_least(0, n_resamples=n_resamples)
    columns = {name: numbers(column, name) for name, column in metrics.items()}
    shared = _Shared(
        lambda values: complete_cells(human, values, items, systems, clusters),
        lambda: Plan(
            coefficient=coefficient,
            undefined=undefined,
            resample=resample,
            confidence=confidence,
            n_resamples=n_resamples,
            rng=np.random.default_rng(rng),
            seed=rng,
        ),
        level,
    )
    rows: list[dict[str, Any]] = []
    for a, b in combinations(metrics, 2):
        one = shared.difference(columns[a], columns[b])
        rows.append({"metric_a": a, "metric_b": b, "test": f"bootstrap_{resample}", **asdict(one)})
    table = pd.DataFrame(rows, columns=COLUMNS).astype(
        {"p": "float64", "reason": object, "seed": object}
    )
    return table.assign(p_holm=holm(table["p"]), p_bh=benjamini_hochberg(table["p"]))


COLUMNS = [
    *("metric_a", "metric_b", "test", "estimand", "value_a", "value_b", "delta"),
    *("ci_low", "ci_high", "p", "p_holm", "p_bh"),
    *("n_cells", "n_resamples", "n_undefined", "seed", "reason"),
]


class _Shared:
    def __init__(self, cells_of: Any, plan: Any, level: Level) -> None:
        self.cells_of, self.plan, self.level = cells_of, plan, level
        self.known: dict[bytes, tuple[float, Floats | None, Cells]] = {}

    def difference(self, a: Floats, b: Floats) -> ResampledDifference:
        gap = np.isnan(a) | np.isnan(b)
        (value_a, drawn_a, cells), (value_b, drawn_b, _) = (
            self._of(np.where(gap, np.nan, side)) for side in (a, b)
        )
        plan: Plan = self.plan()
        delta = value_a - value_b
        drawn = None if drawn_a is None or drawn_b is None else drawn_a - drawn_b
        units = cells.drawn_units
        limits = difference_limits(
            delta,
            drawn,
            plan.resample,
            None if cells.system is None else len(np.unique(cells.system)),
            plan.confidence,
            n_units=None if units is None else len(np.unique(units)),
        )
        return ResampledDifference(
            value_a=value_a,
            value_b=value_b,
            delta=delta,
            ci_low=limits.low,
            ci_high=limits.high,
            p=limits.p,
            estimand=ESTIMANDS[plan.resample],
            n_cells=cells.n_rows,
            n_resamples=0 if drawn is None else len(drawn),
            n_undefined=0 if drawn is None else int(np.isnan(drawn).sum()),
            seed=None if drawn is None else plan.seed,
            reason=limits.reason,
        )

    def _of(self, values: Floats) -> tuple[float, Floats | None, Cells]:
        key = values.tobytes()
        if key not in self.known:
            cells = self.cells_of(values)
            value, drawn = replicates_of_cells(cells, self.level, self.plan())
            self.known[key] = value, drawn, cells
        return self.known[key]
