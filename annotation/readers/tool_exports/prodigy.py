"""Prodigy's annotations as `prodigy db-out` writes them: JSON Lines, a record per annotation.

https://prodi.gy/docs/api-interfaces (choice, classification, text_input; spans are counted)
"""

from collections.abc import Iterator
from typing import Any

from annotation.readers.rows import Row
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    inner,
    item_key,
    named_texts,
    require_fields,
    texts,
)
from error_codes import CodedText

SHAPES = (frozenset({"_input_hash", "answer"}), frozenset({"_task_hash", "answer"}))
ANNOTATORS = ("_annotator_id", "_session_id")
CHOICE, WRITTEN = "choice", "user_input"
SOLE_ANNOTATOR = "prodigy"
TEXTS = ("text", "html", "image", "audio", "video")
REGIONS = ("spans", "relations", "audio_spans")
SPANS = CodedText("spans and relations are not read yet", "spans")
IGNORED = CodedText("the annotator ignored the task", "ignored")
REJECTED = CodedText("the annotator rejected the task", "rejected")
NO_ANNOTATOR = CodedText(
    "Records without _annotator_id and _session_id are read as one annotator's.", "no_annotator"
)


def read_prodigy(export: Export) -> list[Entry]:
    return list(export.read_each(lambda row: _entries(export, row)))


def _entries(export: Export, row: Row) -> Iterator[Entry]:
    meta = inner(row, row.fields.get("meta") or {}, "meta")
    shown = row.child(meta.fields | row.fields, row.inside)
    require_fields(shown, named_texts(export.fields))
    text = next((row.text(name) for name in TEXTS if name in row.fields), "")
    about = texts(shown, export.fields, response=text)
    entry = Entry(
        row=row,
        item=item_key(shown, export.fields.item or ("_input_hash",)),
        annotator=_annotator(export, row),
        **about,
    )
    for name in REGIONS:
        if isinstance(regions := row.fields.get(name), list):
            export.leave_out(SPANS, row, len(regions))
    answer = row.fields.get("answer", "accept")
    is_choice = "accept" in row.fields or "options" in row.fields
    if answer == "ignore":
        export.leave_out_record(IGNORED, row)
    elif answer == "reject" and is_choice:
        export.leave_out_record(REJECTED, row)
    else:
        for question, kind, value, field in _answers(row, is_accepted=answer == "accept"):
            if not export.is_unwanted(question, row):
                entry.add(question, kind, value, row.called(field))
    yield entry


def _annotator(export: Export, row: Row) -> str:
    if export.fields.annotator:
        return row.required(export.fields.annotator, longest=254)
    name = next((name for name in ANNOTATORS if row.fields.get(name)), "")
    if not name:
        export.report.note(NO_ANNOTATOR)
    return row.required(name, longest=254) if name else SOLE_ANNOTATOR


def _answers(row: Row, *, is_accepted: bool) -> Iterator[tuple[str, Any, Any, str]]:
    if "accept" in row.fields:
        chosen = row.fields["accept"]
        labels = [str(each) for each in (chosen if isinstance(chosen, list) else [chosen])]
        yield CHOICE, "categories", list(dict.fromkeys(labels)), "accept"
    elif row.fields.get("label"):
        # A binary question: whether the label fits.
        label = row.required("label", longest=LONGEST_QUESTION)
        yield label, "categories", ["yes" if is_accepted else "no"], "answer"
    if row.fields.get(WRITTEN):
        yield WRITTEN, "written", row.text(WRITTEN), WRITTEN
