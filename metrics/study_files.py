"""A study's scores as a long frame and as files, a row per candidate and metric."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from django.db.models import Exists
from django.utils.translation import gettext_lazy as _

from annotation.exports import CANDIDATE_ORDER, item_stretches
from annotation.models import Study
from annotation.study_files import Offer, RowDownload, register_table
from metrics.models import Score, ScoringRun
from presentation.row_files import Kind, RowFile
from stats.libraries import pd

COLUMNS = {
    "item": "candidate__item__key",
    "candidate": "candidate__key",
    "metric": "run__metric",
    "signature": "run__signature",
    "value": "value",
    "reason": "reason",
}


def score_frame(study: Study) -> pd.DataFrame:
    """Every score of a study; an undefined one is NaN beside its reason."""
    rows = Score.objects.filter(run__study=study).order_by(
        "run_id", "candidate__item__position", "candidate__position", "candidate_id"
    )
    values = rows.values_list(*COLUMNS.values()).iterator(chunk_size=10_000)
    frame = pd.DataFrame.from_records(list(values), columns=list(COLUMNS))
    return frame.assign(value=frame["value"].astype("float64"))


def score_rows(study: Study) -> RowFile:
    kinds: dict[str, Kind] = {**dict.fromkeys(COLUMNS, "text"), "value": "number"}
    return RowFile(kinds, chain.from_iterable(_scores(study)))


def _scores(study: Study) -> Iterator[list[tuple[Any, ...]]]:
    for run in ScoringRun.objects.of(study).order_by("pk"):
        for items in item_stretches(study):
            scores = Score.objects.filter(run=run, candidate__item__in=items)
            ordered = scores.order_by(*CANDIDATE_ORDER, "candidate")
            yield list(ordered.values_list(*COLUMNS.values()))


register_table(
    "scores",
    RowDownload(_("every score with its signature"), score_rows),
    Offer(90, lambda study: Exists(ScoringRun.objects.of(study).order_by())),
)
