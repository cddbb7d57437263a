import json
from collections.abc import Iterator
from typing import Any

from django.db.models import BooleanField, Exists, ExpressionWrapper
from django.utils.translation import gettext_lazy as _

from annotation.models import ItemSample, Study
from annotation.study_facts import VALIDATION, has_simulated
from annotation.study_files import (
    JSON,
    Download,
    Offer,
    RowDownload,
    register_file,
    register_table,
)
from metrics.exceptions import NothingToValidate
from metrics.models import ScoringRun
from presentation.row_files import Kind, RowFile
from stats.libraries import pd
from validation.analysis.records import plain
from validation.analysis.settings import Settings
from validation.analysis.systems import sampled_rows
from validation.result_kinds.validation import ValidationKind
from validation.results import correlations_of
from validation.study_validation import study_material
from validation.versions import StoredResults


def validation_json(study: Study) -> Iterator[str]:
    """Nothing while scores are missing."""
    version = ValidationKind().require(study)
    source = {"study": study.slug, "input": version.fingerprint, "simulated": has_simulated(study)}
    if "reason" in version.facts:
        empty = {"report": None, "reason": version.facts["reason"]} | source
        yield json.dumps(empty | {"rows": []}, indent=1)
        return
    results = StoredResults(version, with_variants=True)
    names = ("aggregation", "round", "n_resamples", "seed")
    rules = {name: version.settings[name] for name in names}
    rows = [plain(row) for row in correlations_of(results)]
    yield json.dumps({"report": version.number} | source | rules | {"rows": rows}, indent=1)


def _has_scores(study: Study) -> Exists:
    return Exists(ScoringRun.objects.of(study).order_by())


def _has_scores_and_sample(study: Study) -> Any:
    both = _has_scores(study) & Exists(ItemSample.objects.of(study).order_by())
    return ExpressionWrapper(both, output_field=BooleanField())


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
    """Per scored item, system, metric and question; empty if nothing was launched."""
    is_simulated = has_simulated(study)
    rows = ((*row, is_simulated) for row in _rows(study))
    return RowFile({**COLUMNS, "simulated": "boolean"}, rows)


def _rows(study: Study) -> Iterator[tuple[Any, ...]]:
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


register_table(
    "sampled",
    RowDownload(
        _("ratings beside scores, with the batch and the probability of each item"),
        sampled_item_rows,
    ),
    Offer(100, _has_scores_and_sample, is_of_judgments=True),
)
register_file(
    "validation.json",
    Download(
        JSON,
        _("every correlation, at every level and in every condition"),
        validation_json,
        VALIDATION,
    ),
    Offer(170, _has_scores, is_of_judgments=True),
)
