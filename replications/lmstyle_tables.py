"""The LMStyle Benchmark's Tables 1 to 3, from its files alone: no study, no marketplace.

Table 1 is the mean over items of the correlation, over systems, of a metric with ratings (x 100);
Table 2 the systems' mean scores; Table 3 the systems' mean human ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from annotation.readers.tables import read_rows
from presentation.records import plain_records, plain_values
from replications.lmstyle import QUESTION_OF, SCORES, data_file, read_batch
from stats.correlation import Undefined, correlation_at_level

if TYPE_CHECKING:
    import pandas as pd


ALL_SCORES = "all_models_scores.csv.gz"
OVERALL = "Overall"
FAMILIES = {"Formal": "formality", "Informal": "formality"} | dict.fromkeys(
    ("Positive", "Negative"), "sentiment"
)
CELLS = 8  # two data sets in four styles
EMPTY_RESPONSE_LOSS_NATS = 100.0
Coefficient = Literal["pearson", "kendall"]
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "kendall")
Cells = list[dict[str, Any]]


def table_1(folder: Path, undefined: Undefined = "drop") -> Cells:
    """Sample-level correlations x 100 by metric, coefficient and style; and their mean."""
    ratings, scores = _ratings(folder), _scores(data_file(folder, SCORES), tuple(QUESTION_OF))
    joined = ratings.merge(scores, on=["dataset", "task", "input", "system"], how="left")
    return [
        cell
        for metric, question in QUESTION_OF.items()
        for coefficient in COEFFICIENTS
        for cell in _correlations(
            joined[joined["question"] == question], metric, coefficient, undefined
        )
    ]


def _correlations(
    grouping: pd.DataFrame, metric: str, coefficient: Coefficient, undefined: Undefined
) -> Cells:
    cells: Cells = []
    for task, part in grouping.groupby("task", sort=False):
        result = correlation_at_level(
            part["value"],
            part[metric],
            level="item",
            coefficient=coefficient,
            items=part["item"],
            systems=part["system"],
            undefined=undefined,
            n_resamples=0,
        )
        counts = {"n_groups": result.n_groups, "n_used": result.n_used}
        cells.append(_cell(metric, str(task), result.value * 100, coefficient, counts))
    counts = {name: sum(cell[name] for cell in cells) for name in ("n_groups", "n_used")}
    values = [cell["value"] for cell in cells]
    mean = nan if None in values else sum(values) / len(values)
    return [*cells, _cell(metric, OVERALL, mean, coefficient, counts)]


def _cell(
    metric: str, by: str, value: float, coefficient: str, counts: Mapping[str, int]
) -> dict[str, Any]:
    named = {"metric": metric, "by": by, "coefficient": coefficient}
    return plain_values(named | {"value": value, **counts})


def table_2(folder: Path) -> Cells:
    """Each system's style accuracy, ChatGPT grade and NLL score, in formality and in sentiment.

    Cells are a data set and a style; the mean of a family's four counts. A cell's NLL score is
    100 over its mean loss; an empty response has no likelihood, and counts as a loss of 100.
    A cell where a response lacks a score has no mean, nor has its family; systems without a
    loss in all eight cells are left out.
    """
    scores = _scores(data_file(folder, ALL_SCORES), ("NLL", "ChatGPT", "StyleStrength"))
    empty = scores["NLL"] == 0
    measured = scores.assign(
        family=scores["task"].map(FAMILIES),
        accuracy=(scores["StyleStrength"].gt(0.5) * 100.0).where(scores["StyleStrength"].notna()),
        loss=(100 / scores["NLL"].mask(empty)).mask(empty, EMPTY_RESPONSE_LOSS_NATS),
    )
    by_cell = measured.groupby(["system", "family", "dataset", "task"], sort=False)
    means = _means_of_complete_groups(by_cell[["accuracy", "ChatGPT", "loss"]])
    means["NLL"] = 100 / means.pop("loss")
    groups = means.groupby(["system", "family"], sort=False)
    complete = groups["NLL"].count().groupby("system").sum() == CELLS
    table = _means_of_complete_groups(groups).rename_axis(columns="metric").reset_index()
    cells = table.melt(["system", "family"], var_name="metric", value_name="value")
    in_order = cells.sort_values(["system", "family"], kind="stable")
    return plain_records(in_order[in_order["system"].map(complete)])


def _means_of_complete_groups(groups: Any) -> pd.DataFrame:
    """The means of each group's columns, NaN where one of its values is."""
    is_complete = groups.count().eq(groups.size(), axis=0)
    means: pd.DataFrame = groups.mean().where(is_complete)
    return means


def table_3(folder: Path) -> Cells:
    """Each system's mean rating of each question in each style, with the number of ratings."""
    by_cell = _ratings(folder).groupby(["question", "system", "task"], sort=False)["value"]
    means = by_cell.agg(["mean", "count"]).reset_index()
    return plain_records(means.rename(columns={"task": "by", "mean": "value", "count": "n"}))


def _ratings(folder: Path) -> pd.DataFrame:
    """The judgments of approved assignments, a row each."""
    import pandas as pd

    draft = read_batch(folder)
    contexts = {item.key: item.context.strip() for item in draft.items}
    return pd.DataFrame(
        [
            {
                "dataset": submission.item.split("-")[0],
                "task": submission.item.split("-")[1],
                "item": submission.item,
                "input": contexts[submission.item],
                "system": judgment.candidate,
                "question": judgment.question,
                "value": judgment.value,
            }
            for submission in draft.submissions
            if submission.status == "approved"
            for judgment in submission.judgments
        ]
    )


def _scores(path: Path, metrics: Sequence[str]) -> pd.DataFrame:
    """The scores of a file, a row an output; an empty cell is a score that is missing."""
    import pandas as pd

    rows = read_rows(path, ("dataset", "task", "model", *metrics))
    texts = {"dataset": "dataset", "task": "task", "system": "model", "input": "input"}
    names = {name: [row.text(column).strip() for row in rows] for name, column in texts.items()}
    values = {metric: [row.number_or_nan(metric) for row in rows] for metric in metrics}
    return pd.DataFrame(names | values)


TABLES: dict[int, Callable[[Path], Cells]] = {1: table_1, 2: table_2, 3: table_3}
