"""A submission's ratings, each on its line beside those of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q
from django.utils.translation import gettext as _

from annotation.models import Candidate, Item, Judgment, Question, Submission

# Where a line of 120 begins and ends, so that a dot at its end is whole.
LINE_START, LINE_LENGTH = 6, 108


@dataclass(frozen=True)
class Dot:
    """A rating on its line."""

    x: float
    is_other: bool


@dataclass(frozen=True)
class Strip:
    """One rating beside those of the others, who are hollow dots."""

    question: Question
    value: str
    dots: Sequence[Dot]
    others: str


@dataclass(frozen=True)
class RatedCandidate:
    """A candidate as it was displayed, with a strip for each question."""

    letter: str
    candidate: Candidate
    strips: Sequence[Strip]


def rated_candidates(submission: Submission, item: Item) -> list[RatedCandidate]:
    """The candidates of a submission in the order the worker saw."""
    own_or_accepted = Q(submission=submission) | ~Q(submission__status=Submission.Status.REJECTED)
    judgments = (
        Judgment.objects.filter(
            own_or_accepted, submission__item=item.pk, submission__round=submission.round
        )
        .select_related("question")
        .order_by("question__position", "question", "pk")
    )
    mine: dict[tuple[int | None, int], Judgment] = {}
    others: dict[tuple[int | None, int], list[float]] = defaultdict(list)
    for one in judgments:
        if one.submission_id == submission.pk:
            mine[one.candidate_id, one.question_id] = one
        else:
            others[one.candidate_id, one.question_id].append(one.value)
    position = {key: number for number, key in enumerate(submission.shown_order)}
    candidates = item.candidates.select_related("picture").defer("picture__content")
    in_order = sorted(
        candidates, key=lambda one: (position.get(one.key, len(position)), one.position)
    )
    return [
        RatedCandidate(
            letter=_letter(number),
            candidate=candidate,
            strips=[
                _strip(judgment, sorted(others[pair]))
                for pair, judgment in mine.items()
                if pair[0] == candidate.pk
            ],
        )
        for number, candidate in enumerate(in_order)
    ]


def _letter(number: int) -> str:
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def _strip(judgment: Judgment, others: list[float]) -> Strip:
    question = judgment.question
    dots = [Dot(_x(question, value), True) for value in others]
    values = ", ".join(_value(question, value) for value in others)
    return Strip(
        question=question,
        value=_value(question, judgment.value),
        dots=[*dots, Dot(_x(question, judgment.value), False)],
        others=values or _("none yet"),
    )


def _x(question: Question, value: float) -> float:
    share = (value - question.scale_min) / (question.scale_max - question.scale_min)
    return round(LINE_START + LINE_LENGTH * share, 1)


def _value(question: Question, value: float) -> str:
    if question.categories and 0 <= value < len(question.categories):
        return str(question.categories[int(value)])
    return f"{value:g}"
