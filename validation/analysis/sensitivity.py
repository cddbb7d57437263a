from collections.abc import Iterator, Sequence
from math import nan

import numpy as np

from presentation.records import plain_values
from stats.arguments import Floats
from validation.analysis.correlations import (
    MetricAgreement,
    means_of_conditions,
    panel_rows,
)
from validation.analysis.material import Material
from validation.analysis.panels import UNPARSED, Panel
from validation.analysis.records import SensitivityRecord
from validation.analysis.settings import POLICIES, Settings

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


def ranks(values: Sequence[float]) -> Floats:
    """Mean ranks, 1 for the greatest; NaN for NaN."""
    from scipy.stats import rankdata

    numbers = np.asarray(values, dtype=np.float64)
    ranking = np.full(len(numbers), nan)
    known = ~np.isnan(numbers)
    ranking[known] = rankdata(-numbers[known])
    return ranking


def _by_key(rows: Sequence[MetricAgreement]) -> dict[Key, tuple[MetricAgreement, float]]:
    groups: dict[tuple[str, ...], list[MetricAgreement]] = {}
    for row in rows:
        correlation = row.correlation
        groups.setdefault((*row.key, correlation.level, correlation.coefficient), []).append(row)
    return {
        (*key, *row.source): (row, float(rank))  # type: ignore[misc]
        for key, group in groups.items()
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
