"""Submissions and answers of practice as files that other programs read; judgments are a table of
their own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from django.db.models import Exists
from django.utils.translation import gettext_lazy as _

from accounts.roles import Permission
from annotation.exports import item_stretches
from annotation.models import Study, Submission
from annotation.study_files import Offer, RowDownload, register_table
from annotation.submission_imports import pseudonym
from hits.graded_pages import PracticePage, practice_page
from hits.models import Assignment, PracticeAnswer
from presentation.row_files import Kind, RowFile

# The annotator is a pseudonym; no marketplace's id of a worker may stand here.
COLUMNS = {
    "study": "item__study__slug",
    "round": "round",
    "item": "item__key",
    "condition": "item__condition",
    "annotator": "annotator__pseudonym",
    "hit_id": "assignment__hit__hit_id",
    "assignment_id": "assignment__assignment_id",
    "status": "status",
    "accepted_at": "accepted_at",
    "submitted_at": "submitted_at",
    "seconds": "seconds",
    "active_seconds": "active_seconds",
    "pasted": "pasted",
    "justification": "justification",
    "comment": "comment",
    "flag_reason": "flag_reason",
    "protocol": "protocol__number",
    "consented_at": "consented_at",
    "simulated": "is_simulated",
    "shown_order": "shown_order",
}
KINDS: dict[str, Kind] = {
    **dict.fromkeys(COLUMNS, "text"),
    **dict.fromkeys(("round", "protocol"), "integer"),
    **dict.fromkeys(("accepted_at", "submitted_at", "consented_at"), "time"),
    **dict.fromkeys(("seconds", "active_seconds"), "number"),
    **dict.fromkeys(("pasted", "simulated", "flagged"), "boolean"),
}
NAMES = list(KINDS)
# What may be published: nothing of the marketplace's, and no words but the judgments'.
PUBLIC_NAMES = (
    *("study", "round", "item", "condition", "annotator", "status", "accepted_at", "submitted_at"),
    *("seconds", "active_seconds", "pasted", "protocol", "simulated", "flagged"),
)


def marketplace_ids(submissions: Collection[int]) -> dict[int, tuple[str, str]]:
    rows = Assignment.objects.filter(submission__in=submissions).order_by()
    ids = rows.values_list("submission", "hit__hit_id", "assignment_id")
    return {submission: (hit, assignment) for submission, hit, assignment in ids}


def submission_rows(study: Study) -> RowFile:
    """Every submission of a study, rejected ones too, in the order of items, rounds and
    annotators. What was not measured, or comes from no marketplace, is None."""
    return RowFile(KINDS, _rows(study))


def public_submission_rows(study: Study) -> RowFile:
    """The same without the marketplace's ids and without words."""
    indices = [NAMES.index(name) for name in PUBLIC_NAMES]
    rows = (tuple(row[index] for index in indices) for row in _rows(study))
    return RowFile({name: KINDS[name] for name in PUBLIC_NAMES}, rows)


def _rows(study: Study) -> Iterator[tuple[Any, ...]]:
    flag_reason, order = (list(COLUMNS).index(name) for name in ("flag_reason", "shown_order"))
    for items in item_stretches(study):
        rows = Submission.objects.filter(item__in=items).order_by(
            "item__position", "item_id", "round", "annotator__pseudonym"
        )
        for values in rows.values_list(*COLUMNS.values()):
            keys = json.dumps(values[order], ensure_ascii=False)
            yield (*values[:order], keys, *values[order + 1 :], bool(values[flag_reason]))


# The annotator is a pseudonym, as in submissions; no marketplace's id of a worker may stand here.
PRACTICE_KINDS: dict[str, Kind] = {
    **{"study": "text", "round": "integer", "practice": "boolean", "item": "text"},
    **{"annotator": "text", "hit_id": "text", "assignment_id": "text", "status": "text"},
    **{"accepted_at": "time", "submitted_at": "time", "passed": "boolean"},
    **{"n_right": "integer", "n_graded": "integer", "problem": "text"},
    **{"candidate": "text", "question": "text", "value": "number"},
    **{"right_from": "number", "right_to": "number", "right": "boolean"},
}
ANSWERS_AT_ONCE = 500


def practice_answer_rows(study: Study) -> RowFile:
    """Every answer of practice beside what is right, in the order in which they came in; what
    could not be read is one row that says why."""
    return RowFile(PRACTICE_KINDS, _practice_rows(study))


def _practice_rows(study: Study) -> Iterator[tuple[Any, ...]]:
    answers = PracticeAnswer.objects.filter(hit__batch__study=study)
    answers = answers.select_related("worker", "hit__batch__study", "hit__batch__protocol")
    pages: dict[tuple[int, int], PracticePage] = {}
    for answer in answers.order_by("submitted_at", "pk").iterator(ANSWERS_AT_ONCE):
        batch, number = answer.hit.batch, answer.hit.number
        if (page := pages.get((batch.pk, number))) is None:
            page = pages[batch.pk, number] = practice_page(study, batch.document, number)
        for values in _graded(page, answer):
            yield (*_common(study, page, answer), *values)


def _common(study: Study, page: PracticePage, answer: PracticeAnswer) -> tuple[Any, ...]:
    worker = answer.worker
    return (
        *(study.slug, answer.hit.batch.round, True, page.item.key),
        pseudonym(study, f"{worker.marketplace}:{worker.worker_id}"),
        *(answer.hit.hit_id, answer.assignment_id, answer.status),
        *(answer.accepted_at, answer.submitted_at, answer.is_passed),
        *(answer.n_right, answer.n_graded, answer.problem),
    )


def _graded(page: PracticePage, answer: PracticeAnswer) -> Iterator[tuple[Any, ...]]:
    keys: dict[str | None, str] = {each.blind_key: each.key for each in page.item.candidates.all()}
    # What could be read when it came in can be now.
    graded = [] if answer.problem else page.graded(answer.answer_xml)
    for each in graded:
        span = each.right.range
        own = (keys.get(each.right.candidate), each.right.question, each.value)
        yield (*own, span.least, span.most, each.is_right)
    if not graded:
        yield (None,) * 6


register_table(
    "submissions",
    RowDownload(
        _("every submission: who, when, how long, reason, comment, status and flag"),
        submission_rows,
        Permission.VIEW_WORKERS,
    ),
    Offer(20, is_of_judgments=True),
)
register_table(
    "practice",
    RowDownload(
        _("every answer of practice, which is no submission, beside what is right"),
        practice_answer_rows,
        Permission.VIEW_WORKERS,
    ),
    Offer(
        50, lambda study: Exists(PracticeAnswer.objects.filter(hit__batch__study=study).order_by())
    ),
)
