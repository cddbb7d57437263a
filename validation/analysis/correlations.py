from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from math import isnan, nan
from typing import Any

from presentation.numbers import plain_values
from stats.arguments import Floats, Integers, sum_by
from stats.correlation import CiMethod, Coefficient, Correlation, Level
from stats.correlation.coefficients import correlate_groups, row_values, with_policy
from stats.correlation.estimates import CI_METHODS, Plan
from stats.correlation.influence import z_t_limits
from stats.correlation.levels import correlation_and_replicates
from stats.correlation.result import LEAST_SYSTEMS_FOR_INTERVAL, Cells, percentile
from stats.libraries import np, scipy
from stats.significance import Undecided
from stats.significance.resampled import LEAST_SYSTEMS_FOR_P
from validation.analysis.records import CorrelationRecord
from validation.analysis.replicates import JOINT, is_of_too_many, item_replicates
from validation.analysis.settings import Coverage, Metric, Panel, Scope, Settings

# With more, drawing items and systems together is cheaper.
MOST_SYSTEMS = 200


@dataclass(frozen=True)
class NewSystems:
    """What a report of these very systems says of new systems of their kind, without further draws.

    The variance is that of the draws of items and, added to it, the jackknife's over systems: each
    left out in turn. Adding them counts the noise of single candidates twice, which is on the safe
    side, as drawing items and systems together is.
    """

    low: float = nan
    high: float = nan
    p: float = nan
    reason: Undecided | None = None


def values_without_systems(panel: Panel, level: Level, settings: Settings) -> dict[str, Floats]:
    part = panel.of_systems()
    n_systems = int(part.system.max(initial=-1)) + 1
    if not LEAST_SYSTEMS_FOR_INTERVAL <= n_systems <= MOST_SYSTEMS:
        return {}
    names = [
        name
        for name in settings.coefficients
        if name in JOINT and not is_of_too_many(level, name, len(part.human))
    ]
    return {
        name: np.array([_without_each(part, row, level, name, settings) for row in part.scores])
        for name in names
        if len(part.scores)
    }


def _without_each(
    part: Panel, row: Floats, level: Level, coefficient: str, settings: Settings
) -> Floats:
    known = ~np.isnan(row)
    human, score = part.human[known], row[known]
    system, item = part.system[known], part.item[known]
    n_systems = int(part.system.max()) + 1
    if level == "system":
        return _of_means(human, score, system, n_systems, coefficient)
    values = np.full(n_systems, nan)
    for number in range(n_systems):
        rest = system != number
        if level == "pooled" and rest.sum() > 1:
            values[number] = row_values(human[rest][None], score[rest][None], coefficient)[0][0]
        elif level == "item":
            groups = correlate_groups(
                human[rest], score[rest], item[rest], part.n_items, coefficient
            )
            of_item = with_policy(groups, settings.undefined)
            defined = of_item[~np.isnan(of_item)]
            values[number] = defined.mean() if len(defined) else nan
    return values


def _of_means(
    human: Floats, score: Floats, system: Integers, n_systems: int, coefficient: str
) -> Floats:
    count = sum_by(system, np.ones(len(human)), n_systems)
    if (count == 0).any():
        return np.full(n_systems, nan)
    rest = ~np.eye(n_systems, dtype=bool)
    tables = [
        np.broadcast_to(sum_by(system, side, n_systems) / count, rest.shape)[rest]
        for side in (human, score)
    ]
    x, y = (table.reshape(n_systems, n_systems - 1) for table in tables)
    return row_values(x, y, coefficient)[0]


def correlation_limits(
    correlation: Correlation, drawn: Floats | None, without: Floats | None
) -> NewSystems:
    if "systems" in str(correlation.ci_method) or not correlation.is_defined:
        return NewSystems()
    variance, reason = _variance(drawn, without, correlation.n_units)
    if without is None or reason is not None:
        return NewSystems(reason=reason)
    value, freedom = correlation.value, len(without) - 1
    if correlation.coefficient == "acc_eq":  # from 0 to 1: on the scale of correlations and back
        low, high = z_t_limits(2 * value - 1, 4 * variance, freedom, correlation.confidence)
        low, high = (1 + low) / 2, (1 + high) / 2
    else:
        low, high = z_t_limits(value, variance, freedom, correlation.confidence)
    return NewSystems(low, high, reason=Undecided.NO_SPREAD if isnan(low) else None)


def difference_for_new_systems(
    delta: float,
    drawn: Floats | None,
    without: Floats | None,
    n_units: int | None,
    confidence: float,
) -> NewSystems:
    """Has a p value from six systems on."""
    if isnan(delta):
        return NewSystems(reason=Undecided.UNDEFINED)
    variance, reason = _variance(drawn, without, n_units)
    if without is None or reason is not None:
        return NewSystems(reason=reason)
    if not variance > 0:
        return NewSystems(reason=Undecided.NO_SPREAD)
    freedom, se = len(without) - 1, variance**0.5
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * se
    limits = NewSystems(delta - half, delta + half)
    if len(without) < LEAST_SYSTEMS_FOR_P:
        return NewSystems(limits.low, limits.high, reason=Undecided.TOO_FEW_SYSTEMS)
    return NewSystems(
        limits.low, limits.high, float(2 * scipy.stats.t.sf(abs(delta) / se, freedom))
    )


def _variance(
    drawn: Floats | None, without: Floats | None, n_units: int | None
) -> tuple[float, Undecided | None]:
    if drawn is None:
        return nan, Undecided.NO_RESAMPLES
    if without is None:
        return nan, Undecided.TOO_FEW_SYSTEMS
    if np.isnan(without).any():
        return nan, Undecided.UNDEFINED_RESAMPLES
    count = len(without)
    of_systems = (count - 1) / count * float(np.square(without - without.mean()).sum())
    known = drawn[~np.isnan(drawn)]
    if len(known) < 2 or n_units is None or n_units < 2:
        return nan, Undecided.NO_RESAMPLES
    return of_systems + float(known.var(ddof=1)) * n_units / (n_units - 1), None


COUNTS = (
    "n_groups",
    "n_used",
    "n_too_few",
    "n_constant_human",
    "n_constant_metric",
    "n_rows",
    "n_missing",
    "n_zeroed",
)


@dataclass(frozen=True, kw_only=True)
class MetricAgreement:
    """One metric against one question, in one condition or (with none named) in all.

    `scope` tells the candidates of all conditions together from the mean of the conditions'
    values. `replicates` are its values in the resamples, the same ones as every other metric's
    of that question, condition and level; `without_systems` its values with each system left
    out in turn.
    """

    question: str
    condition: str
    metric: str
    signature: str
    correlation: Correlation
    scope: Scope = "all"
    higher_is_better: bool = True
    is_primary: bool = True
    coverage: Coverage
    replicates: Floats | None = None
    without_systems: Floats | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.question, self.scope, self.condition

    @property
    def measure(self) -> tuple[str, str, str, str, str]:
        return (*self.key, self.correlation.level, self.correlation.coefficient)

    @property
    def source(self) -> tuple[str, str]:
        return self.metric, self.signature

    def record(self, **beside: Any) -> CorrelationRecord:
        named: dict[str, Any] = {
            "question": self.question,
            "scope": self.scope,
            "by": self.condition,
            "metric": self.metric,
            "signature": self.signature,
            "higher_is_better": self.higher_is_better,
            "is_primary": self.is_primary,
        }
        estimate = self.correlation
        reason = None if estimate.reason is None else str(estimate.reason)
        texts = {"ci_method": str(estimate.ci_method), "reason": reason}
        texts["ci_reason"] = None if estimate.ci_reason is None else str(estimate.ci_reason)
        values = asdict(estimate) | texts | {"n_undefined": estimate.n_undefined}
        del values["n_empty_items"]  # coverage counts candidates without a score
        values |= asdict(self.coverage) | self.of_new_systems() | beside
        return CorrelationRecord(**named, **plain_values(values))

    def of_new_systems(self) -> dict[str, Any]:
        limits = correlation_limits(self.correlation, self.replicates, self.without_systems)
        return {
            "new_systems_low": limits.low,
            "new_systems_high": limits.high,
            "new_systems_reason": None if limits.reason is None else str(limits.reason),
        }


def panel_rows(panel: Panel, settings: Settings) -> Iterator[MetricAgreement]:
    for level in settings.levels:
        drawn = item_replicates(panel, level, settings) if settings.resample == "items" else {}
        without = values_without_systems(panel, level, settings) if drawn else {}
        for coefficient in settings.coefficients:
            # soft pairwise accuracy is of systems with one candidate an item
            if coefficient == "spa" and (level != "system" or panel.of_systems().repeats_cells):
                continue
            for number, metric in enumerate(panel.metrics):
                known = drawn[coefficient][number] if coefficient in drawn else None
                row = _row(panel, number, metric, level, coefficient, settings, known)
                left_out = without[coefficient][number] if coefficient in without else None
                yield replace(row, without_systems=left_out)


def _row(
    panel: Panel,
    number: int,
    metric: Metric,
    level: Level,
    coefficient: Coefficient,
    settings: Settings,
    replicates: Floats | None,
) -> MetricAgreement:
    correlation, of_both = panel_correlation(
        panel, number, level, coefficient, settings, drawn=replicates
    )
    if replicates is not None and not _is_resampled(panel, number, correlation):
        replicates = None
    if settings.resample != "items":
        replicates = of_both
    return MetricAgreement(
        question=panel.question,
        scope=panel.scope,
        condition=panel.condition,
        metric=metric.metric,
        signature=metric.signature,
        higher_is_better=metric.higher_is_better,
        is_primary=metric.is_primary,
        correlation=correlation,
        coverage=panel.coverages[number],
        replicates=replicates,
    )


def panel_correlation(
    panel: Panel,
    number: int,
    level: Level,
    coefficient: Coefficient,
    settings: Settings,
    *,
    drawn: Floats | None = None,
) -> tuple[Correlation, Floats | None]:
    """The correlation of a panel's metric of that number, and its value in each resample.

    `drawn` are its values in resamples that all metrics share, where there are any. Draws of
    systems are the same for every metric and every condition of the same systems.
    """
    part = panel.of_systems() if level == "system" else panel
    # An item and a system name one cell; where a system has several of an item, one must do.
    several = part.repeats_cells
    known = ~np.isnan(part.scores[number])
    cells = Cells(
        human=part.human[known],
        metric=part.scores[number][known],
        item=None if several and level == "system" else part.item[known],
        # candidates of no system count as one more
        system=None if several and level != "system" else part.system_by_name[known],
        n_groups=part.n_items,
        n_missing=int(np.count_nonzero(~known)),
        cluster=None if part.cluster is None else part.cluster[known],
        in_order=settings.resample != "items",
    )
    seed = panel.draws_seed(settings.seed)
    plan = Plan(
        coefficient=coefficient,
        undefined=settings.undefined,
        resample=settings.resample,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        rng=np.random.default_rng(seed),
        seed=seed,
        system_seed=settings.seed,
        drawn=drawn,
    )
    return correlation_and_replicates(cells, level, plan)


def _is_resampled(panel: Panel, number: int, correlation: Correlation) -> bool:
    if correlation.level == "item":
        return correlation.is_defined and correlation.n_used + correlation.n_zeroed > 1
    part = panel.of_systems() if correlation.level == "system" else panel
    scored = part.item[~np.isnan(part.scores[number])]
    return correlation.is_defined and bool((scored != scored[0]).any())


def _with_interval(
    correlation: Correlation, replicates: Floats, settings: Settings, seed: int | None
) -> Correlation:
    method = CI_METHODS[settings.resample]
    interval = percentile(replicates, settings.confidence, method, correlation.n_units)
    return replace(
        correlation,
        ci_low=interval.low,
        ci_high=interval.high,
        ci_method=interval.method,
        n_resamples=interval.n_resamples,
        n_resamples_undefined=interval.n_undefined,
        seed=seed,
        ci_reason=interval.reason,
    )


def means_of_conditions(
    rows: Sequence[MetricAgreement], settings: Settings
) -> Iterator[MetricAgreement]:
    """For each metric, the mean of the conditions' values, each of them counting the same.

    Resamples draw items anew within each condition, and systems once for all of them.
    """
    of_all: dict[tuple[Any, ...], MetricAgreement] = {}
    groups: dict[tuple[Any, ...], list[MetricAgreement]] = {}
    for row in rows:
        correlation = row.correlation
        key = (row.question, *row.source, correlation.level, correlation.coefficient)
        if row.scope == "all":
            of_all[key] = row
        elif row.scope == "condition":
            groups.setdefault(key, []).append(row)
    for key, group in groups.items():
        if key in of_all:  # else some condition has no such value either
            yield _mean_row(group, of_all[key], settings)


def _mean_row(
    group: list[MetricAgreement], of_all: MetricAgreement, settings: Settings
) -> MetricAgreement:
    values = [row.correlation.value for row in group]
    correlation = replace(
        group[0].correlation,
        **{n: sum(getattr(row.correlation, n) for row in group) for n in COUNTS},
        value=float(np.mean(values)),
        reason=next((r.correlation.reason for r in group if not r.correlation.is_defined), None),
        n_items=_sum(group, "n_items"),
        n_systems=of_all.correlation.n_systems,  # one may be in several conditions
        threshold=None,
        ci_low=nan,
        ci_high=nan,
        ci_method=CiMethod.NONE,
        n_resamples=0,
        n_resamples_undefined=0,
        seed=None,
        n_units=_sum(group, "n_units"),
        ci_reason=None,
    )
    drawn = [row.replicates for row in group if row.replicates is not None]
    replicates = np.mean(drawn, axis=0) if len(drawn) == len(group) else None
    left_out = [row.without_systems for row in group if row.without_systems is not None]
    alike = len(left_out) == len(group) and len({len(values) for values in left_out}) == 1
    n_systems = of_all.correlation.n_systems
    without = (
        np.mean(left_out, axis=0) if alike and len(left_out[0]) == n_systems else None
    )  # of other systems in each condition, none can be left out of the mean
    if replicates is not None and correlation.is_defined:
        correlation = _with_interval(correlation, replicates, settings, settings.seed)
    parts = zip(*(astuple(row.coverage) for row in group), strict=True)
    return replace(
        group[0],
        scope="mean_of_conditions",
        condition="",
        correlation=correlation,
        coverage=Coverage(*map(sum, parts)),
        replicates=replicates,
        without_systems=without,
    )


def _sum(group: list[MetricAgreement], name: str) -> int | None:
    counts = [getattr(row.correlation, name) for row in group]
    return None if None in counts else sum(counts)
