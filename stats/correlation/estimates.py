from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import nan

import numpy as np

from stats.arguments import Floats, Integers, sum_by
from stats.correlation import bootstrap, pairwise_accuracy
from stats.correlation.coefficients import GroupValues, correlate_groups, with_policy
from stats.correlation.influence import (
    cluster_variance,
    kendall_influences,
    two_way_variance,
    z_t_limits,
)
from stats.correlation.item_limits import (
    limits_of_cells,
    limits_of_mean,
    limits_of_system_means,
)
from stats.correlation.pairwise_accuracy import calibrated, pairs_within
from stats.correlation.result import (
    FEW_UNITS,
    LEAST_SYSTEMS_FOR_INTERVAL,
    NO_INTERVAL,
    Cells,
    CiMethod,
    Interval,
    NoInterval,
    Reason,
    Resample,
    Undefined,
    fisher,
    percentile,
)
from stats.jackknife import effective_freedom, effective_number

# Ties of metric and human ratings are weighed for each pair, several times the work of tau.
ACCURACY_OF_BOTH_UP_TO_CELLS = 2_000
KENDALLS = ("kendall", "kendall_c")
FISHERS = ("pearson", "spearman", "kendall")
CI_METHODS: dict[Resample, CiMethod] = {
    "items": CiMethod.BOOTSTRAP_ITEMS,
    "systems": CiMethod.BOOTSTRAP_SYSTEMS,
    "both": CiMethod.BOOTSTRAP_BOTH,
}
CLUSTER_METHODS: dict[Resample, CiMethod] = {
    "items": CiMethod.CLUSTERS_ITEMS,
    "systems": CiMethod.CLUSTERS_SYSTEMS,
    "both": CiMethod.CLUSTERS_BOTH,
}


TOO_FEW = replace(NO_INTERVAL, reason=NoInterval.TOO_FEW)


@dataclass(frozen=True)
class Plan:
    coefficient: str
    undefined: Undefined
    resample: Resample
    confidence: float
    n_resamples: int
    rng: np.random.Generator
    seed: int | None
    # Of the draws of systems, where several plans share them; otherwise they are of `rng`.
    system_seed: int | None = None
    # The coefficient in resamples drawn already, jointly with other metrics.
    drawn: Floats | None = None

    @property
    def of_rows(self) -> str:
        """The coefficient of one group; calibrated accuracy is accuracy once it is calibrated."""
        return "acc_eq" if self.coefficient == "acc_star" else self.coefficient


@dataclass(frozen=True)
class Estimate:
    groups: GroupValues
    value: float
    interval: Interval = field(default=NO_INTERVAL)
    threshold: float | None = None


@dataclass(frozen=True)
class _PointEstimate:
    groups: GroupValues
    policy_values: Floats
    value: float
    threshold: float | None

    def estimate(self, interval: Interval = NO_INTERVAL) -> Estimate:
        return Estimate(self.groups, self.value, interval, self.threshold)


def by_item(cells: Cells, plan: Plan) -> Estimate:
    assert cells.item is not None
    point = _point_estimate(cells.human, cells.metric, cells.item, cells.n_groups, plan)
    n_defined = np.count_nonzero(~np.isnan(point.policy_values))
    if not plan.n_resamples or n_defined < 2:
        return point.estimate(TOO_FEW if plan.n_resamples and n_defined else NO_INTERVAL)
    item, n_items = cells.numbered(cells.item)
    values = np.empty(n_items)
    values[item] = point.policy_values[cells.item]
    of_item, n_units = _item_units(cells, item, n_items)
    if plan.resample == "items":
        mean = bootstrap.mean_of_defined(values)
        if n_units < 2:
            return point.estimate(TOO_FEW)
        replicate = mean if of_item is None else _spread(mean, of_item)
        interval = _resampled(replicate, (n_units,), n_items, plan)
        return point.estimate(_of_few(interval, _mean_limits(values, of_item, plan)))
    if cells.system is None:
        return point.estimate()
    system, n_systems = cells.numbered(cells.system)
    shape = (n_systems, n_items)
    x, y = (
        pairwise_accuracy.table(side, item, system, shape) for side in (cells.human, cells.metric)
    )
    replicate = bootstrap.of_items(x, y, plan.of_rows, point.threshold or 0.0, plan.undefined)
    if plan.resample == "systems":
        return point.estimate(_resampled(replicate, (n_systems,), x.size, plan))
    drawn = replicate if of_item is None else _spread(replicate, of_item)
    return point.estimate(_resampled(drawn, (n_units, n_systems), x.size, plan))


def _mean_limits(values: Floats, of_item: Integers | None, plan: Plan) -> Interval:
    """Without draws; an accuracy from 0 to 1 is put on the scale of correlations and back."""
    if plan.of_rows != "acc_eq":
        return limits_of_mean(values, of_item, plan.confidence)
    scaled = limits_of_mean(2 * values - 1, of_item, plan.confidence)
    return replace(scaled, low=(1 + scaled.low) / 2, high=(1 + scaled.high) / 2)


def _item_units(cells: Cells, item: Integers, n_items: int) -> tuple[Integers | None, int]:
    if cells.cluster is None:
        return None, n_items
    code, n_clusters = cells.numbered(cells.cluster)
    of_item = np.zeros(n_items, dtype=np.intp)
    of_item[item] = code
    return of_item, n_clusters


def _spread(replicate: bootstrap.Replicate, of_item: Integers) -> bootstrap.Replicate:
    return lambda of_cluster, *rest: replicate(of_cluster[:, of_item], *rest)


def of_systems(cells: Cells, plan: Plan) -> Estimate:
    assert cells.system is not None
    if plan.coefficient == "spa":
        return _soft(cells, plan)
    system, n_systems = cells.numbered(cells.system)
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
        replicate = bootstrap.of_means(mean_x, mean_y, plan.of_rows, threshold)
        return unscaled.estimate(_if_possible(replicate, (n_systems,), unscaled, plan))
    if cells.drawn_units is None:
        if plan.drawn is not None:
            return unscaled.estimate(_resampled(None, (), 0, plan))
        return unscaled.estimate(_fisher(unscaled.value, n_systems, plan, CiMethod.FISHER_SYSTEMS))
    item, n_items = cells.numbered(cells.drawn_units)
    columns = (x, y, item, system, (n_items, n_systems), plan.of_rows, threshold)
    if plan.resample == "both":
        both = bootstrap.of_resampled_means(*columns)
        return unscaled.estimate(_if_possible(both, (n_items, n_systems), unscaled, plan))
    interval = _if_possible(
        bootstrap.of_system_means(*columns), (n_items,), unscaled, plan, n_systems
    )
    if plan.coefficient == "pearson" and interval.n_resamples:
        # percentiles are those of means of half as many items again, nearer to 0 than r itself
        shape = (n_items, n_systems)
        own = limits_of_system_means(x, y, item, system, shape, plan.confidence)
        interval = _instead(interval, own)
    return unscaled.estimate(interval)


def _unscaled(threshold: float | None, metric: Floats) -> float | None:
    return None if threshold is None or not len(metric) else threshold * float(np.ptp(metric))


def _soft(cells: Cells, plan: Plan) -> Estimate:
    assert cells.item is not None
    assert cells.system is not None
    system, n_systems = cells.numbered(cells.system)
    item, n_items = cells.numbered(cells.item)
    shape = (n_systems, n_items)
    x, y = (
        pairwise_accuracy.table(side, item, system, shape) for side in (cells.human, cells.metric)
    )
    flips = pairwise_accuracy.sign_flips(pairwise_accuracy.N_PERMUTATIONS, n_items, plan.rng)
    p_human, p_metric = (
        pairwise_accuracy.p_by_flips(pairwise_accuracy.pair_differences(side), flips)
        for side in (x, y)
    )
    value = pairwise_accuracy.one_less_error(
        p_human[None], p_metric[None], pairwise_accuracy.pair_shares(x)[None]
    )
    reason = np.array([Reason.TOO_FEW if np.isnan(value[0]) else None], dtype=object)
    point = _PointEstimate(GroupValues(value, reason), value, float(value[0]), None)
    replicate = bootstrap.of_soft_pairs(x, y, p_human, p_metric)[plan.resample]
    of_item, n_units = _item_units(cells, item, n_items)
    if of_item is not None and plan.resample != "systems":
        replicate = _spread(replicate, of_item)
    sizes = {"items": (n_units,), "systems": (n_systems,), "both": (n_units, n_systems)}
    width = n_systems * n_systems
    return point.estimate(_if_possible(replicate, sizes[plan.resample], point, plan, width))


def of_cells(cells: Cells, plan: Plan) -> Estimate:
    point = _point_estimate(
        cells.human, cells.metric, np.zeros(cells.n_rows, dtype=np.intp), 1, plan
    )
    units = _pooled_units(cells, plan)
    if units is None:
        return point.estimate(_fisher(point.value, cells.n_rows, plan, CiMethod.FISHER_CELLS))
    if cells.n_rows > _most_cells(plan):
        return point.estimate(_of_influences(cells, plan))
    unit, sizes, spread = units
    if min(sizes) < 2 or np.isnan(point.groups.value[0]) or not plan.n_resamples:
        return point.estimate()
    x, y, n_units = cells.human, cells.metric, int(unit.max()) + 1
    if plan.drawn is not None:
        interval = _resampled(None, sizes, 0, plan)
    else:
        if plan.resample == "both" and plan.of_rows in KENDALLS:
            pooled = bootstrap.copied_kendall(x, y, plan.of_rows)
        else:
            pooled = pooled_replicate(x, y, unit, n_units, plan.of_rows, point.threshold or 0.0)
        width = cells.n_rows if plan.coefficient == "spearman" or len(sizes) > 1 else max(sizes)
        interval = _resampled(lambda *weights: pooled(spread(*weights)), sizes, width, plan)
    if plan.resample == "items":
        interval = _of_few(interval, limits_of_cells(x, y, unit, plan.coefficient, plan.confidence))
    return point.estimate(interval)


def _of_influences(cells: Cells, plan: Plan) -> Interval:
    """Of tau-b of too many cells to resample: by the variance of what its clusters move it by."""
    if plan.coefficient != "kendall":
        return NO_INTERVAL
    influences = kendall_influences(cells.human, cells.metric)
    if np.isnan(influences.value):
        return NO_INTERVAL
    units = [
        codes
        for name, codes in (("items", cells.drawn_units), ("systems", cells.system))
        if plan.resample in (name, "both") and codes is not None
    ]
    variance = (
        two_way_variance(influences.of_cell, units[0], units[1])
        if len(units) == 2
        else cluster_variance(influences.of_cell, units[0])
    )
    freedom = effective_freedom(*(effective_number(np.bincount(codes)) for codes in units))
    low, high = z_t_limits(influences.value, variance, freedom, plan.confidence)
    return Interval(low, high, CLUSTER_METHODS[plan.resample])


def _most_cells(plan: Plan) -> float:
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
        if cells.drawn_units is None or cells.system is None:
            return None
        item, n_items = cells.numbered(cells.drawn_units)
        system, n_systems = cells.numbered(cells.system)
        return (
            np.arange(cells.n_rows),
            (n_items, n_systems),
            lambda of_item, of_system: of_item[:, item] * of_system[:, system],
        )
    codes = cells.drawn_units if plan.resample == "items" else cells.system
    if codes is None:
        return None
    unit, n_units = cells.numbered(codes)
    return unit, (n_units,), lambda weights: weights


def pooled_replicate(
    x: Floats, y: Floats, unit: Integers, n_units: int, coefficient: str, threshold: float = 0.0
) -> bootstrap.Replicate:
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
    threshold = sampled = None
    if plan.coefficient == "acc_star":
        thresholds, best = calibrated(x, y[None], pairs_within(group, n_groups, plan.rng))
        threshold = None if np.isnan(thresholds[0]) else float(thresholds[0])
        sampled = best if n_groups == 1 and threshold is not None else None
    if sampled is not None:
        groups = GroupValues(sampled, np.full(1, None, dtype=object))
    else:
        groups = correlate_groups(x, y, group, n_groups, plan.of_rows, threshold or 0.0)
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
    if not plan.n_resamples or np.isnan(point.groups.value[0]):
        return NO_INTERVAL
    if min(sizes) < 2:
        return TOO_FEW
    return _resampled(replicate, sizes, width or max(sizes), plan)


def _resampled(
    replicate: bootstrap.Replicate | None, sizes: tuple[int, ...], width: int, plan: Plan
) -> Interval:
    """Percentiles of the resamples; without a replicate, of those drawn already."""
    drawn = plan.drawn
    if drawn is None:
        assert replicate is not None
        drawn = bootstrap.replicates(
            replicate, sizes, plan.n_resamples, plan.rng, width, rngs=_rngs(plan)
        )
    n_units = None if plan.resample == "systems" or not sizes else sizes[0]
    if plan.resample != "items" and sizes and sizes[-1] < LEAST_SYSTEMS_FOR_INTERVAL:
        none = replace(TOO_FEW, reason=NoInterval.TOO_FEW_SYSTEMS)
        return replace(none, n_resamples=len(drawn), n_units=n_units, drawn=drawn)
    interval = percentile(drawn, plan.confidence, CI_METHODS[plan.resample], n_units)
    return replace(interval, drawn=drawn)


def _of_few(interval: Interval, own: Interval) -> Interval:
    few = interval.n_units is not None and interval.n_units < FEW_UNITS
    few = few or interval.reason == NoInterval.NO_SPREAD
    return _instead(interval, own) if few else interval


def _instead(interval: Interval, own: Interval) -> Interval:
    """Other limits beside the same resamples; none where too many of those are undefined."""
    if own.method == CiMethod.NONE or interval.reason == NoInterval.UNDEFINED_RESAMPLES:
        return interval
    return replace(interval, low=own.low, high=own.high, method=own.method, reason=None)


def _rngs(plan: Plan) -> list[np.random.Generator] | None:
    """One generator for each kind of unit, where the draws of systems are shared."""
    if plan.system_seed is None or plan.resample == "items":
        return None
    of_systems = np.random.default_rng(plan.system_seed)
    if plan.resample == "systems":
        return [of_systems]
    # the same generators as where one plan draws both, so that one panel's draws are the plain ones
    return [plan.rng.spawn(2)[0], of_systems.spawn(2)[1]]


def _fisher(value: float, n: int, plan: Plan, method: CiMethod) -> Interval:
    if plan.coefficient not in FISHERS:
        return NO_INTERVAL
    return fisher(value, n, plan.coefficient, plan.confidence, method)
