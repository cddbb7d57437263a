"""Mechanical Turk's batch results: one row an assignment, `Input.*` and `Answer.*` columns.

A response of system S stands in `Input.S`, and its rating under question Q in
`Answer.Q_S` (or `Answer.Q.S`, or `Answer.S_Q`). Which columns those are is read off
the header; the context column has to be named where it is not the only one left.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from django.utils.translation import gettext as _

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    QuestionDraft,
    ReadingReport,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.rows import Row, item_key
from annotation.readers.tables import read_rows
from error_codes import CodedText, require

COLUMNS = ("HITId", "WorkerId", "AssignmentStatus")
STATUSES = {"Submitted": "submitted", "Approved": "approved", "Rejected": "rejected"}
ZONES = {"UTC": 0, "GMT": 0, "PDT": -7, "PST": -8, "EDT": -4, "EST": -5}

REPEATED = CodedText(
    "the same worker has another submission for the item, which is kept", "repeated_submission"
)


@dataclass(frozen=True)
class BatchLayout:
    context: str
    item: tuple[str, ...]
    condition: str | None
    answers: dict[tuple[str, str], str]

    @property
    def systems(self) -> list[str]:
        return list(dict.fromkeys(system for _, system in self.answers))

    @property
    def questions(self) -> list[str]:
        return list(dict.fromkeys(question for question, _ in self.answers))


def read_mturk_batch(
    path: Path,
    *,
    context: str | None = None,
    item: tuple[str, ...] = (),
    condition: str | None = None,
) -> StudyDraft:
    """The items of a batch and what was submitted for them.

    `item` names the input columns whose values, joined by hyphens, are an item's key;
    without them an item is a HIT.
    """
    report = ReadingReport()
    rows = read_rows(path, COLUMNS, report=report)
    layout = _layout(path, list(rows[0].fields), context, item, condition)
    items: dict[str, ItemDraft] = {}
    submissions: dict[tuple[str, str], SubmissionDraft] = {}
    for row in rows:
        draft = _item(row, layout)
        earlier = items.setdefault(draft.key, draft)
        row.refuse_unless(
            not (earlier.candidates != draft.candidates or earlier.context != draft.context),
            f"item '{draft.key}' differs from line {earlier.line}; "
            "name the columns that distinguish items with --item.",
            code="differs",
        )
        _keep(_submission(row, layout, draft.key), submissions, report)
    return StudyDraft(
        kind="rating",
        items=tuple(items.values()),
        questions=tuple(
            QuestionDraft(name=name, wording=f"{name} of the response") for name in layout.questions
        ),
        submissions=tuple(submissions.values()),
        report=report,
    )


def _layout(
    path: Path,
    header: list[str],
    context: str | None,
    item: tuple[str, ...],
    condition: str | None,
) -> BatchLayout:
    inputs = [name.removeprefix("Input.") for name in header if name.startswith("Input.")]
    answers = [name.removeprefix("Answer.") for name in header if name.startswith("Answer.")]
    for name in (*item, *([condition] if condition else []), *([context] if context else [])):
        require(
            name in inputs,
            ImportRefused(
                path, f"there is no column Input.{name}.", line=1, code="missing_columns"
            ),
        )
    pairs: dict[tuple[str, str], str] = {}
    for answer in answers:
        pair = _question_and_system(answer, inputs)
        if pair is not None:
            pairs[pair] = answer
    require(
        pairs,
        ImportRefused(
            path,
            "no Answer.* column ends in the name of an Input.* column.",
            line=1,
            code="no_ratings",
        ),
    )
    _require_short_names(path, pairs)
    systems = {system for _, system in pairs}
    contexts = [name for name in inputs if name not in systems and name not in (*item, condition)]
    if context is None and len(contexts) != 1:
        choice = ", ".join(contexts or inputs)
        raise AnnotationError(
            f"{path.name} does not say which column is the context: name it with --context "
            f"(one of: {choice}). Nothing was imported.",
            code="no_context",
        )
    return BatchLayout(context or contexts[0], item, condition, pairs)


def _question_and_system(answer: str, inputs: list[str]) -> tuple[str, str] | None:
    for system in sorted(inputs, key=len, reverse=True):
        for separator in ("_", "."):
            if answer.endswith(separator + system):
                return answer.removesuffix(separator + system), system
            if answer.startswith(system + separator):
                return answer.removeprefix(system + separator), system
    return None


def _require_short_names(path: Path, pairs: dict[tuple[str, str], str]) -> None:
    for (question, system), answer in pairs.items():
        if not 1 <= len(question) <= 64 or not 1 <= len(system) <= 100:
            raise ImportRefused(
                path,
                f"column Answer.{answer[:40]} does not name a question of 1 to 64 characters "
                "and a system of 1 to 100.",
                line=1,
                code="unfit_name",
            )


def _item(row: Row, layout: BatchLayout) -> ItemDraft:
    return ItemDraft(
        key=item_key(row, [f"Input.{name}" for name in layout.item] or ["HITId"]),
        line=row.line,
        context=row.text(f"Input.{layout.context}"),
        condition=row.optional(f"Input.{layout.condition}", longest=64) if layout.condition else "",
        candidates=tuple(
            CandidateDraft(key=system, system=system, text=row.text(f"Input.{system}"))
            for system in layout.systems
        ),
    )


def _submission(row: Row, layout: BatchLayout, item: str) -> SubmissionDraft:
    status = row.required("AssignmentStatus")
    row.refuse_unless(
        status in STATUSES,
        f"'{status}' is not one of {', '.join(STATUSES)}.",
        "AssignmentStatus",
        code="unknown_status",
    )
    answers = {name: value for name, value in row.fields.items() if name.startswith("Answer.")}
    return SubmissionDraft(
        item=item,
        line=row.line,
        identity=row.required("WorkerId"),
        status=STATUSES[status],
        raw=json.dumps(answers, ensure_ascii=False),
        accepted_at=time_of(row, "AcceptTime"),
        submitted_at=time_of(row, "SubmitTime"),
        seconds=row.number("WorkTimeInSeconds") if row.text("WorkTimeInSeconds") else None,
        judgments=tuple(
            JudgmentDraft(system, question, row.number(field := f"Answer.{answer}"), field=field)
            for (question, system), answer in layout.answers.items()
        ),
    )


def _keep(
    draft: SubmissionDraft,
    submissions: dict[tuple[str, str], SubmissionDraft],
    report: ReadingReport,
) -> None:
    key = (draft.item, draft.identity)
    other = submissions.get(key)
    if other is None:
        submissions[key] = draft
        return
    dropped, retained = (other, draft) if other.status == "rejected" else (draft, other)
    submissions[key] = retained
    report.leave_out(
        REPEATED,
        _("line {n} of item {item}, for line {kept}").format(
            n=dropped.line, item=draft.item, kept=retained.line
        ),
    )


def time_of(row: Row, field: str) -> datetime | None:
    """Amazon's `Tue Jun 13 14:13:34 PDT 2023`, or ISO 8601; absent is None."""
    text = row.text(field).strip()
    if not text:
        return None
    words = text.split()
    try:
        if len(words) == 6 and words[4] in ZONES:
            zone = timezone(timedelta(hours=ZONES[words[4]]))
            naive = " ".join([*words[:4], words[5]])
            timestamp = datetime.strptime(naive, "%a %b %d %H:%M:%S %Y").replace(tzinfo=zone)
        else:
            timestamp = datetime.fromisoformat(text)
        return timestamp.astimezone(UTC) if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise row.refuse(f"'{text[:40]}' is not a time.", field, code="not_time") from None
