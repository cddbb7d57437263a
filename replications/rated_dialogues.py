"""Published dialogues with ratings: DSTC9 and Topical-Chat.

DSTC9: the interactive evaluation, in either of the layouts it is passed around in.

*Whole dialogues*: JSON Lines with `dialog_id`, `chatbot` and `text`, and beside it a table of
ratings, a row for each rater: `dialog_id`, `chatbot`, `rater_slot`, a column for each of the
questions below that was asked, and columns that end in `_score`, which are metrics' scores of
the dialogue. An item is a dialogue, and its one candidate is what was said in it.

*Last turns*: a JSON object of lists of one length: `contexts` (each a list of turns),
`responses`, `references` ("NO REF" for none), `scores` (the raters' mean of `overall`) and
optionally `models`. An item is a context, and its one candidate the response.

A rater slot is a position and not a person: `slot-0` was another person in every dialogue.

Topical-Chat-USR in the layout of UniEval and G-Eval: a JSON array, an object a response.

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
from annotation.readers.drafts import (
    CandidateDraft,
    ItemDraft,
    JudgmentDraft,
    QuestionDraft,
    ReadingReport,
    StudyDraft,
    SubmissionDraft,
)
from annotation.readers.rows import Row
from annotation.readers.tables import kind_of, read_object, read_rows
from replications.published_data import (
    MEAN_OF_RATERS,
    Published,
    ScoresDraft,
    judged,
    rating,
    require_short,
    submission,
)

QUESTIONS = (
    rating("overall", "How good is the chatbot, all in all?", 1, 5),
    rating("consistent", "Does the chatbot stay free of contradictions?", 0, 1),
    rating("likeable", "Is the chatbot likeable?", 1, 3),
    rating("diverse", "Are its responses varied?", 1, 3),
    rating("informative", "Does the chatbot tell something?", 1, 3),
    rating("coherent", "Does the chatbot keep a thread?", 1, 3),
    rating("understanding", "Does the chatbot understand the other?", 1, 3),
    rating("flexible", "Does the chatbot adapt to the other?", 1, 3),
    rating("inquisitive", "Does the chatbot ask good questions?", 1, 3),
    rating("depth", "Does the chatbot go into a topic?", 1, 3),
    rating("error_recovery", "Does the chatbot recover from its errors?", 1, 3),
)
NAMES = ("dialog_id", "chatbot", "rater_slot")
LOWER_IS_BETTER = frozenset({"flow_score"})
NO_REFERENCE = "NO REF"
SOLE_CANDIDATE = "response"


def read_dstc9(path: Path, ratings: Path | None = None) -> Published:
    if kind_of(path) == ".json":
        if ratings is not None:
            raise ImportRefused(
                ratings, f"the ratings are in {path.name} already.", code="needless_ratings"
            )
        return Published(_last_turns(read_object(path, ("contexts", "responses", "scores"))))
    report = ReadingReport()
    dialogues = _dialogues(path, report)
    rows = _ratings(ratings, dialogues, report) if ratings else []
    scores = _metrics(rows, ratings) if ratings else ()
    questions = tuple(
        question for question in QUESTIONS if rows and question.name in rows[0].fields
    )
    study = StudyDraft(
        kind="rating",
        items=tuple(dialogues.values()),
        questions=questions or QUESTIONS[:1],
        submissions=tuple(_submission(row, questions) for row in rows),
        report=report,
    )
    return Published(study, tuple(scores))


def _dialogues(path: Path, report: ReadingReport) -> dict[str, ItemDraft]:
    dialogues: dict[str, ItemDraft] = {}
    for row in read_rows(path, ("dialog_id", "chatbot", "text"), report=report):
        key, chatbot = row.required("dialog_id"), row.required("chatbot", longest=100)
        if key in dialogues:
            raise row.refuse(
                f"this dialogue is on line {dialogues[key].line} already.",
                "dialog_id",
                code="repeated_item",
            )
        response = CandidateDraft(key=chatbot, system=chatbot, text=row.text("text").strip())
        dialogues[key] = ItemDraft(key=key, line=row.line, candidates=(response,))
    return dialogues


def _ratings(path: Path, dialogues: dict[str, ItemDraft], report: ReadingReport) -> list[Row]:
    rows = read_rows(path, NAMES, report=report)
    names = {question.name for question in QUESTIONS}
    for name in rows[0].fields:
        if name not in names | set(NAMES) and not name.endswith("_score"):
            problem = (
                f"column '{name}' is neither a question ({', '.join(sorted(names))}) nor a metric."
            )
            raise ImportRefused(path, problem, line=1, code="unknown_column")
    slots: dict[tuple[str, str], int] = {}
    for row in rows:
        dialogue = dialogues.get(row.required("dialog_id"))
        if dialogue is None:
            raise row.refuse("there is no such dialogue.", "dialog_id", code="unknown_item")
        if row.required("chatbot") != dialogue.candidates[0].key:
            problem = f"the dialogue was with '{dialogue.candidates[0].key}'."
            raise row.refuse(problem, "chatbot", code="other_system")
        slot = row.required("dialog_id"), row.required("rater_slot", longest=20)
        if slots.setdefault(slot, row.line) != row.line:
            problem = f"line {slots[slot]} has a rating of dialogue '{slot[0]}' by it already."
            raise row.refuse(problem, "rater_slot", code="repeated_rating")
    return rows


def _submission(row: Row, questions: Sequence[QuestionDraft]) -> SubmissionDraft:
    judgments = judged(row, row.required("chatbot"), questions)
    slot = f"slot-{row.required('rater_slot', longest=20)}"
    return submission(row.required("dialog_id"), slot, [row], judgments)


def _metrics(rows: list[Row], path: Path) -> Iterator[ScoresDraft]:
    for metric in [name for name in rows[0].fields if name.endswith("_score")]:
        require_short(metric, rows[0], metric)
        values: dict[tuple[str, str], float] = {}
        for row in rows:
            if not row.text(metric).strip():
                continue
            key, value = (row.required("dialog_id"), row.required("chatbot")), row.number(metric)
            if values.setdefault(key, value) != value:
                raise row.refuse(
                    "another row gives the dialogue another score.", metric, code="other_score"
                )
        signature = f"imported|file:{path.name}"
        yield ScoresDraft(metric, signature, values, metric not in LOWER_IS_BETTER)


def _last_turns(data: Row) -> StudyDraft:
    lists = {name: _list(data, name) for name in data.fields}
    n = len(lists["responses"])
    if not n:
        raise data.refuse("it holds none.", "responses", code="empty")
    for name, values in lists.items():
        if len(values) != n:
            raise data.refuse(
                f"{len(values)} entries, where responses have {n}.", name, code="other_length"
            )
    turns = [
        _Turn(
            Row(data.path, 1, {name: lists[name][position] for name in lists}, f"[{position}]"),
            position,
        )
        for position in range(n)
    ]
    return StudyDraft(
        kind="rating",
        items=tuple(turn.item() for turn in turns),
        questions=QUESTIONS[:1],
        submissions=tuple(turn.submission() for turn in turns if turn.row.text("scores").strip()),
    )


def _list(data: Row, name: str) -> list[object]:
    values = data.fields[name]
    if not isinstance(values, list):
        raise data.refuse("expected a list.", name, code="not_list")
    return values


class _Turn:
    def __init__(self, row: Row, position: int) -> None:
        self.row, self.key = row, str(position)
        self.system = row.optional("models", longest=100)
        self.candidate = self.system or SOLE_CANDIDATE

    def item(self) -> ItemDraft:
        reference = self.row.text("references").strip()
        response = CandidateDraft(
            key=self.candidate, system=self.system, text=self.row.text("responses").strip()
        )
        return ItemDraft(
            key=self.key,
            line=1,
            context=self._context(),
            reference="" if reference == NO_REFERENCE else reference,
            candidates=(response,),
        )

    def submission(self) -> SubmissionDraft:
        score, field = self.row.number("scores"), self.row.called("scores")
        judgment = JudgmentDraft(self.candidate, "overall", score, field=field)
        rated = Row(self.row.path, 1, {"overall": judgment.value})
        return submission(self.key, MEAN_OF_RATERS, [rated], [judgment])

    def _context(self) -> str:
        turns = self.row.fields["contexts"]
        if not isinstance(turns, list):
            return self.row.text("contexts").strip()
        inside = Row(self.row.path, 1, {str(n): turn for n, turn in enumerate(turns)}, "contexts")
        return "\n".join(inside.text(name).strip() for name in inside.fields)


FIELDS = ("source", "system_id", "system_output", "scores")
NO_FACT = "_nofact"
USR_QUESTIONS = (
    rating("understandability", "Can the response be understood in its context?", 0, 1),
    rating("naturalness", "Would a person say it like that?", 1, 3),
    rating("coherence", "Does the response follow from the conversation so far?", 1, 3),
    rating("engagingness", "Is the response interesting?", 1, 3),
    rating("groundedness", "Does the response use the fact it was given?", 0, 1),
    rating("overall", "How good is the response, all in all?", 1, 5),
)
# Keys of an item and a candidate.
ResponseKey = tuple[str, str]


def read_topical_chat(
    path: Path, geval: Path | None = None, *, speakers: bool = False
) -> Published:
    """The study and its scores; with `speakers`, turns begin with "A: " and "B: " in turn."""
    report = ReadingReport()
    rows = read_rows(path, FIELDS, report=report)
    dialogues = _usr_dialogues(rows)
    keys = {id(row): (key, _system(row)) for key, group in dialogues.items() for row in group}
    scores = [
        *_usr_metrics(rows, keys, path),
        *(_geval(geval, rows, keys, report) if geval else ()),
    ]
    study = StudyDraft(
        kind="rating",
        items=tuple(_item(key, group, speakers) for key, group in dialogues.items()),
        questions=USR_QUESTIONS,
        submissions=tuple(_usr_submission(key, group) for key, group in dialogues.items()),
        report=report,
    )
    return Published(study, tuple(scores))


def _usr_dialogues(rows: Sequence[Row]) -> dict[str, list[Row]]:
    names: dict[tuple[str, str], str] = {}
    dialogues: dict[str, list[Row]] = {}
    for row in rows:
        texts = row.text("source"), row.text("context")
        key = row.optional("dialog_id") or names.setdefault(texts, str(len(names)))
        group = dialogues.setdefault(key, [])
        if group and texts != (group[0].text("source"), group[0].text("context")):
            raise row.refuse(
                f"differs from line {group[0].line} of the same dialogue.", "source", code="differs"
            )
        group.append(row)
    return dialogues


def _system(row: Row) -> str:
    return row.required("system_id", longest=100)


def _item(key: str, rows: Sequence[Row], speakers: bool) -> ItemDraft:
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
    if speakers:
        turns = enumerate(dialogue.split("\n"))
        dialogue = "\n".join(f"{'AB'[n % 2]}: {turn.strip()}" for n, turn in turns)
    return ItemDraft(
        key=key,
        line=first.line,
        context=dialogue if fact in ("", NO_FACT) else f"{dialogue}\n\nFact: {fact}",
        candidates=tuple(candidates.values()),
    )


def _usr_submission(key: str, rows: list[Row]) -> SubmissionDraft:
    judgments = [
        judgment
        for row in rows
        for judgment in judged(_numbers(row, "scores"), _system(row), USR_QUESTIONS)
    ]
    return submission(key, MEAN_OF_RATERS, [_numbers(row, "scores") for row in rows], judgments)


def _numbers(row: Row, field: str) -> Row:
    """A nested object as a row whose errors name the field."""
    inside = row.fields[field]
    if not isinstance(inside, dict):
        raise row.refuse("expected an object of numbers.", field, code="not_object")
    names = {question.name for question in USR_QUESTIONS}
    if unknown := sorted(inside.keys() - names):
        raise row.refuse(
            f"'{unknown[0]}' is none of {', '.join(sorted(names))}.", field, code="unknown_question"
        )
    return Row(row.path, row.line, inside, inside=field)


def _usr_metrics(
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
        by_name.setdefault(name, {})[key] = (
            math.fsum(samples) / len(samples) if samples else math.nan
        )
    for (mode, dimension), values in by_name.items():
        signature = f"imported|mode:{mode}|weights:sampled|file:{path.name}"
        yield ScoresDraft(f"geval_{dimension}", signature, values)


def _samples(row: Row) -> list[float]:
    samples = row.fields["scores"]
    if not isinstance(samples, list):
        raise row.refuse("expected a list of numbers.", "scores", code="not_list")
    inside = Row(row.path, row.line, {f"[{n}]": each for n, each in enumerate(samples)}, "scores")
    return [inside.number(name) for name in inside.fields if inside.text(name).strip()]
