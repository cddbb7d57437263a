"""The LMStyle Benchmark's human evaluation, replayed: its batch, its scores, its Table 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any, Literal

from annotation.imports import import_study
from annotation.models import Study
from annotation.readers.drafts import StudyDraft, SubmissionDraft
from annotation.readers.mturk_batch import read_mturk_batch
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from hits.crowd.replay import RecordedAnswers, ReplayResult, replay_plan
from hits.loop import Marketplace, run_loop
from hits.models import Batch
from metrics.stored_scores import write_scores
from presentation.numbers import plain_records, plain_values
from presentation.progress import Reporter, without_bars
from replications.published_data import DatasetIncomplete
from stats.correlation import Undefined, correlation_at_level
from stats.libraries import pd
from validation.analysis import Settings
from validation.analysis.records import CorrelationRecord
from validation.analysis.settings import only_for
from validation.study_validation import study_report

BATCH, SCORES = "mturk_batch_results.csv", "metric_scores.csv"
SLUG = "lmstyle"
REWARD_USD = Decimal("0.07")
LOW, HIGH = "Not at all", {"Appropriateness": "Completely", "Style": "As strongly as could be"}
QUESTION_OF = {
    "NLL": "Appropriateness",
    "ChatGPT": "Appropriateness",
    "BLEU": "Appropriateness",
    "SBERT": "Appropriateness",
    "StyleStrength": "Style",
}


def read_batch(path: Path) -> StudyDraft:
    return read_mturk_batch(
        path,
        context="Speaker",
        condition="task",
        item=("dataset", "task", "HIT"),
    )


def data_file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise DatasetIncomplete(
            f"There is no {name} in {folder}. Give the folder of the LMStyle Benchmark's data."
        )
    return path


def replay(
    *, folder: Path, marketplace: Marketplace, reporter: Reporter = without_bars
) -> list[dict[str, Any]]:
    """Publish the study, replay its approved assignments, join its scores: Table 1 by cell."""
    record = read_batch(data_file(folder, BATCH))
    scores = _score_rows(data_file(folder, SCORES))
    study = import_study(
        draft=replace(
            record,
            # Workers need words at the ends, which the recorded batch does not have.
            questions=tuple(
                replace(each, low_label=LOW, high_label=HIGH[each.name])
                for each in record.questions
            ),
            submissions=(),
        ),
        path=folder / BATCH,
        slug=SLUG,
        title="LMStyle Benchmark",
    ).study
    approved = [draft for draft in record.submissions if draft.status == "approved"]
    run_loop(
        study=study,
        marketplace=marketplace,
        reward_usd=REWARD_USD,
        max_assignments=1,
        work=lambda batch, site_url: _work(batch, site_url, approved, reporter),
        description="Rate four responses to what a speaker said.",
        reporter=reporter,
    )
    _join_scores(study, record, scores)
    return table_replayed(study)


def _work(
    batch: Batch, site_url: str, approved: Iterable[SubmissionDraft], reporter: Reporter
) -> ReplayResult:
    source = RecordedAnswers(batch.study, approved)
    return replay_plan(
        plan=source.plan(batch),
        source=source,
        site_url=site_url,
        prefix=f"{SLUG}-",
        progress=reporter("working"),
    )


def _score_rows(path: Path) -> dict[tuple[str, str, str, str], Row]:
    """By data set, style, utterance and system."""
    return {
        (row.text("dataset"), row.text("task"), row.text("input").strip(), row.text("model")): row
        for row in read_rows(path, ("dataset", "task", "input", "model", *QUESTION_OF))
    }


def _join_scores(
    study: Study, record: StudyDraft, scores: Mapping[tuple[str, str, str, str], Row]
) -> None:
    """The scores name an utterance by its text, the batch by a number."""
    rows: dict[tuple[str, str], Row] = {}
    for item in record.items:
        dataset, task = item.key.split("-")[:2]
        for candidate in item.candidates:
            row = scores.get((dataset, task, item.context.strip(), candidate.key))
            if row is not None:
                rows[item.key, candidate.key] = row
    for metric in QUESTION_OF:
        write_scores(
            study=study,
            metric=metric,
            signature=f"{metric}|imported|file:{SCORES}",
            values={key: row.number(metric) for key, row in rows.items()},
        )


def table_replayed(study: Study) -> list[dict[str, Any]]:
    """Mean sample-level correlations x 100, for each style, metric and coefficient."""
    settings = Settings(
        questions_of=only_for({metric: [of] for metric, of in QUESTION_OF.items()}),
        levels=("item",),
        coefficients=("pearson", "kendall"),
        n_resamples=0,
        n_permutations=1,
        n_splits=0,
    )
    rows = study_report(study, settings).correlations
    order = list(QUESTION_OF)
    return sorted(
        (_replayed_cell(row) for row in rows if row.by),
        key=lambda cell: order.index(cell["metric"]),
    )


def _replayed_cell(row: CorrelationRecord) -> dict[str, Any]:
    return {
        "by": row.by,
        "metric": row.metric,
        "coefficient": row.coefficient,
        "value": None if row.value is None else row.value * 100,
        "n_groups": row.n_groups,
        "n_used": row.n_used,
    }


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


def table_1(batch: Path, scores_path: Path, undefined: Undefined = "drop") -> Cells:
    """Sample-level correlations x 100 by metric, coefficient and style; and their mean."""
    ratings, scores = _ratings(batch), _scores(scores_path, tuple(QUESTION_OF))
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
        counts = {
            "n_groups": result.n_groups,
            "n_used": result.n_used,
            "n": result.n_used,
            "ratings_mean": float(part["value"].mean()),
        }
        cells.append(_cell(metric, str(task), result.value * 100, coefficient, counts))
    counts = {name: sum(cell[name] for cell in cells) for name in ("n_groups", "n_used", "n")}
    counts["ratings_mean"] = float(grouping["value"].mean())
    values = [cell["value"] for cell in cells]
    if None in values:
        return [*cells, _cell(metric, OVERALL, nan, coefficient, counts)]
    # The paper's last column is the mean of its rounded ones.
    counts["as_printed"] = sum(round(value, 1) for value in values) / len(values)
    return [*cells, _cell(metric, OVERALL, sum(values) / len(values), coefficient, counts)]


def _cell(
    metric: str, by: str, value: float, coefficient: str, counts: Mapping[str, float]
) -> dict[str, Any]:
    named = {"metric": metric, "by": by, "coefficient": coefficient}
    return plain_values(named | {"value": value, **counts})


def table_2(path: Path) -> Cells:
    """Each system's style accuracy, ChatGPT grade and NLL score, in formality and in sentiment.

    The mean of a family's four cells counts. Systems without a loss in all eight cells are left
    out. `as_printed` is the mean of rounded cells, as in the paper.
    """
    means = _means_by_cell(path)
    rounded = means.assign(NLL=100 / (100 / means["NLL"]).round(2)).round(1)
    complete = means["NLL"].groupby("system").count() == CELLS
    values, as_printed = (
        _means_of_complete_groups(each.groupby(["system", "family"], sort=False)).stack(
            future_stack=True
        )
        for each in (means, rounded)
    )
    cells = pd.DataFrame({"value": values, "as_printed": as_printed})
    cells = cells.rename_axis(["system", "family", "metric"]).reset_index()
    in_order = cells.sort_values(["system", "family"], kind="stable")
    return plain_records(in_order[in_order["system"].map(complete)])


def table_of_style(path: Path, style: str) -> Cells:
    """The cells that Table 2 averages, for one style: by system, data set and metric."""
    means = _means_by_cell(path).xs(style, level="task").droplevel("family")
    cells = pd.DataFrame({"value": means.stack(future_stack=True)})
    return plain_records(cells.rename_axis(["system", "dataset", "metric"]).reset_index())


def _means_by_cell(path: Path) -> pd.DataFrame:
    """Means by system, family, data set and style.

    An NLL score is 100 over the mean loss; an empty response has no likelihood, and counts as a
    loss of 100. A cell where a response lacks a score has no mean.
    """
    scores = _scores(path, ("NLL", "ChatGPT", "StyleStrength"))
    empty = scores["NLL"] == 0
    measured = scores.assign(
        family=scores["task"].map(FAMILIES),
        accuracy=(scores["StyleStrength"].gt(0.5) * 100.0).where(scores["StyleStrength"].notna()),
        loss=(100 / scores["NLL"].mask(empty)).mask(empty, EMPTY_RESPONSE_LOSS_NATS),
    )
    by_cell = measured.groupby(["system", "family", "dataset", "task"], sort=False)
    means = _means_of_complete_groups(by_cell[["accuracy", "ChatGPT", "loss"]])
    return means.assign(NLL=100 / means.pop("loss"))


def _means_of_complete_groups(groups: Any) -> pd.DataFrame:
    means: pd.DataFrame = groups.mean().where(groups.count().eq(groups.size(), axis=0))
    return means


def table_3(path: Path) -> Cells:
    """Each system's mean rating of each question, by style, with the number of ratings; and the
    mean of the four styles."""
    by_cell = _ratings(path).groupby(["question", "system", "task"], sort=False)["value"]
    means = by_cell.agg(["mean", "count"])
    of_system = means.groupby(["question", "system"], sort=False)
    overall = of_system.agg({"mean": "mean", "count": "sum"}).assign(task=OVERALL).reset_index()
    cells = pd.concat([means.reset_index(), overall])
    return plain_records(cells.rename(columns={"task": "by", "mean": "value", "count": "n"}))


def _ratings(path: Path) -> pd.DataFrame:
    draft = read_batch(path)
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
    rows = read_rows(path, ("dataset", "task", "model", *metrics))
    texts = {"dataset": "dataset", "task": "task", "system": "model", "input": "input"}
    names = {name: [row.text(column).strip() for row in rows] for name, column in texts.items()}
    values = {metric: [row.number_or_nan(metric) for row in rows] for metric in metrics}
    return pd.DataFrame(names | values)
