"""Submissions as files that other programs read: what each annotator did, and when, but for the
judgments, which are a table of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from annotation.models import Study, Submission
from presentation.spreadsheets import csv_parts

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
}
NAMES = [*COLUMNS, "flagged"]
CHUNK = 1000


def submissions_csv(study: Study) -> Iterator[str]:
    """Every submission of a study, rejected ones too, as parts of a CSV file."""
    rows = ([record[name] for name in NAMES] for record in submission_records(study))
    return csv_parts(NAMES, rows)


def submissions_jsonl(study: Study) -> Iterator[str]:
    """Every submission of a study, rejected ones too, as lines of JSON."""
    return (f"{json.dumps(record, ensure_ascii=False)}\n" for record in submission_records(study))


def submission_records(study: Study) -> Iterator[dict[str, Any]]:
    """A record for each submission, in the order of items, rounds and annotators.

    What was not measured, or comes from no marketplace, is None.
    """
    rows = Submission.objects.of(study).order_by(
        "item__position", "item_id", "round", "annotator__pseudonym"
    )
    for values in rows.values_list(*COLUMNS.values()).iterator(chunk_size=CHUNK):
        record = dict(zip(COLUMNS, map(_plain, values), strict=True))
        yield record | {"flagged": bool(record["flag_reason"])}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
