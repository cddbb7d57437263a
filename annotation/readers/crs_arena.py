"""CRSArena-Eval's file of labelled dialogues with conversational recommenders, by the layout that
its README documents (informagi/face, dataset/README.md).

One label an aspect, aggregated of several annotators there, about each of the assistant's turns or
about the dialogue as a whole. Which recommender it was stands before the last part of `conv_id`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    QuestionDraft,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from error_codes import CodedText

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


AGGREGATES = CodedText(
    "Each label is an aggregate of several annotators, who are not in the file: it is imported as "
    f"a judgment of the one annotator '{ANNOTATOR}'.",
    "aggregates",
)
UNDOCUMENTED = CodedText("the layout does not document the aspect", "undocumented_aspect")


def read_crs_arena(path: Path, level: Level) -> StudyDraft:
    report = ReadingReport()
    report.note(AGGREGATES)
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
    judged = [one for one in submissions if one.judgments]
    return StudyDraft(
        kind="rating",
        items=items,
        questions=QUESTIONS[level],
        submissions=judged,
        report=report,
    )


def _utterances(row: Row) -> list[Row]:
    turns = row.fields["dialogue"]
    if not isinstance(turns, list) or not turns:
        raise row.refuse("expected an array of turns.", "dialogue", code="not_turns")
    rows = [_inside(row, f"dialogue[{number}]", turn) for number, turn in enumerate(turns)]
    for turn in rows:
        if (role := turn.text("role")) not in SPEAKERS:
            raise turn.refuse(
                f"'{role[:40]}' is neither USER nor ASST.", "role", code="unknown_role"
            )
    return rows


def _inside(row: Row, name: str, value: Any) -> Row:
    if not isinstance(value, dict):
        raise row.refuse("expected a JSON object in braces.", name, code="not_object")
    return row.child(value, row.called(name))


def _system(row: Row, key: str) -> str:
    system, _, rest = key.rpartition("_")
    if not system or not rest:
        problem = f"'{key[:60]}' does not begin with a recommender's name and an underscore."
        raise row.refuse(problem, "conv_id", code="no_system")
    return system


def _turns(row: Row, key: str, turns: list[Row]) -> Iterator[tuple[ItemDraft, Row]]:
    """The assistant's turns, each in the light of what was said before."""
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
        yield item, _inside(turn, OF_TURN, turn.fields.get(OF_TURN))


def _dialogue(row: Row, key: str, turns: list[Row]) -> Iterator[tuple[ItemDraft, Row]]:
    system = _system(row, key)
    candidate = CandidateDraft(key=system, system=system, text=_text(turns))
    item = ItemDraft(key=key, line=row.line, candidates=(candidate,))
    yield item, _inside(row, OF_DIALOGUE, row.fields[OF_DIALOGUE])


def _text(turns: list[Row]) -> str:
    return "\n".join(f"{SPEAKERS[one.text('role')]}: {one.text('utterance')}" for one in turns)


def _submission(
    item: ItemDraft, labels: Row, questions: tuple[QuestionDraft, ...], report: ReadingReport
) -> SubmissionDraft:
    names = [question.name for question in questions]
    for name in labels.fields:
        if name not in names:
            report.leave_out_part(UNDOCUMENTED, labels.called(name))
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
    if not 0 <= value <= question.scale_max:
        problem = f"{value:g} is outside the scale, 0 to {question.scale_max:g}."
        raise labels.refuse(problem, question.name, code="off_scale")
    return JudgmentDraft(
        candidate=item.candidates[0].key,
        question=question.name,
        value=value,
        line=item.line,
        field=question.name,
    )
