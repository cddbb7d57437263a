"""Submissions as files that other programs read: what each annotator did, and when, but for the
judgments, which are a table of their own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from annotation.exports import item_stretches
from annotation.models import Study, Submission
from hits.models import Assignment
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
    """The HIT's and the assignment's id of each submission that came from a marketplace."""
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
