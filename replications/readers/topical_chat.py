"""Topical-Chat-USR in the layout of UniEval and G-Eval: a JSON array, an object a response.

    source         the dialogue so far
    context        the fact that the response should use, if there is one
    system_id      whose response it is
    system_output  the response
    scores         an object: the raters' mean under each of the questions below
    dialog_id      optional; without it, entries with the same source and context are a dialogue
    item_id        optional: the entry's name in a file of G-Eval's samples

Any other field that holds an object of numbers is a metric's scores: `unieval` with
`naturalness` becomes the metric unieval_naturalness. The raters' single ratings are not in
this layout, so their mean stands as one annotator's judgment.

G-Eval's samples are JSON Lines: item_id, mode, dim, scores (a list of numbers). A response's
score is their mean, which is the sum of the grades weighted by how often each was sampled.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import CandidateDraft, ItemDraft, StudyDraft, SubmissionDraft
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import read_rows
from replications.readers.published import (
    MEAN_OF_RATERS,
    Published,
    ScoresDraft,
    judged,
    rating,
    require_short,
    submission,
)

FIELDS = ("source", "system_id", "system_output", "scores")
NO_FACT = "_nofact"
QUESTIONS = (
    rating("understandability", "Can the response be understood in its context?", 0, 1),
    rating("naturalness", "Would a person say it like that?", 1, 3),
    rating("coherence", "Does the response follow from the conversation so far?", 1, 3),
    rating("engagingness", "Is the response interesting?", 1, 3),
    rating("groundedness", "Does the response use the fact it was given?", 0, 1),
    rating("overall", "How good is the response, all in all?", 1, 5),
)
ResponseKey = tuple[str, str]
"""An item's and a candidate's key."""


def read_topical_chat(path: Path, geval: Path | None = None) -> Published:
    """The dialogues, their mean ratings, and the scores of metrics beside them."""
    report = ReadingReport()
    rows = read_rows(path, FIELDS, report=report)
    dialogues = _dialogues(rows)
    keys = {id(row): (key, _system(row)) for key, group in dialogues.items() for row in group}
    scores = [*_metrics(rows, keys, path), *(_geval(geval, rows, keys, report) if geval else ())]
    study = StudyDraft(
        kind="rating",
        items=tuple(_item(key, group) for key, group in dialogues.items()),
        questions=QUESTIONS,
        submissions=tuple(_submission(key, group) for key, group in dialogues.items()),
        report=report,
    )
    return Published(study, tuple(scores))


def _dialogues(rows: Sequence[Row]) -> dict[str, list[Row]]:
    names: dict[tuple[str, str], str] = {}
    dialogues: dict[str, list[Row]] = {}
    for row in rows:
        texts = row.text("source"), row.text("context")
        key = row.optional("dialog_id") or names.setdefault(texts, str(len(names)))
        group = dialogues.setdefault(key, [])
        if group and texts != (group[0].text("source"), group[0].text("context")):
            problem = f"differs from line {group[0].line} of the same dialogue."
            raise row.refuse(problem, "source", code="differs")
        group.append(row)
    return dialogues


def _system(row: Row) -> str:
    return row.required("system_id", longest=100)


def _item(key: str, rows: Sequence[Row]) -> ItemDraft:
    first = rows[0]
    candidates: dict[str, CandidateDraft] = {}
    for row in rows:
        system = _system(row)
        if system in candidates:
            raise row.refuse(
                f"dialogue '{key}' has a response of '{system}' already.",
                "system_id",
                code="repeated_response",
            )
        text = row.text("system_output").strip()
        candidates[system] = CandidateDraft(key=system, system=system, text=text)
    fact = first.text("context").strip()
    dialogue = first.text("source").strip()
    return ItemDraft(
        key=key,
        line=first.line,
        context=dialogue if fact in ("", NO_FACT) else f"{dialogue}\n\nFact: {fact}",
        candidates=tuple(candidates.values()),
    )


def _submission(key: str, rows: list[Row]) -> SubmissionDraft:
    judgments = [
        judgment
        for row in rows
        for judgment in judged(_numbers(row, "scores"), _system(row), QUESTIONS)
    ]
    return submission(key, MEAN_OF_RATERS, [_numbers(row, "scores") for row in rows], judgments)


def _numbers(row: Row, field: str) -> Row:
    """The object in a field, as a row of its own that refuses itself by the field's name."""
    inside = row.fields[field]
    if not isinstance(inside, dict):
        raise row.refuse("expected an object of numbers.", field, code="not_object")
    names = {question.name for question in QUESTIONS}
    if unknown := sorted(inside.keys() - names):
        raise row.refuse(
            f"'{unknown[0]}' is none of {', '.join(sorted(names))}.", field, code="unknown_question"
        )
    return Row(row.path, row.line, inside, inside=field)


def _metrics(
    rows: Sequence[Row], keys: dict[int, ResponseKey], path: Path
) -> Iterator[ScoresDraft]:
    by_metric: dict[str, dict[ResponseKey, float]] = {}
    for row in rows:
        for field, inside in row.fields.items():
            if field not in FIELDS and isinstance(inside, dict):
                numbers = Row(row.path, row.line, inside, inside=field)
                for name in inside:
                    metric = f"{field}_{name}"
                    require_short(metric, numbers, name)
                    values = by_metric.setdefault(metric, {})
                    values[keys[id(row)]] = numbers.number_or_nan(name)
    for metric, values in by_metric.items():
        yield ScoresDraft(metric, f"imported|file:{path.name}", values)


def _geval(
    path: Path, rows: Sequence[Row], keys: dict[int, ResponseKey], report: ReadingReport
) -> Iterator[ScoresDraft]:
    by_id = {row.text("item_id"): keys[id(row)] for row in rows if row.text("item_id")}
    if not by_id:
        problem = "it names responses by item_id, which the file of dialogues has not."
        raise ImportRefused(path, problem, code="no_item_ids")
    by_name: dict[tuple[str, str], dict[ResponseKey, float]] = {}
    for row in read_rows(path, ("item_id", "mode", "dim", "scores"), report=report):
        key = by_id.get(row.required("item_id"))
        if key is None:
            raise row.refuse("there is no response of that name.", "item_id", code="unknown_item")
        name = row.required("mode", longest=40), row.required("dim", longest=40)
        samples = _samples(row)
        by_name.setdefault(name, {})[key] = _mean(samples)
    for (mode, dimension), values in by_name.items():
        signature = f"imported|mode:{mode}|weights:sampled|file:{path.name}"
        yield ScoresDraft(f"geval_{dimension}", signature, values)


def _samples(row: Row) -> list[float]:
    samples = row.fields["scores"]
    if not isinstance(samples, list):
        raise row.refuse("expected a list of numbers.", "scores", code="not_list")
    inside = Row(row.path, row.line, {f"[{n}]": each for n, each in enumerate(samples)}, "scores")
    return [inside.number(name) for name in inside.fields if inside.text(name).strip()]


def _mean(samples: Sequence[float]) -> float:
    return math.fsum(samples) / len(samples) if samples else math.nan
