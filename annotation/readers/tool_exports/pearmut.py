"""Pearmut's annotations: the answer of `/download-annotations`, or a campaign's JSON Lines file.

A record is a document, with an annotation of each system's text for each of its segments.
https://github.com/zouharvi/pearmut (the results of a campaign)
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from annotation.readers.drafts import CandidateDraft
from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    inner,
    inner_list,
    require_fields,
)
from error_codes import CodedText

SHAPES = (frozenset({"annotation", "item_i", "user_id"}),)
SCORE, WRITTEN = "score", "textfield"
RESET = "__RESET__"
# Documents shown before, between or after the campaign's documents.
EXTRA = ("welcome_", "random_", "goodbye_")
SPANS = CodedText("error spans are not read yet", "spans")
NOT_CAMPAIGN = CodedText("it is a tutorial, an attention check or a form", "not_campaign")
CHANGED = CodedText("the annotator changed it later", "changed")
TAKEN_BACK = CodedText("the annotator's work was reset", "reset")
SKIPPED = CodedText("the annotator skipped the segment", "skipped")
COMMENTS = CodedText("comments are not read", "comments")


def read_pearmut(export: Export) -> list[Entry]:
    rows = list(export.records())
    used = list(_last_ones(export, rows))
    return list(export.read_each(lambda row: _document(export, row), used))


def _last_ones(export: Export, rows: Iterable[Row]) -> Iterator[Row]:
    known: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        user, item = row.text("user_id"), row.text("item_i")
        campaign = row.record.rpartition("[")[0]
        if row.fields.get("annotation") == RESET:
            export.leave_out_record(TAKEN_BACK, row)
            for key in [key for key in known if key[:2] == (campaign, user)]:
                export.leave_out_record(TAKEN_BACK, known.pop(key))
        elif item.startswith(EXTRA):
            export.leave_out_record(NOT_CAMPAIGN, row)
        else:
            if (earlier := known.get((campaign, user, item))) is not None:
                export.leave_out_record(CHANGED, earlier)
            known[campaign, user, item] = row
    yield from known.values()


def _document(export: Export, row: Row) -> Iterator[Entry]:
    segments = inner_list(row, "item")
    if row.fields.get("comment"):
        export.leave_out(COMMENTS, row)
    for n, (segment, answers) in enumerate(
        zip(segments, inner_list(row, "annotation"), strict=False)
    ):
        with export.faults.noting():
            shown = inner(row, segment, f"item[{n}]")
            if answers is None:
                export.leave_out(SKIPPED, shown)
            else:
                yield _segment(export, row, shown, inner(row, answers, f"annotation[{n}]"))


def _segment(export: Export, row: Row, shown: Row, answers: Row) -> Entry:
    outputs = inner(shown, shown.fields.get("tgt"), "tgt")
    entry = Entry(
        row=row,
        item=_key(export, shown),
        annotator=row.required("user_id", longest=254),
        context=shown.text("src"),
        reference=shown.text("ref"),
        candidates=tuple(CandidateDraft(name, name, outputs.text(name)) for name in outputs.fields),
    )
    for system, value in answers.fields.items():
        if system not in outputs.fields:
            raise answers.refuse("there is not a text of this system.", system, code="no_system")
        answer = inner(answers, value, system)
        for question, each, field in _scores(answer):
            if not export.is_unwanted(question, row):
                kind: Any = "written" if field == WRITTEN else "number"
                entry.add(question, kind, each, answer.called(field), system)
        if answer.fields.get(SCORE) is None and not answer.fields.get("sliders"):
            export.report.note_missing("")
        if isinstance(spans := answer.fields.get("error_spans"), list):
            export.leave_out(SPANS, answer, len(spans))
    return entry


def _scores(answer: Row) -> Iterator[tuple[str, Any, str]]:
    if answer.fields.get(SCORE) is not None:
        yield SCORE, answer.number(SCORE), SCORE
    sliders = inner(answer, answer.fields.get("sliders") or {}, "sliders")
    for name, value in sliders.fields.items():
        if value is not None:
            if not 1 <= len(name) <= LONGEST_QUESTION:
                problem = f"a question's name has 1 to {LONGEST_QUESTION} characters."
                raise sliders.refuse(problem, name, code="too_long")
            yield name, sliders.number(name), f"sliders.{name}"
    if answer.fields.get(WRITTEN):
        yield WRITTEN, answer.text(WRITTEN), WRITTEN


def _key(export: Export, shown: Row) -> str:
    """The segment's own name, or one made of its texts."""
    if export.fields.item:
        require_fields(shown, export.fields.item)
        return "-".join(shown.required(name) for name in export.fields.item)
    if shown.fields.get("item_id") is not None:
        return shown.required("item_id")
    shows = {name: shown.fields.get(name) for name in ("doc_id", "src", "ref", "tgt")}
    text = json.dumps(shows, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
