"""Where a study's judge is expected to err, item by item, learned from the items rated so far."""

from __future__ import annotations

import numpy as np
import pandas as pd
from django.db.models import Avg
from django.utils.translation import gettext as _

from annotation.models import Judgment, Question
from metrics.exceptions import NothingToLearn
from metrics.models import Score, ScoringRun
from stats.inference.active_labels import LEAST_OF_A_PILOT, expected_errors


def expected_item_errors(run: ScoringRun, question: Question) -> dict[int, float]:
    """How far a run's scores are expected to be from people, by the primary key of the item.

    Of an item with several candidates, the root mean square. What says where the scores err is
    the score and how far the study's metrics differ over the candidate or, where there is but
    one, how far its score is from the middle. NothingToLearn before enough items are rated.
    """
    scores = _scores(run)
    rated = _ratings(question).reindex(scores.index)
    n_rated = int(scores.loc[rated.notna(), "item"].nunique())
    if n_rated < LEAST_OF_A_PILOT:
        text = _(
            "Where the judge is least sure is learned from rated items: %(least)s of them must be "
            "scored and rated first, and %(n)s are."
        )
        raise NothingToLearn(text % {"least": LEAST_OF_A_PILOT, "n": n_rated})
    errors = expected_errors(rated, scores["value"], scores["spread"]).error
    items, position = np.unique(scores["item"].to_numpy(dtype=np.int64), return_inverse=True)
    squares = np.bincount(position, np.square(errors)) / np.bincount(position)
    return dict(zip(items.tolist(), np.sqrt(squares).tolist(), strict=True))


def _ratings(question: Question) -> pd.Series:
    """The mean rating of each candidate that has one."""
    judgments = Judgment.objects.accepted().filter(question=question, candidate__isnull=False)
    means = judgments.order_by().values("candidate").annotate(mean=Avg("value"))
    return pd.Series(
        dict(means.exclude(mean=None).values_list("candidate", "mean")), dtype="float64"
    )


def _scores(run: ScoringRun) -> pd.DataFrame:
    """The run's scores by candidate, each with its item and how sure the metrics are of it."""
    runs = ScoringRun.objects.filter(study=run.study_id, is_primary=True)
    names = ["run", "candidate", "item", "value", "is_up"]
    rows = Score.objects.filter(run__in={*runs.values_list("pk", flat=True), run.pk})
    values = rows.exclude(value=None).values_list(
        "run", "candidate", "candidate__item", "value", "run__higher_is_better"
    )
    frame = pd.DataFrame.from_records(list(values), columns=names)
    by_run = frame.groupby("run")["value"]
    deviation = (frame["value"] - by_run.transform("mean")) / by_run.transform("std")
    frame["deviation"] = np.where(frame["is_up"], deviation, -deviation)
    frame = frame[np.isfinite(frame["deviation"]) | (frame["run"] == run.pk)]
    own: pd.DataFrame = frame[frame["run"] == run.pk].set_index("candidate")
    spread = frame.groupby("candidate")["deviation"].std().reindex(own.index)
    alone = own["deviation"].abs()
    spread = spread.fillna(alone.mean() if spread.notna().any() else alone).fillna(0.0)
    table: pd.DataFrame = own[["item", "value"]].assign(spread=spread)
    return table
