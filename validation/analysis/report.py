from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any

from error_codes import InvalidValue
from validation.analysis.ceilings import PanelCeiling, panel_ceilings, share_limits
from validation.analysis.comparisons import pair_tests
from validation.analysis.correlations import (
    MetricAgreement,
    means_of_conditions,
    panel_rows,
)
from validation.analysis.estimated_means import estimated_differences, estimated_means
from validation.analysis.material import Material
from validation.analysis.panels import Panel
from validation.analysis.rated_systems import rated_records
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    DisagreementRecord,
    EstimatedDifferenceRecord,
    EstimatedMeanRecord,
    Inputs,
    PlanRecord,
    RatedPairRecord,
    RatedSystemRecord,
    SensitivityRecord,
    SystemRecord,
    WorstRecord,
)
from validation.analysis.sample_size import sample_size_records
from validation.analysis.sensitivity import ranks, variations
from validation.analysis.settings import Settings
from validation.analysis.systems import disagreements, system_records, worst_candidates

if TYPE_CHECKING:
    import pandas as pd


Ceilings = dict[tuple[str, str, str, str, str], PanelCeiling]


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    settings: Settings
    fingerprint: str
    inputs: Inputs
    correlations: tuple[CorrelationRecord, ...]
    comparisons: tuple[ComparisonRecord, ...]
    ceilings: tuple[CeilingRecord, ...]
    sensitivity: tuple[SensitivityRecord, ...]
    systems: tuple[SystemRecord, ...]
    disagreements: tuple[DisagreementRecord, ...]
    worst: tuple[WorstRecord, ...]
    planning: tuple[PlanRecord, ...]
    rated_systems: tuple[RatedSystemRecord, ...] = ()
    rated_pairs: tuple[RatedPairRecord, ...] = ()
    estimated_means: tuple[EstimatedMeanRecord, ...] = ()
    estimated_differences: tuple[EstimatedDifferenceRecord, ...] = ()


def report_from_tables(
    human: pd.DataFrame, scores: pd.DataFrame, settings: Settings | None = None
) -> ValidationReport:
    """Report of plain tables (see `Material`). Raises InvalidValue if `primary` names a metric
    without scores."""
    settings, material = settings or Settings(), Material(human, scores)
    known = sorted(set(material.scores["metric"]))
    if unknown := [name for name in settings.primary if name not in known]:
        raise InvalidValue(
            f"primary names {', '.join(unknown)}, without scores; there are: {', '.join(known)}",
            code="primary_unknown",
        )
    return report_of(material, settings)


def report_of(material: Material, settings: Settings) -> ValidationReport:
    panels = list(material.panels(settings, scopes=("all", "condition")))
    rows = [row for panel in panels for row in panel_rows(panel, settings)]
    ceilings = [
        ceiling
        for panel in panels
        for ceiling in panel_ceilings(panel, material.ratings(panel.question, settings), settings)
    ]
    rows += list(means_of_conditions(rows, settings))
    groups = _grouped(rows, panels, settings)
    rated = [
        rated_records(
            panel.question,
            material.ratings(panel.question, settings),
            "ordinal" if panel.question in material.ordinal else "interval",
        )
        for panel in panels
        if panel.scope == "all"
    ]
    return ValidationReport(
        settings=settings,
        fingerprint=material.fingerprint,
        inputs=material.inputs(settings),
        correlations=tuple(_correlations(groups, ceilings, panels, material.fingerprint)),
        comparisons=tuple(pair for group in groups for pair in group.tests),
        ceilings=tuple(record for record, _found in ceilings),
        sensitivity=tuple(variations(material, [row for row in rows if row.is_primary], settings)),
        systems=tuple(record for panel in panels for record in system_records(panel, settings)),
        disagreements=tuple(record for panel in panels for record in disagreements(panel)),
        worst=tuple(
            record
            for panel in panels
            if panel.scope == "all"
            for record in worst_candidates(panel, settings)
        ),
        planning=tuple(sample_size_records(material, settings)),
        rated_systems=tuple(one for systems, _ in rated for one in systems),
        rated_pairs=tuple(one for _, pairs in rated for one in pairs),
        estimated_means=tuple(estimated_means(material, settings)),
        estimated_differences=tuple(estimated_differences(material, settings)),
    )


@dataclass(frozen=True)
class _Group:
    rows: Sequence[MetricAgreement]
    tests: Sequence[ComparisonRecord]
    clusters: dict[tuple[str, str], int | None]

    def ranks(self) -> dict[tuple[str, str], float]:
        family = [row for row in self.rows if row.is_primary]
        values = ranks([row.correlation.value for row in family])
        return {row.source: float(rank) for row, rank in zip(family, values, strict=True)}


def _grouped(
    rows: Sequence[MetricAgreement], panels: Sequence[Panel], settings: Settings
) -> list[_Group]:
    panel_by_key: dict[tuple[str, str, str], Panel] = {
        (panel.question, panel.scope, panel.condition): panel for panel in panels
    }
    groups: dict[tuple[Any, ...], list[MetricAgreement]] = {}
    for row in rows:
        measure = row.correlation.level, row.correlation.coefficient
        groups.setdefault((*row.key, *measure), []).append(row)
    return [_tested(group, panel_by_key.get(group[0].key), settings) for group in groups.values()]


def _tested(rows: Sequence[MetricAgreement], panel: Panel | None, settings: Settings) -> _Group:
    family = [row for row in rows if row.is_primary]
    tests, clusters = pair_tests(family, panel.of_primary() if panel else None, settings)
    named = {row.source: cluster for row, cluster in zip(family, clusters, strict=True)}
    return _Group(rows, tests, named)


def _correlations(
    groups: Sequence[_Group],
    ceilings: Sequence[PanelCeiling],
    panels: Sequence[Panel],
    fingerprint: str,
) -> Iterator[CorrelationRecord]:
    by_measure: Ceilings = {
        (c.question, c.scope, c.by, c.level, c.coefficient): (c, found) for c, found in ceilings
    }
    panel_by_key: dict[tuple[str, str, str], Panel] = {
        (one.question, one.scope, one.condition): one for one in panels
    }
    for group in groups:
        ranked = group.ranks()
        for row in group.rows:
            yield row.record(
                **_beside(row, by_measure, panel_by_key.get(row.key)),
                rank=ranked.get(row.source, nan),
                cluster=group.clusters.get(row.source),
                input=fingerprint,
            )


def _beside(
    row: MetricAgreement, ceilings: Ceilings, panel: Panel | None
) -> dict[str, float | None]:
    estimate = row.correlation
    record, ceiling = ceilings.get((*row.key, estimate.level, estimate.coefficient), (None, None))
    if ceiling is None or isnan(ceiling.attainable):
        loo = None if record is None else record.leave_one_out
        none = dict.fromkeys(("attainable", "share_of_ceiling", "share_low", "share_high"))
        return {**none, "leave_one_out": loo}
    low, high = nan, nan
    if panel is not None:
        sources = [(metric.metric, metric.signature) for metric in panel.metrics]
        number = sources.index(row.source)
        low, high = share_limits(panel, number, estimate.value, ceiling, estimate.confidence)
    return {
        "attainable": ceiling.attainable,
        "share_of_ceiling": ceiling.share(estimate.value),
        "share_low": low,
        "share_high": high,
        "leave_one_out": ceiling.leave_one_out,
    }
