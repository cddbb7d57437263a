from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan

from error_codes import InvalidValue
from presentation.numbers import group_values, plain_values
from stats.libraries import pd
from validation.analysis.ceilings import (
    PanelCeiling,
    panel_ceilings,
    sample_size_records,
    share_limits,
)
from validation.analysis.comparisons import pair_tests
from validation.analysis.correlations import (
    MetricAgreement,
    means_of_conditions,
    panel_rows,
)
from validation.analysis.material import Material
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
from validation.analysis.settings import POLICIES, UNPARSED, Panel, Settings
from validation.analysis.systems import (
    disagreements,
    estimated_differences,
    estimated_means,
    ranks,
    system_records,
    worst_candidates,
)

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
    groups = list(_tested_groups(rows, panels, settings))
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
        correlations=tuple(_correlations(groups, ceilings, material.fingerprint)),
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
    panel: Panel | None
    tests: Sequence[ComparisonRecord]
    clusters: dict[tuple[str, str], int | None]

    def ranks(self) -> dict[tuple[str, str], float]:
        family = [row for row in self.rows if row.is_primary]
        values = ranks([row.correlation.value for row in family])
        return {row.source: float(rank) for row, rank in zip(family, values, strict=True)}


def _tested_groups(
    rows: Sequence[MetricAgreement], panels: Sequence[Panel], settings: Settings
) -> Iterator[_Group]:
    panel_by_key: dict[tuple[str, str, str], Panel] = {
        (panel.question, panel.scope, panel.condition): panel for panel in panels
    }
    for group in group_values((row.measure, row) for row in rows).values():
        panel = panel_by_key.get(group[0].key)
        family = [row for row in group if row.is_primary]
        tests, clusters = pair_tests(family, panel.of_primary() if panel else None, settings)
        sources = (row.source for row in family)
        yield _Group(group, panel, tests, dict(zip(sources, clusters, strict=True)))


def _correlations(
    groups: Sequence[_Group], ceilings: Sequence[PanelCeiling], fingerprint: str
) -> Iterator[CorrelationRecord]:
    by_measure: Ceilings = {
        (c.question, c.scope, c.by, c.level, c.coefficient): (c, found) for c, found in ceilings
    }
    for group in groups:
        ranked = group.ranks()
        for row in group.rows:
            yield row.record(
                **_beside(row, by_measure, group.panel),
                rank=ranked.get(row.source, nan),
                cluster=group.clusters.get(row.source),
                input=fingerprint,
            )


def _beside(
    row: MetricAgreement, ceilings: Ceilings, panel: Panel | None
) -> dict[str, float | None]:
    estimate = row.correlation
    record, ceiling = ceilings.get(row.measure, (None, None))
    if ceiling is None or isnan(ceiling.attainable):
        none = dict.fromkeys(("attainable", "share_of_ceiling", "share_low", "share_high"))
        return {**none, "leave_one_out": None if record is None else record.leave_one_out}
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


# Policies that decide how judgments become human values; labels are made already.
OF_JUDGMENTS = ("ratings", "judgments", "aggregation")
Key = tuple[str, str, str, str, str, str, str]


def variations(
    material: Material, base: Sequence[MetricAgreement], settings: Settings
) -> Iterator[SensitivityRecord]:
    """Every policy's other choices, where there is anything for them to act upon.

    Ranks are 1 for the best, ties shared. `n_used` groups were defined, of which the value is made
    with `n_zeroed` counted as 0.

    `base` are the correlations of the family; variants have no rank to move.
    """
    for setting, choices in POLICIES.items():
        for choice in choices:
            if choice == getattr(settings, setting) or not _acts(material, setting, settings):
                continue
            rows = _values(material, settings.varied(setting, choice))
            if setting in OF_JUDGMENTS:
                rows = [row for row in rows if row.question not in material.labelled]
            yield from _compared(base, rows, setting, choice, settings)


def _acts(material: Material, setting: str, settings: Settings) -> bool:
    if setting == "unparsed":
        return bool((material.states == UNPARSED).any())
    judged = material.judgments
    if setting == "judgments":
        return not judged.loc[judged["round"] == settings.round, "accepted"].all()
    if setting == "aggregation":
        return bool(material.chosen(settings).duplicated(["candidate_code", "question"]).any())
    return True


def _values(material: Material, settings: Settings) -> list[MetricAgreement]:
    quick = settings.varied("n_resamples", 0)  # type: ignore[arg-type]
    panels: Iterator[Panel] = material.panels(quick, scopes=("all", "condition"))
    rows = [row for panel in panels for row in panel_rows(panel.of_primary(), quick)]
    return rows + list(means_of_conditions(rows, quick))


def _by_key(rows: Sequence[MetricAgreement]) -> dict[Key, tuple[MetricAgreement, float]]:
    return {
        (*measure, *row.source): (row, float(rank))
        for measure, group in group_values((row.measure, row) for row in rows).items()
        for row, rank in zip(group, ranks([r.correlation.value for r in group]), strict=True)
    }


def _compared(
    base: Sequence[MetricAgreement],
    rows: Sequence[MetricAgreement],
    setting: str,
    choice: str,
    settings: Settings,
) -> Iterator[SensitivityRecord]:
    before = _by_key(base)
    for key, (row, rank) in _by_key(rows).items():
        if key not in before:
            continue
        was, base_rank = before[key]
        correlation = row.correlation
        values = {
            "question": row.question,
            "scope": row.scope,
            "by": row.condition,
            "level": correlation.level,
            "coefficient": correlation.coefficient,
            "metric": row.metric,
            "signature": row.signature,
            "setting": setting,
            "choice": choice,
            "value": correlation.value,
            "rank": rank,
            "base_choice": str(getattr(settings, setting)),
            "base_value": was.correlation.value,
            "base_rank": base_rank,
            "n_used": correlation.n_used,
            "n_zeroed": correlation.n_zeroed,
            "reason": None if correlation.reason is None else str(correlation.reason),
            "delta": correlation.value - was.correlation.value,
        }
        plain = plain_values(values)
        yield SensitivityRecord(**plain, moves_rank=plain["rank"] != plain["base_rank"])
