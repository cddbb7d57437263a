"""Everyone's judgments of one item side by side."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from annotation.models import Annotator, Candidate, Item, Judgment, Question


@dataclass(frozen=True)
class CandidateRow:
    """A candidate with one value for each annotator who saw it, in the table's order."""

    candidate: Candidate
    values: tuple[str, ...]
    mean: float | None


@dataclass(frozen=True)
class QuestionTable:
    """What was said about each candidate of an item under one question in one round."""

    question: Question
    round: int
    annotators: tuple[Annotator, ...]
    rows: tuple[CandidateRow, ...]


def candidates_with_judgments(item: Item, candidates: Sequence[Candidate]) -> list[QuestionTable]:
    """A table of the item's candidates for each question and round in which it was judged, rejected
    work left out."""
    rows = (
        Judgment.objects.filter(candidate__item=item)
        .accepted()
        .select_related("question", "submission__annotator")
        .order_by("question__position", "submission__round", "submission__annotator__pseudonym")
    )
    tables: dict[tuple[Question, int], list[Judgment]] = defaultdict(list)
    for judgment in rows:
        tables[judgment.question, judgment.submission.round].append(judgment)
    return [
        _table(question, round, judgments, candidates)
        for (question, round), judgments in tables.items()
    ]


def _table(
    question: Question, round: int, judgments: list[Judgment], candidates: Sequence[Candidate]
) -> QuestionTable:
    annotators = tuple(dict.fromkeys(judgment.submission.annotator for judgment in judgments))
    values = {(j.candidate_id, j.submission.annotator): j.value for j in judgments}
    rows = []
    for candidate in candidates:
        row_values = [values.get((candidate.pk, annotator)) for annotator in annotators]
        numbers = [value for value in row_values if value is not None]
        mean = sum(numbers) / len(numbers) if numbers else None
        texts = tuple(value_text(question, value) for value in row_values)
        rows.append(CandidateRow(candidate, texts, None if question.categories else mean))
    return QuestionTable(question, round, annotators, tuple(rows))


def value_text(question: Question, value: float | None) -> str:
    """A value as its question calls it: a category's label, or a number; a dash for none."""
    if value is None:
        return "–"
    if question.categories and value.is_integer() and 0 <= value < len(question.categories):
        return str(question.categories[int(value)])
    return f"{value:g}"
