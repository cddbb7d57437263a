"""Answers of practice as files that other programs read: a table of their own, for they are no
submissions and no judgments of the study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annotation.models import Study
from annotation.submission_imports import pseudonym
from hits.models import PracticeAnswer
from hits.practice_pages import PracticePage, practice_page
from presentation.row_files import Kind, RowFile

# The annotator is a pseudonym, as in submissions; no marketplace's id of a worker may stand here.
KINDS: dict[str, Kind] = {
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
    return RowFile(KINDS, _rows(study))


def _rows(study: Study) -> Iterator[tuple[Any, ...]]:
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
