"""Each system's mean rating over all scored items, where people rated a sample of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from presentation.records import plain_values
from stats.inference.looks import confidence_at_look
from stats.inference.powered_result import PredictionPowered
from stats.inference.sampled_batches import sampled_mean
from validation.analysis.material import Design, Material
from validation.analysis.panels import Metric
from validation.analysis.records import EstimatedMeanRecord
from validation.analysis.settings import Settings

PLANNED_LOOKS = 5
"""A look a batch: the intervals after each of so many hold together at the level asked for."""


def estimated_means(material: Material, settings: Settings) -> Iterator[EstimatedMeanRecord]:
    """By question, metric of the family and system; none where all scored items are rated."""
    design = material.design
    if design is None:
        return
    for question in material.judgments["question"].unique():
        human = material.human_values(str(question), settings)
        for metric in material.metrics:
            if not settings.is_primary(metric.metric, metric.is_primary):
                continue
            if not settings.is_for(metric.metric, str(question)):
                continue
            rows = sampled_rows(material, design, human, metric)
            for system, part in rows.groupby("system", sort=False):
                if 0 < part["human"].notna().sum() < len(part):
                    yield _record(str(question), metric, str(system), part, settings)


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
    drawn = rows[rows["human"].notna() & rows["probability"].notna()]
    look = int(drawn["batch"].nunique())
    level = confidence_at_look(
        min(max(look, 1), PLANNED_LOOKS), PLANNED_LOOKS, confidence=settings.confidence
    )
    result = sampled_mean(
        rows["human"],
        rows["judge"] if metric.higher_is_better else -rows["judge"],
        rows["batch"],
        rows["probability"],
        clusters=rows.get("cluster"),
        confidence=level,
    )
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
