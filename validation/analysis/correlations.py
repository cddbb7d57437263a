"""The table of a report: each metric against each question, with intervals and coverage."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from math import nan
from typing import Any

import numpy as np

from presentation.records import plain_values
from stats.arguments import Floats
from stats.correlation import CiMethod, Coefficient, Correlation, Level
from stats.correlation.cells import Cells
from stats.correlation.estimates import CI_METHODS, Plan
from stats.correlation.intervals import percentile
from stats.correlation.levels import correlation_of_cells
from validation.analysis.panels import Coverage, Metric, Panel, Scope
from validation.analysis.records import CorrelationRecord
from validation.analysis.replicates import item_replicates
from validation.analysis.settings import Settings

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
    of that question, condition and level.
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

    @property
    def key(self) -> tuple[str, str, str]:
        return self.question, self.scope, self.condition

    @property
    def source(self) -> tuple[str, str]:
        return self.metric, self.signature

    def record(self, **beside: Any) -> CorrelationRecord:
        """As stored and shown; `beside` are its rank, its cluster and what the ceiling says."""
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
        values = asdict(estimate) | texts | {"n_undefined": estimate.n_undefined}
        return CorrelationRecord(**named, **plain_values(values | asdict(self.coverage) | beside))


def panel_rows(panel: Panel, settings: Settings) -> Iterator[MetricAgreement]:
    """Every metric at every level, by every coefficient."""
    for level in settings.levels:
        drawn = item_replicates(panel, level, settings)
        for coefficient in settings.coefficients:
            # soft pairwise accuracy is of systems with one candidate an item
            if coefficient == "spa" and (level != "system" or panel.of_systems().repeats_cells):
                continue
            for number, metric in enumerate(panel.metrics):
                known = drawn[coefficient][number] if coefficient in drawn else None
                yield _row(panel, number, metric, level, coefficient, settings, known)


def _row(
    panel: Panel,
    number: int,
    metric: Metric,
    level: Level,
    coefficient: Coefficient,
    settings: Settings,
    replicates: Floats | None,
) -> MetricAgreement:
    joint = replicates is not None and settings.resample == "items"
    correlation = panel_correlation(
        panel, number, level, coefficient, settings, n_resamples=0 if joint else None
    )
    if replicates is not None and not _is_resampled(panel, number, correlation):
        replicates = None
    if joint and replicates is not None:
        correlation = _with_interval(
            correlation, replicates, settings, settings.seed + panel.number
        )
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
    n_resamples: int | None = None,
) -> Correlation:
    """The correlation of a panel's metric of that number."""
    part = panel.of_systems() if level == "system" else panel
    # An item and a system name one cell; where a system has several of an item, one must do.
    several = part.repeats_cells
    known = ~np.isnan(part.scores[number])
    cells = Cells(
        human=part.human[known],
        metric=part.scores[number][known],
        item=None if several and level == "system" else part.item[known],
        # candidates of no system count as one more
        system=None if several and level != "system" else part.system[known] + 1,
        n_groups=part.n_items,
        n_missing=int(np.count_nonzero(~known)),
    )
    seed = settings.seed + panel.number
    plan = Plan(
        coefficient=coefficient,
        undefined=settings.undefined,
        resample=settings.resample,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples if n_resamples is None else n_resamples,
        rng=np.random.default_rng(seed),
        seed=seed,
    )
    return correlation_of_cells(cells, level, plan)


def _is_resampled(panel: Panel, number: int, correlation: Correlation) -> bool:
    """Whether there is something to resample: neither interval nor test is made of one item."""
    if correlation.level == "item":
        return correlation.is_defined and correlation.n_used + correlation.n_zeroed > 1
    part = panel.of_systems() if correlation.level == "system" else panel
    scored = part.item[~np.isnan(part.scores[number])]
    return correlation.is_defined and bool((scored != scored[0]).any())


def _with_interval(
    correlation: Correlation, replicates: Floats, settings: Settings, seed: int | None
) -> Correlation:
    interval = percentile(replicates, settings.confidence, CI_METHODS["items"])
    return replace(
        correlation,
        ci_low=interval.low,
        ci_high=interval.high,
        ci_method=interval.method,
        n_resamples=interval.n_resamples,
        n_resamples_undefined=interval.n_undefined,
        seed=seed,
    )


def means_of_conditions(
    rows: Sequence[MetricAgreement], settings: Settings
) -> Iterator[MetricAgreement]:
    """For each metric, the mean of the conditions' values, each of them counting the same.

    Resamples draw items anew within each condition.
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
    first = group[0].correlation
    values = [row.correlation.value for row in group]
    counts = {n: sum(getattr(row.correlation, n) for row in group) for n in COUNTS}
    undefined = next((r.correlation.reason for r in group if not r.correlation.is_defined), None)
    correlation = replace(
        first,
        **counts,
        value=float(np.mean(values)),
        reason=undefined,
        n_items=_sum(group, "n_items"),
        n_systems=of_all.correlation.n_systems,  # one may be in several conditions
        threshold=None,
        ci_low=nan,
        ci_high=nan,
        ci_method=CiMethod.NONE,
        n_resamples=0,
        n_resamples_undefined=0,
        seed=None,
    )
    drawn = [row.replicates for row in group if row.replicates is not None]
    replicates = np.mean(drawn, axis=0) if len(drawn) == len(group) else None
    if replicates is not None and correlation.is_defined and settings.resample == "items":
        correlation = _with_interval(correlation, replicates, settings, settings.seed)
    parts = zip(*(astuple(row.coverage) for row in group), strict=True)
    return replace(
        group[0],
        scope="mean_of_conditions",
        condition="",
        correlation=correlation,
        coverage=Coverage(*map(sum, parts)),
        replicates=replicates,
    )


def _sum(group: list[MetricAgreement], name: str) -> int | None:
    counts = [getattr(row.correlation, name) for row in group]
    return None if None in counts else sum(counts)
