"""Items in files of stated layouts: responses, pooled alternatives, and CRSArena-Eval's dialogues.

Responses are a long table: item, system, context, response, reference, condition. Alternatives are
JSON Lines of targets with their pooled candidates and pictures. CRSArena-Eval's file has the layout
that its README documents (informagi/face, dataset/README.md): one label an aspect, aggregated of
several annotators there, about each of the assistant's turns or about the dialogue as a whole.
Which recommender it was stands before the last part of `conv_id`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    PictureDraft,
    QuestionDraft,
    ReadingReport,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.pictures import Folder, read_picture
from annotation.readers.rows import Row, inner
from annotation.readers.tables import read_rows
from error_codes import CodedText
from presentation.numbers import group_values

SHARED = ("context", "reference", "condition")

APPROPRIATENESS = QuestionDraft(
    name="appropriateness",
    wording="How appropriate is the response to the conversation so far?",
    low_label="Not at all appropriate",
    high_label="Completely appropriate",
)


def read_responses(
    path: Path, questions: tuple[QuestionDraft, ...] = (APPROPRIATENESS,)
) -> StudyDraft:
    report = ReadingReport()
    rows = read_rows(path, ("item", "system", "context", "response"), report=report)
    return StudyDraft(
        kind="rating",
        items=tuple(
            _response_item(key, rows)
            for key, rows in group_values((row.required("item"), row) for row in rows).items()
        ),
        questions=questions,
        report=report,
    )


def _response_item(key: str, rows: list[Row]) -> ItemDraft:
    first = rows[0]
    candidates: dict[str, CandidateDraft] = {}
    for row in rows:
        if row is not first:
            _require_agreement(first, row)
        system = row.required("system", longest=100)
        row.refuse_unless(
            system not in candidates,
            f"item '{key}' has a response of '{system}' already.",
            "system",
            code="repeated_response",
        )
        candidates[system] = CandidateDraft(key=system, system=system, text=row.text("response"))
    return ItemDraft(
        key=key,
        line=first.line,
        context=first.text("context"),
        reference=first.text("reference"),
        condition=first.optional("condition", longest=64),
        candidates=tuple(candidates.values()),
    )


def _require_agreement(first: Row, row: Row) -> None:
    for field in SHARED:
        is_same = row.fields.get(field) == first.fields.get(field)
        if not is_same and row.text(field) != first.text(field):
            raise row.refuse(
                f"differs from line {first.line} of the same item.", field, code="differs"
            )


MOST_CANDIDATES = 100

ACCEPTABLE = QuestionDraft(
    name="acceptable",
    wording="Tick every product that would be an acceptable alternative to the target.",
    level="nominal",
    scale_max=1.0,
    categories=("no", "yes"),
)


def read_alternatives(
    path: Path, *, allows_target: bool = False, allows_repeats: bool = False
) -> StudyDraft:
    """The targets of a JSON Lines file; pictures are files named relative to it.

    A pool that holds its own target, or one picture twice, is refused unless it is allowed: the
    judgments of such a pool are worth less than they seem.
    """
    report = ReadingReport()
    items: dict[str, ItemDraft] = {}
    for row in read_rows(path, ("item", "target", "candidates"), report=report):
        item = _pool_item(row)
        if not allows_target:
            _refuse_target(row, item)
        if not allows_repeats:
            _refuse_repeats(row, item)
        if item.key in items:
            raise row.refuse(
                f"item '{item.key}' is on line {items[item.key].line} already.",
                "item",
                code="repeated_item",
            )
        items[item.key] = item
    return StudyDraft(
        kind="alternatives",
        items=tuple(items.values()),
        questions=(ACCEPTABLE,),
        report=report,
    )


def _pool_item(row: Row) -> ItemDraft:
    target = inner(row, row.fields["target"], "target")
    pool = row.fields["candidates"]
    if not isinstance(pool, list) or not 1 <= len(pool) <= MOST_CANDIDATES:
        raise row.refuse(
            f"expected a list of 1 to {MOST_CANDIDATES} objects.", "candidates", code="not_pool"
        )
    candidates: dict[str, CandidateDraft] = {}
    for index, entry in enumerate(pool):
        part = inner(row, entry, f"candidates[{index}]")
        candidate = CandidateDraft(
            key=part.required("key"),
            system=part.optional("system", longest=100),
            text=part.required("title", longest=1000),
            picture=_picture(part),
        )
        part.refuse_unless(
            candidate.key not in candidates,
            f"'{candidate.key}' is listed twice.",
            "key",
            code="repeated_candidate",
        )
        candidates[candidate.key] = candidate
    return ItemDraft(
        key=row.required("item"),
        line=row.line,
        context=target.required("title", longest=1000),
        condition=row.optional("condition", longest=64),
        picture=_picture(target),
        candidates=tuple(candidates.values()),
    )


def _refuse_target(row: Row, item: ItemDraft) -> None:
    for index, candidate in enumerate(item.candidates):
        if candidate.picture is not None and candidate.picture == item.picture:
            raise row.refuse(
                f"'{candidate.key}' shows the target's own picture. Take it out of the pool, or "
                "allow it with --allow-target-in-pool.",
                f"candidates[{index}].image",
                code="target_in_pool",
            )


def _refuse_repeats(row: Row, item: ItemDraft) -> None:
    known: dict[PictureDraft, str] = {}
    for index, candidate in enumerate(item.candidates):
        if candidate.picture is None:
            continue
        if candidate.picture in known:
            raise row.refuse(
                f"'{candidate.key}' shows the same picture as '{known[candidate.picture]}'. Take "
                "one of them out, or allow it with --allow-same-pictures.",
                f"candidates[{index}].image",
                code="same_picture",
            )
        known[candidate.picture] = candidate.key


def _picture(entry: Row) -> PictureDraft | None:
    return read_picture(entry, "image", Folder(entry.path.parent))


Level = Literal["turns", "dialogues"]
ANNOTATOR = "aggregated"
FIELDS = ("conv_id", "dialogue", "dial_level_aggregated")
OF_TURN, OF_DIALOGUE = "turn_level_aggregated", "dial_level_aggregated"
SPEAKERS = {"USER": "User", "ASST": "Assistant"}


def _question(name: str, highest: int, wording: str) -> QuestionDraft:
    return QuestionDraft(
        name=name, wording=wording, level="ordinal", scale_min=0, scale_max=float(highest)
    )


QUESTIONS: dict[Level, tuple[QuestionDraft, ...]] = {
    "turns": (
        _question("relevance", 3, "Does the response make sense and meet the user's interests?"),
        _question(
            "interestingness", 2, "Does the response make the user want to go on with the dialogue?"
        ),
    ),
    "dialogues": (
        _question(
            "understanding", 2, "Does the assistant understand the request and try to fulfil it?"
        ),
        _question("task_completion", 2, "Does the user accept a recommendation in the end?"),
        _question("interest_arousal", 2, "Does the assistant spark interest in something new?"),
        _question(
            "efficiency", 1, "Does a suggestion fit the user's interests within three interactions?"
        ),
        _question("dialogue_overall", 4, "What is the overall impression of the assistant?"),
    ),
}


def read_crs_arena(path: Path, level: Level) -> StudyDraft:
    report = ReadingReport()
    report.note(
        CodedText(
            "Each label is an aggregate of several annotators, who are not in the file: it is "
            f"imported as a judgment of the one annotator '{ANNOTATOR}'.",
            "aggregates",
        )
    )
    items: list[ItemDraft] = []
    submissions: list[SubmissionDraft] = []
    lines: dict[str, int] = {}
    for row in read_rows(path, FIELDS, report=report):
        key = row.required("conv_id", longest=150)
        if key in lines:
            raise row.refuse(
                f"'{key}' is on line {lines[key]} already.", "conv_id", code="repeated_item"
            )
        lines[key] = row.line
        parts = _turns if level == "turns" else _dialogue
        for item, labels in parts(row, key, _utterances(row)):
            items.append(item)
            submissions.append(_submission(item, labels, QUESTIONS[level], report))
    return StudyDraft(
        kind="rating",
        items=items,
        questions=QUESTIONS[level],
        submissions=[one for one in submissions if one.judgments],
        report=report,
    )


def _utterances(row: Row) -> list[Row]:
    turns = row.fields["dialogue"]
    if not isinstance(turns, list) or not turns:
        raise row.refuse("expected an array of turns.", "dialogue", code="not_turns")
    rows = [inner(row, turn, f"dialogue[{number}]") for number, turn in enumerate(turns)]
    for turn in rows:
        if (role := turn.text("role")) not in SPEAKERS:
            raise turn.refuse(
                f"'{role[:40]}' is neither USER nor ASST.", "role", code="unknown_role"
            )
    return rows


def _system(row: Row, key: str) -> str:
    system, _, rest = key.rpartition("_")
    if not system or not rest:
        raise row.refuse(
            f"'{key[:60]}' does not begin with a recommender's name and an underscore.",
            "conv_id",
            code="no_system",
        )
    return system


def _turns(row: Row, key: str, turns: list[Row]) -> Iterator[tuple[ItemDraft, Row]]:
    system = _system(row, key)
    for number, turn in enumerate(turns):
        if turn.text("role") != "ASST":
            continue
        item = ItemDraft(
            key=f"{key} {number}",
            line=row.line,
            context=_text(turns[:number]),
            candidates=(CandidateDraft(key=system, system=system, text=turn.text("utterance")),),
        )
        yield item, inner(turn, turn.fields.get(OF_TURN), OF_TURN)


def _dialogue(row: Row, key: str, turns: list[Row]) -> Iterator[tuple[ItemDraft, Row]]:
    system = _system(row, key)
    candidate = CandidateDraft(key=system, system=system, text=_text(turns))
    item = ItemDraft(key=key, line=row.line, candidates=(candidate,))
    yield item, inner(row, row.fields[OF_DIALOGUE], OF_DIALOGUE)


def _text(turns: list[Row]) -> str:
    return "\n".join(f"{SPEAKERS[one.text('role')]}: {one.text('utterance')}" for one in turns)


def _submission(
    item: ItemDraft, labels: Row, questions: tuple[QuestionDraft, ...], report: ReadingReport
) -> SubmissionDraft:
    names = [question.name for question in questions]
    for name in labels.fields:
        if name not in names:
            report.leave_out_part(
                CodedText("the layout does not document the aspect", "undocumented_aspect"),
                labels.called(name),
            )
    judgments = [_judgment(item, labels, question, report) for question in questions]
    return SubmissionDraft(
        item=item.key,
        annotator=ANNOTATOR,
        line=item.line,
        status="approved",
        raw=json.dumps(labels.fields, ensure_ascii=False),
        judgments=tuple(one for one in judgments if one is not None),
    )


def _judgment(
    item: ItemDraft, labels: Row, question: QuestionDraft, report: ReadingReport
) -> JudgmentDraft | None:
    if labels.fields.get(question.name) is None:
        report.note_missing("")
        return None
    value = labels.number(question.name)
    labels.refuse_unless(
        0 <= value <= question.scale_max,
        f"{value:g} is outside the scale, 0 to {question.scale_max:g}.",
        question.name,
        code="off_scale",
    )
    return JudgmentDraft(
        candidate=item.candidates[0].key,
        question=question.name,
        value=value,
        line=item.line,
        field=question.name,
    )
