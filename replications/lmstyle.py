"""The LMStyle Benchmark's human evaluation, replayed: its batch, its scores, its Table 1."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from annotation.imports import import_study
from annotation.models import Study
from annotation.readers.drafts import QuestionDraft, StudyDraft, SubmissionDraft
from annotation.readers.mturk_batch import read_mturk_batch
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from hits.crowd.replay import RecordedAnswers, ReplayResult, replay_plan
from hits.loop import Marketplace, run_loop
from hits.models import Batch
from metrics.stored_scores import write_scores
from presentation.progress import Reporter, without_bars
from replications.exceptions import DatasetIncomplete
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


def read_batch(folder: Path) -> StudyDraft:
    """The recorded batch; an item is a speaker's utterance in one data set and style."""
    return read_mturk_batch(
        data_file(folder, BATCH),
        context="Speaker",
        condition="task",
        item=("dataset", "task", "HIT"),
    )


def data_file(folder: Path, name: str) -> Path:
    """One of the benchmark's files, or DatasetIncomplete."""
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
    record = read_batch(folder)
    scores = _scores(data_file(folder, SCORES))
    study = import_study(
        draft=replace(record, questions=_labelled(record.questions), submissions=()),
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
    return table_1(study)


def _labelled(questions: Iterable[QuestionDraft]) -> tuple[QuestionDraft, ...]:
    """With words at the ends, which the recorded batch does not have and workers need."""
    return tuple(replace(each, low_label=LOW, high_label=HIGH[each.name]) for each in questions)


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


def _scores(path: Path) -> dict[tuple[str, str, str, str], Row]:
    """Rows by data set, style, utterance and system."""
    columns = ("dataset", "task", "input", "model", *QUESTION_OF)
    rows = read_rows(path, columns)
    return {
        (row.text("dataset"), row.text("task"), row.text("input").strip(), row.text("model")): row
        for row in rows
    }


def _join_scores(
    study: Study, record: StudyDraft, scores: Mapping[tuple[str, str, str, str], Row]
) -> None:
    """The scores name an utterance by its text, where the batch gives it a number."""
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


def table_1(study: Study) -> list[dict[str, Any]]:
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
        (_cell(row) for row in rows if row.by), key=lambda cell: order.index(cell["metric"])
    )


def _cell(row: CorrelationRecord) -> dict[str, Any]:
    return {
        "by": row.by,
        "metric": row.metric,
        "coefficient": row.coefficient,
        "value": None if row.value is None else row.value * 100,
        "n_groups": row.n_groups,
        "n_used": row.n_used,
    }
