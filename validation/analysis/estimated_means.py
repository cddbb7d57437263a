"""Each system's mean rating over all scored items, if people rated only a sample of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from presentation.records import plain_values
from stats.inference.looks import confidence_at_look, p_of_look
from stats.inference.powered_means import PredictionPowered
from stats.inference.sampled_batches import sampled_mean
from stats.significance import holm
from validation.analysis.material import Design, Material
from validation.analysis.panels import Metric
from validation.analysis.rated_systems import MOST_SYSTEMS, untested_pairs
from validation.analysis.records import EstimatedDifferenceRecord, EstimatedMeanRecord
from validation.analysis.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


# One look per batch: the intervals of this many looks hold together at the level asked for.
PLANNED_LOOKS = 5


def estimated_means(material: Material, settings: Settings) -> Iterator[EstimatedMeanRecord]:
    for question, metric, rows in _sampled(material, settings):
        for system, part in rows.groupby("system", sort=False):
            if _is_sample(part):
                yield _record(question, metric, str(system), part, settings)


def estimated_differences(
    material: Material, settings: Settings
) -> Iterator[EstimatedDifferenceRecord]:
    for question, metric, rows in _sampled(material, settings):
        pairs = [
            _difference(question, metric, (a, b), pair, settings)
            for a, b, pair in paired_systems(rows)
            if _is_sample(pair)
        ]
        if not pairs:
            continue
        n_untested = untested_pairs(rows["system"].nunique(), len(pairs))
        adjusted = holm(
            [nan if pair.p is None else pair.p for pair in pairs], n_untested=n_untested
        )
        for pair, p in zip(pairs, adjusted, strict=True):
            yield replace(pair, p_adjusted=None if isnan(p) else float(p))


def _sampled(material: Material, settings: Settings) -> Iterator[tuple[str, Metric, pd.DataFrame]]:
    design = material.design
    if design is None:
        return
    for question in material.judgments["question"].unique():
        human = material.human_values(str(question), settings)
        for metric in material.metrics:
            is_primary = settings.is_primary(metric.metric, metric.is_primary)
            if is_primary and settings.is_for(metric.metric, str(question)):
                yield str(question), metric, sampled_rows(material, design, human, metric)


def _is_sample(rows: pd.DataFrame) -> bool:
    return 0 < int(rows["human"].notna().sum()) < len(rows)


def paired_systems(cells: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Differences of every two systems on their common items; with more than thirty systems, of the
    best-scored one and each other."""
    import pandas as pd

    by_system = {str(name): part.set_index("item") for name, part in cells.groupby("system")}
    pairs = list(combinations(by_system, 2))
    if len(by_system) > MOST_SYSTEMS:
        best = max(by_system, key=lambda name: by_system[name]["judge"].mean())
        pairs = [pair for pair in pairs if best in pair]
    for a, b in pairs:
        both = by_system[a].merge(
            by_system[b], left_index=True, right_index=True, suffixes=("_a", "_b")
        )
        if both.empty:
            continue
        shared = [name for name in ("cluster", "batch", "probability") if f"{name}_a" in both]
        yield (
            a,
            b,
            pd.DataFrame(
                {name: both[f"{name}_a"] - both[f"{name}_b"] for name in ("human", "judge")}
                | {name: both[f"{name}_a"] for name in shared}
            ).reset_index(drop=True),
        )


def p_of_no_difference(one: PredictionPowered) -> float:
    from scipy import stats

    if isnan(one.se):
        return nan
    return float(2 * stats.t.sf(abs(one.value) / one.se, one.freedom))


def sampled_rows(
    material: Material, design: Design, human: pd.DataFrame, metric: Metric
) -> pd.DataFrame:
    """A row a scored item and system, as `prediction_powered` takes them from a file: the mean
    human value, empty where there is none, the mean score, the batch and the probability."""
    scores = material.scores
    own = (scores["metric"] == metric.metric) & (scores["signature"] == metric.signature)
    known = scores[own & scores["value"].notna()][["item", "candidate", "value"]]
    names = ["item", "candidate"]
    rows = design.candidates.astype(str).merge(known, on=names).merge(human, on=names, how="left")
    clusters = {"cluster": ("cluster", "first")} if "cluster" in rows else {}
    cells = rows.groupby(["system", "item"], sort=False, as_index=False).agg(
        human=("human", "mean"), judge=("value", "mean"), **clusters
    )
    return cells.merge(design.batches, on="item", how="left")


def _record(
    question: str, metric: Metric, system: str, rows: pd.DataFrame, settings: Settings
) -> EstimatedMeanRecord:
    look, level = _look(rows, settings)
    result = _estimate(metric, rows, level)
    return EstimatedMeanRecord(
        question=question,
        metric=metric.metric,
        signature=metric.signature,
        system=system,
        confidence=level,
        look=look,
        n_labelled=int(result.n_labelled),
        n=int(result.n),
        reason=str(result.reason or ""),
        **_numbers(result),
    )


def _difference(
    question: str,
    metric: Metric,
    systems: tuple[str, str],
    pair: pd.DataFrame,
    settings: Settings,
) -> EstimatedDifferenceRecord:
    look, level = _look(pair, settings)
    result = _estimate(metric, pair, level)
    p = p_of_look(p_of_no_difference(result), level, confidence=settings.confidence)
    values = {"value": result.value, "ci_low": result.ci_low, "ci_high": result.ci_high, "p": p}
    return EstimatedDifferenceRecord(
        question=question,
        metric=metric.metric,
        signature=metric.signature,
        a=systems[0],
        b=systems[1],
        p_adjusted=None,
        confidence=level,
        look=look,
        n_labelled=int(result.n_labelled),
        n=int(result.n),
        reason=str(result.reason or ""),
        **dict(plain_values(values)),
    )


def _look(rows: pd.DataFrame, settings: Settings) -> tuple[int, float]:
    """Number of drawn batches with ratings, and the confidence level after that many."""
    drawn = rows[rows["human"].notna() & rows["probability"].notna()]
    look = int(drawn["batch"].nunique())
    level = confidence_at_look(
        min(max(look, 1), PLANNED_LOOKS), PLANNED_LOOKS, confidence=settings.confidence
    )
    return look, level


def _estimate(metric: Metric, rows: pd.DataFrame, level: float) -> PredictionPowered:
    return sampled_mean(
        rows["human"],
        rows["judge"] if metric.higher_is_better else -rows["judge"],
        rows["batch"],
        rows["probability"],
        clusters=rows.get("cluster"),
        confidence=level,
    )


def _numbers(result: PredictionPowered) -> dict[str, float | None]:
    people = result.people_only
    values = {
        "value": result.value,
        "ci_low": result.ci_low,
        "ci_high": result.ci_high,
        "weight": result.power,
        "effective_n": result.effective_n if np.isfinite(result.effective_n) else np.nan,
        "people": people.value,
        "people_low": people.ci_low,
        "people_high": people.ci_high,
    }
    return dict(plain_values(values))
