"""Ratings beside scores, with how each item was sampled: what `prediction_powered` reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotation.models import Study
from annotation.simulated_answers import has_simulated
from metrics.exceptions import NothingToValidate
from presentation.row_files import Kind, RowFile
from validation.analysis.estimated_means import sampled_rows
from validation.analysis.settings import Settings
from validation.study_validation import study_material

COLUMNS: dict[str, Kind] = {
    "question": "text",
    "metric": "text",
    "signature": "text",
    "system": "text",
    "item": "text",
    "human": "number",
    "judge": "number",
    "batch": "integer",
    "probability": "number",
}


def sampled_item_rows(study: Study) -> RowFile:
    """A row a scored item, system, metric and question; empty where nothing was launched."""
    is_simulated = has_simulated(study)
    rows = ((*row, is_simulated) for row in _rows(study))
    return RowFile({**COLUMNS, "simulated": "boolean"}, rows)


def _rows(study: Study) -> Iterator[tuple[Any, ...]]:
    import pandas as pd

    settings = Settings()
    try:
        material = study_material(study, settings)
    except NothingToValidate:
        return
    if material.design is None:
        return
    for question in material.judgments["question"].unique():
        human = material.human_values(str(question), settings)
        for metric in material.metrics:
            rows = sampled_rows(material, material.design, human, metric)
            values = rows[list(COLUMNS)[3:]].astype(object)
            for row in values.where(pd.notna(values), None).itertuples(index=False):
                *names, batch, probability = row
                number = None if batch is None else int(batch)
                yield str(question), metric.metric, metric.signature, *names, number, probability
