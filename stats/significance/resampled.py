"""The difference of two metrics' coefficients in the same resamples: interval, and p with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, get_args

import numpy as np

from stats.arguments import (
    Column,
    Floats,
    numbers,
    require_at_least,
    require_confidence,
    require_one_of,
)
from stats.correlation.cells import Cells, complete_cells
from stats.correlation.coefficients import Coefficient, require_coefficient
from stats.correlation.estimates import Plan
from stats.correlation.levels import replicates_of_cells, require_level
from stats.correlation.result import Level, Resample, Undefined
from stats.libraries import pd
from stats.significance.adjustments import benjamini_hochberg, holm
from stats.significance.result import Undecided, difference_limits

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
        lambda: _plan(coefficient, undefined, resample, confidence, n_resamples, rng),
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


def _plan(
    coefficient: str,
    undefined: Undefined,
    resample: Resample,
    confidence: float,
    n_resamples: int,
    seed: int,
) -> Plan:
    return Plan(
        coefficient=coefficient,
        undefined=undefined,
        resample=resample,
        confidence=confidence,
        n_resamples=n_resamples,
        rng=np.random.default_rng(seed),
        seed=seed,
    )


class _Shared:
    """Values and replicates of metrics on the cells of a pair, each computed once."""

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
        n_systems = None if cells.system is None else len(np.unique(cells.system))
        units = cells.drawn_units
        limits = difference_limits(
            delta,
            drawn,
            plan.resample,
            n_systems,
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
