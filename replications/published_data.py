"""Published data sets: human judgments and metrics' scores, into one study.

Golden answers: E2E's tables: questions, an expert's answer to each, and what chatbots answered.

A CSV or JSON Lines file in either of two forms, with the columns

    question       what was asked
    golden_answer  what an expert answers
    prompt         optional: the variant the systems were prompted with (standard, enhanced)
    id             optional: the question's name; without it questions are numbered

and then, in the *long* form, `system` and `answer`, a row an answer; in the *wide* form a
column for each system that holds its answer.

An item is a question under one prompt, and the prompt is its condition; its candidates are the
systems' answers, its reference the golden one. The same question has the same context under
every prompt, which is how answers are paired.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from accounts.models import Team
from annotation.exceptions import ImportRefused
from annotation.imports import ImportResult, import_study
from annotation.management.importer import StudyImportCommand, owner_named, team_named
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    QuestionDraft,
    ReadingReport,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from error_codes import CodedError
from metrics.stored_scores import write_scores
from presentation.numbers import group_values

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
    if len(metric) > LONGEST_METRIC:
        problem = f"the metric's name has {len(metric)} characters, where {LONGEST_METRIC} fit."
        raise row.refuse(problem, field, code="too_long")


def rating(name: str, wording: str, low: float, high: float) -> QuestionDraft:
    return QuestionDraft(name=name, wording=wording, scale_min=low, scale_max=high)


def judged(row: Row, candidate: str, questions: Iterable[QuestionDraft]) -> list[JudgmentDraft]:
    """The judgments in the fields named like the questions; missing values are left out."""
    return [
        JudgmentDraft(candidate, name, row.number(name), row.line, row.called(name))
        for name in (question.name for question in questions)
        if row.text(name).strip() not in MISSING
    ]


def submission(
    item: str, annotator: str, rows: list[Row], judgments: list[JudgmentDraft]
) -> SubmissionDraft:
    return SubmissionDraft(
        item=item,
        annotator=annotator,
        line=rows[0].line,
        path=rows[0].path,
        status="approved",
        raw=json.dumps([row.fields for row in rows], ensure_ascii=False),
        judgments=tuple(judgments),
    )


class ReplicationError(CodedError):
    pass


class DatasetIncomplete(ReplicationError):
    pass


@dataclass(frozen=True)
class PublishedImported(ImportResult):
    n_scores: dict[str, int]

    def record(self) -> dict[str, Any]:
        return {**super().record(), "n_scores": self.n_scores}

    def __str__(self) -> str:
        counts = ", ".join(f"{count} of {metric}" for metric, count in self.n_scores.items())
        return f"{super().__str__()}\n{counts} scores imported." if counts else super().__str__()


@transaction.atomic
def import_published(
    *,
    published: Published,
    path: Path,
    slug: str,
    title: str = "",
    owner: AbstractBaseUser | None = None,
    team: Team | None = None,
) -> PublishedImported:
    """Write a data set's study and its metrics' scores in one transaction."""
    imported = import_study(
        draft=published.study, path=path, slug=slug, title=title, owner=owner, team=team
    )
    counts: Counter[str] = Counter()
    for scores in published.scores:
        write_scores(
            study=imported.study,
            metric=scores.metric,
            signature=scores.signature,
            values=scores.values,
            higher_is_better=scores.higher_is_better,
        )
        counts[scores.metric] += len(scores.values)
    return PublishedImported(**vars(imported), n_scores=dict(counts))


class PublishedCommand(StudyImportCommand, ABC):
    @abstractmethod
    def read(self, path: Path, **options: Any) -> Published:
        pass

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        imported = import_published(
            published=self.read(file, **options),
            path=file,
            slug=options["study"],
            title=options["title"],
            owner=owner_named(options["owner"]),
            team=team_named(options["team"]),
        )
        self.write_imported(imported, is_json=options["json"])


COLUMNS = ("question", "golden_answer")
OPTIONAL_COLUMNS = (*COLUMNS, "prompt", "id")
LONG = ("system", "answer")
QUESTION = replace(
    rating("correctness", "How well does the answer agree with the reference?", 0, 100),
    low_label="Not at all",
    high_label="Completely",
)


class _Answer(NamedTuple):
    row: Row
    item: str
    prompt: str
    system: str
    text: str


def read_golden_answers(path: Path) -> Published:
    report = ReadingReport()
    rows = read_rows(path, COLUMNS, report=report)
    by_item = group_values((answer.item, answer) for answer in _answers(path, rows))
    items = tuple(_item(key, answers) for key, answers in by_item.items())
    return Published(StudyDraft(kind="rating", items=items, questions=(QUESTION,), report=report))


def _answers(path: Path, rows: list[Row]) -> Iterator[_Answer]:
    fields = rows[0].fields
    is_long = all(name in fields for name in LONG)
    systems = () if is_long else tuple(name for name in fields if name not in OPTIONAL_COLUMNS)
    if not is_long and not systems:
        problem = "it has no column for any system, and neither `system` and `answer`."
        raise ImportRefused(path, problem, line=1, code="no_system")
    names: dict[str, str] = {}
    for row in rows:
        question = row.text("question").strip()
        if not question:
            raise row.refuse("this field must not be empty.", "question", code="empty")
        name = row.optional("id", longest=100) or str(len(names) + 1)
        if names.setdefault(question, name) != name and row.optional("id"):
            raise row.refuse(
                f"this question is named '{names[question]}' already.",
                "id",
                code="repeated_question",
            )
        prompt = row.optional("prompt", longest=64)
        item = f"{names[question]}/{prompt}" if prompt else names[question]
        if is_long:
            system, text = row.required("system", longest=100), row.text("answer")
            yield _Answer(row, item, prompt, system, text)
        for system in systems:
            yield _Answer(row, item, prompt, system[:100], row.text(system))


def _item(key: str, answers: list[_Answer]) -> ItemDraft:
    first = answers[0]
    candidates: dict[str, CandidateDraft] = {}
    for answer in answers:
        for field in COLUMNS:
            if answer.row.text(field).strip() != first.row.text(field).strip():
                problem = f"differs from line {first.row.line} of the same question and prompt."
                raise answer.row.refuse(problem, field, code="differs")
        if answer.system in candidates:
            raise answer.row.refuse(
                f"question '{key}' has an answer of '{answer.system}' already.",
                "system" if "system" in answer.row.fields else None,
                code="repeated_response",
            )
        text = answer.text.strip()
        candidates[answer.system] = CandidateDraft(answer.system, answer.system, text)
    return ItemDraft(
        key=key,
        line=first.row.line,
        context=first.row.text("question").strip(),
        reference=first.row.text("golden_answer").strip(),
        condition=first.prompt,
        candidates=tuple(candidates.values()),
    )
