"""Exports with a record per task: Prodigy's, Pearmut's and Prolific's.

Prodigy: JSON Lines of `prodigy db-out`, a record per annotation; spans are counted.
https://prodi.gy/docs/api-interfaces (choice, classification, text_input)
Pearmut: the answer of `/download-annotations`, or a campaign's JSON Lines file. A record is a
document, with an annotation of each system's text for each of its segments.
https://github.com/zouharvi/pearmut (the results of a campaign)
Prolific: submissions with demographics, and responses of the AI Task Builder.
https://docs.prolific.com/api-reference/ai-task-builder/get-task-builder-batch-task-responses
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from annotation.readers.drafts import CandidateDraft
from annotation.readers.rows import Row, inner, inner_list, item_key
from annotation.readers.tool_exports.entries import (
    LONGEST_QUESTION,
    Entry,
    Export,
    iso_time,
    named_texts,
    require_fields,
    texts,
)
from annotation.readers.tool_exports.surveys import read_survey
from error_codes import CodedText

PRODIGY = (frozenset({"_input_hash", "answer"}), frozenset({"_task_hash", "answer"}))
ANNOTATORS = ("_annotator_id", "_session_id")
CHOICE, USER_INPUT = "choice", "user_input"
TEXTS = ("text", "html", "image", "audio", "video")
REGIONS = ("spans", "relations", "audio_spans")
SPANS = CodedText("spans and relations are not read yet", "spans")
REJECTED = CodedText("the annotator rejected the task", "rejected")


def read_prodigy(export: Export) -> list[Entry]:
    return list(export.read_each(lambda row: _entries(export, row)))


def _entries(export: Export, row: Row) -> Iterator[Entry]:
    shown = row.child(
        inner(row, row.fields.get("meta") or {}, "meta").fields | row.fields, row.inside
    )
    require_fields(shown, named_texts(export.fields))
    text = next((row.text(name) for name in TEXTS if name in row.fields), "")
    entry = Entry(
        row=row,
        item=item_key(shown, export.fields.item or ("_input_hash",)),
        annotator=_annotator(export, row),
        **texts(shown, export.fields, response=text),
    )
    for name in REGIONS:
        if isinstance(regions := row.fields.get(name), list):
            export.leave_out(SPANS, row, len(regions))
    answer = row.fields.get("answer", "accept")
    is_choice = "accept" in row.fields or "options" in row.fields
    if answer == "ignore":
        export.leave_out_record(CodedText("the annotator ignored the task", "ignored"), row)
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
        export.report.note(
            CodedText(
                "Records without _annotator_id and _session_id are read as one annotator's.",
                "no_annotator",
            )
        )
    return row.required(name, longest=254) if name else "prodigy"


def _answers(row: Row, *, is_accepted: bool) -> Iterator[tuple[str, Any, Any, str]]:
    if "accept" in row.fields:
        chosen = row.fields["accept"]
        labels = [str(each) for each in (chosen if isinstance(chosen, list) else [chosen])]
        yield CHOICE, "categories", list(dict.fromkeys(labels)), "accept"
    elif row.fields.get("label"):
        # A binary question: whether the label fits.
        label = row.required("label", longest=LONGEST_QUESTION)
        yield label, "categories", ["yes" if is_accepted else "no"], "answer"
    if row.fields.get(USER_INPUT):
        yield USER_INPUT, "written", row.text(USER_INPUT), USER_INPUT


PEARMUT = (frozenset({"annotation", "item_i", "user_id"}),)
SCORE, WRITTEN = "score", "textfield"
RESET = "__RESET__"
# Documents shown before, between or after the campaign's documents.
EXTRA = ("welcome_", "random_", "goodbye_")
TAKEN_BACK = CodedText("the annotator's work was reset", "reset")
SKIPPED = CodedText("the annotator skipped the segment", "skipped")
COMMENTS = CodedText("comments are not read", "comments")


def read_pearmut(export: Export) -> list[Entry]:
    used = list(_last_ones(export, list(export.records())))
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
            export.leave_out_record(
                CodedText("it is a tutorial, an attention check or a form", "not_campaign"), row
            )
        else:
            if (earlier := known.get((campaign, user, item))) is not None:
                export.leave_out_record(
                    CodedText("the annotator changed it later", "changed"), earlier
                )
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
        answers.refuse_unless(
            system in outputs.fields,
            "there is not a text of this system.",
            system,
            code="no_system",
        )
        answer = inner(answers, value, system)
        for question, each, field in _scores(answer):
            if not export.is_unwanted(question, row):
                kind: Any = "written" if field == WRITTEN else "number"
                entry.add(question, kind, each, answer.called(field), system)
        if answer.fields.get(SCORE) is None and not answer.fields.get("sliders"):
            export.report.note_missing("")
        if isinstance(spans := answer.fields.get("error_spans"), list):
            export.leave_out(CodedText("error spans are not read yet", "spans"), answer, len(spans))
    return entry


def _scores(answer: Row) -> Iterator[tuple[str, Any, str]]:
    if answer.fields.get(SCORE) is not None:
        yield SCORE, answer.number(SCORE), SCORE
    sliders = inner(answer, answer.fields.get("sliders") or {}, "sliders")
    for name, value in sliders.fields.items():
        if value is not None:
            sliders.refuse_unless(
                1 <= len(name) <= LONGEST_QUESTION,
                f"a question's name has 1 to {LONGEST_QUESTION} characters.",
                name,
                code="too_long",
            )
            yield name, sliders.number(name), f"sliders.{name}"
    if answer.fields.get(WRITTEN):
        yield WRITTEN, answer.text(WRITTEN), WRITTEN


def _key(export: Export, shown: Row) -> str:
    if export.fields.item:
        require_fields(shown, export.fields.item)
        return "-".join(shown.required(name) for name in export.fields.item)
    if shown.fields.get("item_id") is not None:
        return shown.required("item_id")
    shows = {name: shown.fields.get(name) for name in ("doc_id", "src", "ref", "tgt")}
    return hashlib.sha256(
        json.dumps(shows, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()[:16]


PROLIFIC = (frozenset({"participant_id", "task_id", "response"}),)
CHOICES = ("multiple_choice", "multiple_choice_with_free_text")
WORDS = ("free_text", "free_text_with_unit")
FILES = CodedText("files that participants sent are not read", "files")


def read_prolific(export: Export) -> list[Entry]:
    rows = list(export.records())
    if rows and "response" not in rows[0].fields:
        return read_survey(export, "prolific", rows)
    return list(export.read_each(lambda row: _response(export, row), rows))


def _response(export: Export, row: Row) -> Iterator[Entry]:
    shown = row.child(
        inner(row, row.fields.get("metadata") or {}, "metadata").fields | row.fields, row.inside
    )
    entry = Entry(
        row=row,
        item=item_key(shown, export.fields.item or ("task_id",)),
        annotator=row.required("participant_id", longest=254),
        submitted_at=iso_time(row, "created_at"),
        **texts(shown, export.fields),
    )
    response = inner(row, row.fields.get("response"), "response")
    question = response.required("instruction_id", longest=LONGEST_QUESTION)
    kind = response.required("type")
    answers = [
        inner(response, value, f"answer[{n}]")
        for n, value in enumerate(inner_list(response, "answer"))
    ]
    field = response.called("answer")
    if not export.is_unwanted(question, row):
        values = [answer.text("value").strip() for answer in answers]
        if kind in CHOICES:
            entry.add(question, "categories", list(dict.fromkeys(filter(None, values))), field)
        elif kind in WORDS:
            units = [f"{v} {a.text('unit')}".strip() for v, a in zip(values, answers, strict=True)]
            entry.add(question, "written", "\n".join(units), field)
        else:
            export.leave_out(FILES, row, max(1, len(answers)))
    export.leave_out(
        CodedText("explanations of answers are not read", "explanations"),
        row,
        sum(bool(each.fields.get("explanation")) for each in answers),
    )
    yield entry
