"""Where a study's judge is expected to err, item by item, learned from the items rated so far."""

from __future__ import annotations

from django.db.models import Avg

from annotation.models import Judgment, Study
from metrics.models import Score, ScoringRun
from stats.inference.active_labels import LEAST_OF_A_PILOT, expected_errors
from stats.libraries import np, pd

# Other metrics that say how sure they are of a candidate; more would hold the launch up.
MOST_OTHERS = 4


def expected_item_errors(run: int, question: int) -> dict[int, float]:
    """How far a run's scores are expected to be from people, by the primary key of the item.

    Of an item with several candidates, the root mean square. What says where the scores err is
    the score and how far the study's metrics differ over the candidate or, where there is but
    one, how far its score is from the middle. `enough_are_rated` says whether it can be learned.
    """
    scores = _scores(run)
    rated = _ratings(question).reindex(scores.index)
    errors = expected_errors(rated, scores["value"], scores["spread"]).error
    items, position = np.unique(scores["item"].to_numpy(dtype=np.int64), return_inverse=True)
    squares = np.bincount(position, np.square(errors)) / np.bincount(position)
    return dict(zip(items.tolist(), np.sqrt(squares).tolist(), strict=True))


def enough_are_rated(study: Study, *, run: int, question: int) -> bool:
    """Whether as many items are scored and rated as it takes; reads no more of them."""
    rated = Judgment.objects.of(study).accepted().filter(question=question)
    both = rated.filter(candidate__scores__run=run, candidate__scores__value__isnull=False)
    items = both.order_by().values_list("candidate__item", flat=True).distinct()
    return len(items[:LEAST_OF_A_PILOT]) == LEAST_OF_A_PILOT


def _ratings(question: int) -> pd.Series:
    judgments = Judgment.objects.accepted().filter(question=question, candidate__isnull=False)
    means = judgments.order_by().values("candidate").annotate(mean=Avg("value"))
    return pd.Series(
        dict(means.exclude(mean=None).values_list("candidate", "mean")), dtype="float64"
    )


def _scores(run: int) -> pd.DataFrame:
    """The run's scores by candidate, each with its item and how sure the metrics are of it."""
    study = ScoringRun.objects.get(pk=run).study_id
    runs = ScoringRun.objects.filter(study=study, is_primary=True).exclude(pk=run)
    others = runs.order_by("metric", "pk").values_list("pk", flat=True)[:MOST_OTHERS]
    names = ["run", "candidate", "item", "value", "is_up"]
    rows = Score.objects.filter(run__in=[run, *others])
    values = rows.exclude(value=None).values_list(
        "run", "candidate", "candidate__item", "value", "run__higher_is_better"
    )
    frame = pd.DataFrame.from_records(list(values), columns=names)
    by_run = frame.groupby("run")["value"]
    deviation = (frame["value"] - by_run.transform("mean")) / by_run.transform("std")
    frame["deviation"] = np.where(frame["is_up"], deviation, -deviation)
    frame = frame[np.isfinite(frame["deviation"]) | (frame["run"] == run)]
    own: pd.DataFrame = frame[frame["run"] == run].set_index("candidate")
    spread = frame.groupby("candidate")["deviation"].std().reindex(own.index)
    alone = own["deviation"].abs()
    spread = spread.fillna(alone.mean() if spread.notna().any() else alone).fillna(0.0)
    table: pd.DataFrame = own[["item", "value"]].assign(spread=spread)
    return table
