"""A study's scores as one long frame, a row per candidate and metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from annotation.models import Study
from metrics.models import Score

if TYPE_CHECKING:
    import pandas as pd


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
    import pandas as pd

    rows = Score.objects.filter(run__study=study).order_by(
        "run_id", "candidate__item__position", "candidate__position", "candidate_id"
    )
    values = rows.values_list(*COLUMNS.values()).iterator(chunk_size=10_000)
    frame = pd.DataFrame.from_records(list(values), columns=list(COLUMNS))
    return frame.assign(value=frame["value"].astype("float64"))
