"""Writing the submissions that a reader made of a file into a study, with their judgments.

Annotators have names that a study may show and export.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from annotation.bulk import DRAFTS_AT_ONCE, batched, insert_rows
from annotation.exceptions import ImportRefused
from annotation.models import (
    Annotator,
    Candidate,
    Judgment,
    Question,
    Study,
    Submission,
    WrittenAnswer,
)
from annotation.readers.drafts import JudgmentDraft, QuestionDraft, StudyDraft, SubmissionDraft

BATCH_SIZE = 1000
SUBMISSION_FIELDS = (
    *("item_id", "annotator_id", "round", "status", "raw"),
    *("justification", "accepted_at", "submitted_at", "seconds", "is_simulated"),
)


@dataclass
class Counts:
    n_new: int = 0
    n_changed: int = 0


def write_submissions(study: Study, draft: StudyDraft, path: Path) -> Counts:
    counts = Counts()
    if not draft.submissions:
        return counts
    questions = {question.name: question for question in study.questions.all()}
    target = _Target(study, path, questions, _codes(questions, draft.questions))
    for drafts in batched(draft.submissions, DRAFTS_AT_ONCE):
        _write_batch(target, drafts, counts)
    return counts


@dataclass(frozen=True)
class _Target:
    study: Study
    path: Path
    questions: dict[str, Question]
    codes: dict[str, list[float]]
    annotators: dict[str, Annotator] = field(default_factory=dict)

    def know(self, names: set[str]) -> None:
        unknown = names - self.annotators.keys()
        Annotator.objects.bulk_create(
            (Annotator(study=self.study, pseudonym=name) for name in sorted(unknown)),
            ignore_conflicts=True,
            batch_size=BATCH_SIZE,
        )
        there = self.study.annotators.filter(pseudonym__in=unknown)
        self.annotators.update({annotator.pseudonym: annotator for annotator in there})


def _write_batch(target: _Target, drafts: list[SubmissionDraft], counts: Counts) -> None:
    study = target.study
    named = [(draft.annotator or pseudonym(study, draft.identity), draft) for draft in drafts]
    target.know({name for name, _ in named})
    keys = {draft.item for draft in drafts}
    ids = dict(study.items.filter(key__in=keys).order_by().values_list("key", "pk"))
    known = _known_submissions(ids.values())
    fresh, decided = [], []
    for name, draft in named:
        there = known.get((name, draft.item, draft.round))
        if there is None:
            fresh.append((name, draft))
        elif there.raw != draft.raw:
            raise ImportRefused(
                draft.path or target.path,
                f"annotator '{name}' has another submission for item '{draft.item}' in the study.",
                line=draft.line,
                code="other_submission",
            )
        elif there.status != draft.status:
            counts.n_changed += Submission.Status.REJECTED in (there.status, draft.status)
            there.status = draft.status
            decided.append(there)
    Submission.objects.bulk_update(decided, ["status"], batch_size=BATCH_SIZE)
    insert_rows(
        Submission, SUBMISSION_FIELDS, (_submission_row(target, ids, *one) for one in fresh)
    )
    _write_judgments(target, fresh, ids)
    counts.n_new += len(fresh)
    counts.n_changed += len(fresh)


def _known_submissions(items: Iterable[int]) -> dict[tuple[str, str, int], Submission]:
    return {
        (s.annotator.pseudonym, s.item.key, s.round): s
        for s in Submission.objects.filter(item__in=list(items))
        .select_related("annotator", "item")
        .only("annotator__pseudonym", "item__key", "round", "raw", "status")
    }


def _submission_row(
    target: _Target, ids: dict[str, int], name: str, draft: SubmissionDraft
) -> tuple[object, ...]:
    return (
        *(ids[draft.item], target.annotators[name].pk, draft.round, draft.status, draft.raw),
        *(draft.justification, draft.accepted_at, draft.submitted_at, draft.seconds),
        draft.is_simulated,
    )


def _write_judgments(
    target: _Target, fresh: list[tuple[str, SubmissionDraft]], ids: dict[str, int]
) -> None:
    items = list(ids.values())
    candidates = {
        (item, key): pk
        for pk, item, key in Candidate.objects.filter(item__in=items).values_list(
            "pk", "item_id", "key"
        )
    }
    submissions = {
        (annotator, item, round): pk
        for annotator, item, round, pk in Submission.objects.filter(item__in=items).values_list(
            "annotator_id", "item_id", "round", "pk"
        )
    }
    insert_rows(
        Judgment,
        ("submission_id", "candidate_id", "question_id", "value"),
        (
            (
                submissions[target.annotators[name].pk, ids[draft.item], draft.round],
                candidates[ids[draft.item], judgment.candidate],
                *_answer(target, draft, judgment),
            )
            for name, draft in fresh
            for judgment in draft.judgments
        ),
    )
    insert_rows(
        WrittenAnswer,
        ("submission_id", "candidate_id", "question", "text"),
        (
            (
                submissions[target.annotators[name].pk, ids[draft.item], draft.round],
                candidates[ids[draft.item], answer.candidate] if answer.candidate else None,
                *(answer.question, answer.text),
            )
            for name, draft in fresh
            for answer in draft.written
        ),
    )


def _answer(target: _Target, draft: SubmissionDraft, judgment: JudgmentDraft) -> tuple[int, float]:
    question, value = target.questions[judgment.question], judgment.value
    if question.name in target.codes:
        value = target.codes[question.name][int(value)]
    if (problem := question.validation_error(value)) is not None:
        line, path = judgment.line or draft.line, draft.path or target.path
        raise ImportRefused(path, problem, line=line, field=judgment.field)
    return question.pk, value


def _codes(
    questions: dict[str, Question], drafts: Sequence[QuestionDraft]
) -> dict[str, list[float]]:
    return {
        draft.name: [float(questions[draft.name].categories.index(c)) for c in draft.categories]
        for draft in drafts
        if draft.categories
    }


def pseudonym(study: Study, identity: str) -> str:
    """The same person is the same annotator throughout a study, and nobody across studies."""
    digest = hmac.new(study.pseudonym_salt.encode(), identity.encode(), hashlib.sha256)
    return f"A{digest.hexdigest()[:10]}"
