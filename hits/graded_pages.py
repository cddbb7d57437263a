"""Pages of practice: the study's own page, with feedback on each answer once all are given.

The right values travel in the page, for whoever reads its source: practice teaches, and what is
read of it after the last answer is public anyway. What must stay secret is a qualification test,
whose key the marketplace keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from annotation.models import Candidate, Item, Study
from annotation.protocols.practice import RightRange, right_range
from annotation.protocols.records import (
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
)
from annotation.protocols.scales import range_of
from hits.answers import Answer, read_answer
from hits.exceptions import QuestionTooLarge
from hits.page_contexts import value_in_words
from hits.page_texts import page_language, page_text
from hits.questions import html_question


@dataclass(frozen=True)
class RightAnswer:
    """Which answers to one question are right, about one candidate or the item; and why."""

    candidate: str | None
    question: str
    range: RightRange
    words: str
    feedback: str

    def record(self) -> dict[str, Any]:
        """As the page's script is given it."""
        return {
            "candidate": self.candidate,
            "question": self.question,
            "least": self.range.least,
            "most": self.range.most,
            "value": self.range.value,
            "right": self.words,
            "feedback": self.feedback,
        }


@dataclass(frozen=True)
class GradedAnswer:
    """An answer beside what is right; without a value where none was given."""

    right: RightAnswer
    value: float | None

    @property
    def is_right(self) -> bool:
        return self.value is not None and self.right.range.holds(self.value)


@dataclass(frozen=True)
class Grade:
    n_right: int
    n_graded: int
    is_passed: bool


@dataclass(frozen=True)
class PracticePage:
    """One page of practice: what is judged on it, and which answers are right."""

    item: Item
    document: ProtocolDocument
    practice: Practice
    right_answers: tuple[RightAnswer, ...]

    @property
    def n_needed(self) -> int:
        return -(-len(self.right_answers) * self.practice.pass_percent // 100)

    def record(self) -> dict[str, Any]:
        rows = [each.record() for each in self.right_answers]
        return {"needed": self.n_needed, "answers": rows}

    def html_question(self) -> str:
        return html_question(self.item, self.document, practice=self.record())

    def grade(self, answer_xml: str) -> Grade:
        """Of an answer; AnswerUnreadable where it is none to this page."""
        n_right = sum(each.is_right for each in self.graded(answer_xml))
        return Grade(n_right, len(self.right_answers), n_right >= self.n_needed)

    def graded(self, answer_xml: str) -> list[GradedAnswer]:
        """What was answered where an answer is right or wrong; AnswerUnreadable as `grade`."""
        values = _values(read_answer(answer_xml, self.item, self.document))
        return [
            GradedAnswer(each, values.get((each.candidate, each.question)))
            for each in self.right_answers
        ]


def _values(answer: Answer) -> dict[tuple[str | None, str], float]:
    return {
        (None if (one := judged.candidate) is None else one.blind_key, judged.question.name): (
            judged.value
        )
        for judged in answer.judgments
    }


def practice_page(study: Study, document: ProtocolDocument, number: int) -> PracticePage:
    practice = document.qualifications.practice
    if practice is None:
        raise ValueError(f"document: study '{study.slug}' has no practice.")
    case = practice.items[number]
    item = study.items.get(key=case.item) if case.item else _written_item(study, number, case)
    right = _right_answers(document, practice, case, item)
    return PracticePage(item, document, practice, tuple(right))


def practice_pages(study: Study, document: ProtocolDocument) -> Iterator[PracticePage]:
    """The pages of all of the practice's items; none where a protocol has no practice."""
    practice = document.qualifications.practice
    for number in range(len(practice.items) if practice else 0):
        yield practice_page(study, document, number)


def practice_page_errors(study: Study, document: ProtocolDocument) -> list[str]:
    """What no marketplace would take of the pages."""
    errors = []
    for number, page in enumerate(practice_pages(study, document), start=1):
        try:
            page.html_question()
        except (QuestionTooLarge, ValueError) as error:
            errors.append(f"Page {number} of practice: {error}")
    return errors


def _written_item(study: Study, number: int, case: PracticeItem) -> Item:
    """An item that is stored nowhere but in the protocol."""
    item = Item(
        # No stored item has such a key, so that no answer to one is taken for the other's.
        pk=-1 - number,
        study=study,
        key=f"practice {number + 1}",
        context=case.context,
        reference=case.reference,
        condition=case.condition,
        picture=None,
    )
    candidates = [
        Candidate(
            pk=-1 - index,
            item=item,
            key=f"candidate {index + 1}",
            blind_key=_blind_key(study, number, index),
            text=each.text,
            picture=None,
            position=index,
        )
        for index, each in enumerate(case.candidates)
    ]
    # As if they had been fetched: what is not stored cannot be.
    item._prefetched_objects_cache = {"candidates": candidates}  # type: ignore[attr-defined]
    return item


def _blind_key(study: Study, number: int, index: int) -> str:
    return sha256(f"{study.pseudonym_salt}\n{number}\n{index}".encode()).hexdigest()[:12]


def _right_in_words(question: ProtocolQuestion, right: RightRange, language: str) -> str:
    """What would be right, as a worker reads it; of a line or a number its range on the scale."""
    if question.kind in ("line", "number"):
        ends = dict.fromkeys((f"{right.least:g}", f"{right.most:g}"))
        low, high = range_of(question)
        scale = page_text("{value} on a scale from {min} to {max}", language)
        return scale.format(value="–".join(ends), min=f"{low:g}", max=f"{high:g}")
    if question.kind in ("yes_no", "selection") and not (question.yes_label or question.no_label):
        return page_text("Yes" if right.value else "No", language)
    return value_in_words(question, right.value)


def _right_answers(
    document: ProtocolDocument, practice: Practice, case: PracticeItem, item: Item
) -> Iterator[RightAnswer]:
    own = {each.key: each.blind_key for each in item.candidates.all()}
    keys = [each.candidate or f"candidate {n}" for n, each in enumerate(case.candidates, start=1)]
    holders: list[tuple[str | None, PracticeCandidate | PracticeItem]] = [
        (own[key], each) for key, each in zip(keys, case.candidates, strict=True)
    ]
    for question in document.questions:
        for blind_key, holder in [*holders, (None, case)]:
            if (value := holder.scores.get(question.name)) is not None:
                right = right_range(question, value, practice.tolerance_percent)
                words = _right_in_words(question, right, page_language(document.language))
                feedback = holder.feedback.get(question.name, "").strip()
                yield RightAnswer(blind_key, question.name, right, words, feedback)
