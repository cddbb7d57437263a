"""What a published data set brings: a study, and the scores that metrics gave in it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from annotation.readers.drafts import JudgmentDraft, QuestionDraft, StudyDraft, SubmissionDraft
from annotation.readers.rows import Row

MISSING = ("", "N/A")
LONGEST_METRIC = 64
MEAN_OF_RATERS = "mean-of-raters"


@dataclass(frozen=True)
class ScoresDraft:
    """One metric's scores by item and candidate; NaN where it gave none."""

    metric: str
    signature: str
    values: Mapping[tuple[str, str], float]
    higher_is_better: bool = True


@dataclass(frozen=True)
class Published:
    study: StudyDraft
    scores: tuple[ScoresDraft, ...] = ()


def require_short(metric: str, row: Row, field: str) -> None:
    """Refuse a metric's name that would have to be cut."""
    if len(metric) > LONGEST_METRIC:
        problem = f"the metric's name has {len(metric)} characters, where {LONGEST_METRIC} fit."
        raise row.refuse(problem, field, code="too_long")


def rating(name: str, wording: str, low: float, high: float) -> QuestionDraft:
    """A question whose scale goes from low to high."""
    return QuestionDraft(name=name, wording=wording, scale_min=low, scale_max=high)


def judged(row: Row, candidate: str, questions: Iterable[QuestionDraft]) -> list[JudgmentDraft]:
    """The judgments in a row's fields of the questions' names, without those that are missing."""
    return [
        JudgmentDraft(candidate, name, row.number(name), row.line, row.called(name))
        for name in (question.name for question in questions)
        if row.text(name).strip() not in MISSING
    ]


def submission(
    item: str, annotator: str, rows: list[Row], judgments: list[JudgmentDraft]
) -> SubmissionDraft:
    """One annotator's pass over an item, with the rows it was read from."""
    return SubmissionDraft(
        item=item,
        annotator=annotator,
        line=rows[0].line,
        path=rows[0].path,
        status="approved",
        raw=json.dumps([row.fields for row in rows], ensure_ascii=False),
        judgments=tuple(judgments),
    )
