"""The estimate and interval of a correlation at each level."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan

import numpy as np

from stats.arguments import Floats, Integers
from stats.correlation import bootstrap, bootstrap_systems, spa
from stats.correlation.cells import Cells, renumbered
from stats.correlation.coefficients import GroupValues, group_values
from stats.correlation.intervals import NO_INTERVAL, Interval, fisher, percentile
from stats.correlation.result import CiMethod, Reason, Resample, Undefined
from stats.correlation.ties import calibrated, pairs_within
from stats.correlation.undefined import with_policy
from stats.groups import sum_by

ACCURACY_OF_BOTH_UP_TO_CELLS = 2_000
"""Ties of metric and human ratings are weighed for each pair, several times the work of tau."""
KENDALLS = ("kendall", "kendall_c")
FISHERS = ("pearson", "spearman", "kendall")
CI_METHODS: dict[Resample, CiMethod] = {
    "items": CiMethod.BOOTSTRAP_ITEMS,
    "systems": CiMethod.BOOTSTRAP_SYSTEMS,
    "both": CiMethod.BOOTSTRAP_BOTH,
}


@dataclass(frozen=True)
class Plan:
    """What to estimate, and how to compute the interval."""

    coefficient: str
    undefined: Undefined
    resample: Resample
    confidence: float
    n_resamples: int
    rng: np.random.Generator
    seed: int | None

    @property
    def of_rows(self) -> str:
        """The coefficient of one group; calibrated accuracy is accuracy once it is calibrated."""
        return "acc_eq" if self.coefficient == "acc_star" else self.coefficient


@dataclass(frozen=True)
class Estimate:
    """The groups' coefficients, their mean by the policy, its interval, and the tie threshold."""

    groups: GroupValues
    value: float
    interval: Interval = field(default=NO_INTERVAL)
    threshold: float | None = None


@dataclass(frozen=True)
class _PointEstimate:
    """The groups' coefficients, as they enter the mean, and the tie threshold."""

    groups: GroupValues
    policy_values: Floats
    value: float
    threshold: float | None

    def estimate(self, interval: Interval = NO_INTERVAL) -> Estimate:
        return Estimate(self.groups, self.value, interval, self.threshold)


def by_item(cells: Cells, plan: Plan) -> Estimate:
    """The mean over items of the correlation over systems."""
    assert cells.item is not None
    point = _point_estimate(cells.human, cells.metric, cells.item, cells.n_groups, plan)
    if not plan.n_resamples or np.count_nonzero(~np.isnan(point.policy_values)) < 2:
        return point.estimate()
    if plan.resample == "items":
        mean = bootstrap.mean_of_defined(point.policy_values)
        return point.estimate(_resampled(mean, (cells.n_groups,), cells.n_groups, plan))
    if cells.system is None:
        return point.estimate()
    system, n_systems = renumbered(cells.system)
    shape = (n_systems, cells.n_groups)
    x, y = (spa.table(side, cells.item, system, shape) for side in (cells.human, cells.metric))
    replicate = bootstrap_systems.of_items(
        x, y, plan.of_rows, point.threshold or 0.0, plan.undefined
    )
    sizes = (n_systems,) if plan.resample == "systems" else (cells.n_groups, n_systems)
    return point.estimate(_resampled(replicate, sizes, x.size, plan))


def of_systems(cells: Cells, plan: Plan) -> Estimate:
    """The correlation of the systems' means."""
    assert cells.system is not None
    if plan.coefficient == "spa":
        return _soft(cells, plan)
    system, n_systems = renumbered(cells.system)
    count = sum_by(system, np.ones(cells.n_rows), n_systems)
    x, y = bootstrap.unit_range(cells.human), bootstrap.unit_range(cells.metric)
    mean_x, mean_y = (
        bootstrap.rounded_means(sum_by(system, side, n_systems), count) for side in (x, y)
    )
    point = _point_estimate(mean_x, mean_y, np.zeros(n_systems, dtype=np.intp), 1, plan)
    threshold = point.threshold or 0.0
    unscaled = _PointEstimate(
        point.groups, point.policy_values, point.value, _unscaled(point.threshold, cells.metric)
    )
    if plan.resample == "systems":
        replicate = bootstrap_systems.of_means(mean_x, mean_y, plan.of_rows, threshold)
        return unscaled.estimate(_if_possible(replicate, (n_systems,), unscaled, plan))
    if cells.item is None:
        return unscaled.estimate(_fisher(unscaled.value, n_systems, plan, CiMethod.FISHER_SYSTEMS))
    item, n_items = renumbered(cells.item)
    columns = (x, y, item, system, (n_items, n_systems), plan.of_rows, threshold)
    if plan.resample == "both":
        both = bootstrap_systems.of_resampled_means(*columns)
        return unscaled.estimate(_if_possible(both, (n_items, n_systems), unscaled, plan))
    return unscaled.estimate(
        _if_possible(bootstrap.of_system_means(*columns), (n_items,), unscaled, plan, n_systems)
    )


def _unscaled(threshold: float | None, metric: Floats) -> float | None:
    return None if threshold is None or not len(metric) else threshold * float(np.ptp(metric))


def _soft(cells: Cells, plan: Plan) -> Estimate:
    """Soft pairwise accuracy of the systems."""
    assert cells.item is not None
    assert cells.system is not None
    (system, n_systems), (item, n_items) = renumbered(cells.system), renumbered(cells.item)
    shape = (n_systems, n_items)
    x, y = (spa.table(side, item, system, shape) for side in (cells.human, cells.metric))
    flips = spa.sign_flips(spa.N_PERMUTATIONS, n_items, plan.rng)
    p_human, p_metric = (spa.p_by_flips(spa.pair_differences(side), flips) for side in (x, y))
    value = spa.one_less_error(p_human[None], p_metric[None], spa.pair_shares(x)[None])
    reason = np.array([Reason.TOO_FEW if np.isnan(value[0]) else None], dtype=object)
    point = _PointEstimate(GroupValues(value, reason), value, float(value[0]), None)
    replicate = bootstrap_systems.of_soft_pairs(x, y, p_human, p_metric)[plan.resample]
    sizes = {"items": (n_items,), "systems": (n_systems,), "both": (n_items, n_systems)}
    width = n_systems * n_systems
    return point.estimate(_if_possible(replicate, sizes[plan.resample], point, plan, width))


def of_cells(cells: Cells, plan: Plan) -> Estimate:
    """The correlation of all cells."""
    point = _point_estimate(
        cells.human, cells.metric, np.zeros(cells.n_rows, dtype=np.intp), 1, plan
    )
    units = _pooled_units(cells, plan)
    if units is None or (plan.resample == "items" and cells.n_rows > _most_cells(plan)):
        return point.estimate(_fisher(point.value, cells.n_rows, plan, CiMethod.FISHER_CELLS))
    if cells.n_rows > _most_cells(plan):
        return point.estimate()
    unit, sizes, spread = units
    if min(sizes) < 2 or np.isnan(point.groups.value[0]) or not plan.n_resamples:
        return point.estimate()
    x, y, n_units = cells.human, cells.metric, int(unit.max()) + 1
    if plan.resample == "both" and plan.of_rows in KENDALLS:
        pooled = bootstrap.copied_kendall(x, y, plan.of_rows)
    else:
        pooled = pooled_replicate(x, y, unit, n_units, plan.of_rows, point.threshold or 0.0)
    width = cells.n_rows if plan.coefficient == "spearman" or len(sizes) > 1 else max(sizes)
    return point.estimate(_resampled(lambda *weights: pooled(spread(*weights)), sizes, width, plan))


def _most_cells(plan: Plan) -> float:
    """How many cells the pooled bootstrap takes."""
    if plan.of_rows in ("pearson", "spearman"):
        return np.inf
    if plan.resample == "both" and plan.of_rows not in KENDALLS:
        return ACCURACY_OF_BOTH_UP_TO_CELLS
    return bootstrap.PAIRS_UP_TO_CELLS


def _pooled_units(
    cells: Cells, plan: Plan
) -> tuple[Integers, tuple[int, ...], Callable[..., Floats]] | None:
    """What a cell is resampled with, how many are drawn from, and the weights of those units."""
    if plan.resample == "both":
        if cells.item is None or cells.system is None:
            return None
        (item, n_items), (system, n_systems) = renumbered(cells.item), renumbered(cells.system)
        return (
            np.arange(cells.n_rows),
            (n_items, n_systems),
            lambda of_item, of_system: of_item[:, item] * of_system[:, system],
        )
    codes = cells.item if plan.resample == "items" else cells.system
    if codes is None:
        return None
    unit, n_units = renumbered(codes)
    return unit, (n_units,), lambda weights: weights


def pooled_replicate(
    x: Floats, y: Floats, unit: Integers, n_units: int, coefficient: str, threshold: float = 0.0
) -> bootstrap.Replicate:
    """From weights of units of cells to the coefficient of all cells."""
    if coefficient == "pearson":
        return bootstrap.pooled_pearson(x, y, unit, n_units)
    if coefficient == "spearman":
        return bootstrap.pooled_spearman(x, y, unit)
    if coefficient == "kendall":
        return bootstrap.pooled_kendall(x, y, unit, n_units)
    if coefficient == "kendall_c":
        return bootstrap.pooled_kendall_c(x, y, unit, n_units)
    return bootstrap.pooled_accuracy(x, y, unit, n_units, threshold)


def _point_estimate(
    x: Floats, y: Floats, group: Integers, n_groups: int, plan: Plan
) -> _PointEstimate:
    """The coefficient of each group, and their mean by the policy."""
    threshold = sampled = None
    if plan.coefficient == "acc_star":
        pairs = pairs_within(group, n_groups, plan.rng)
        thresholds, best = calibrated(x, y[None], pairs)
        threshold = None if np.isnan(thresholds[0]) else float(thresholds[0])
        sampled = best if n_groups == 1 and threshold is not None else None
    if sampled is not None:
        groups = GroupValues(sampled, np.full(1, None, dtype=object))
    else:
        groups = group_values(x, y, group, n_groups, plan.of_rows, threshold or 0.0)
    values = with_policy(groups, plan.undefined)
    defined = values[~np.isnan(values)]
    return _PointEstimate(groups, values, float(defined.mean()) if len(defined) else nan, threshold)


def _if_possible(
    replicate: bootstrap.Replicate,
    sizes: tuple[int, ...],
    point: _PointEstimate,
    plan: Plan,
    width: int | None = None,
) -> Interval:
    if not plan.n_resamples or min(sizes) < 2 or np.isnan(point.groups.value[0]):
        return NO_INTERVAL
    return _resampled(replicate, sizes, width or max(sizes), plan)


def _resampled(
    replicate: bootstrap.Replicate, sizes: tuple[int, ...], width: int, plan: Plan
) -> Interval:
    drawn = bootstrap.replicates(replicate, sizes, plan.n_resamples, plan.rng, width)
    return percentile(drawn, plan.confidence, CI_METHODS[plan.resample])


def _fisher(value: float, n: int, plan: Plan, method: CiMethod) -> Interval:
    if plan.coefficient not in FISHERS:
        return NO_INTERVAL
    return fisher(value, n, plan.coefficient, plan.confidence, method)
