"""The Protocol page's part for practice on the study's own page: what was typed, what its buttons
change, and each page of practice as a fold of the form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from annotation.models import Study
from annotation.protocols.faults import Fault
from annotation.protocols.fields import ITEM
from annotation.protocols.practice import PATH, PRACTISED_KINDS
from annotation.protocols.records import (
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
)
from hits.pages.check_form import number_of
from hits.pages.qualification_test_form import (
    ScoreRow,
    count_in,
    score_rows,
    scores_of,
    texts_of,
)

Data = Mapping[str, str]
MOST_PAGES = 20
MOST_CANDIDATES = 50
NUMBERS = ("pass_percent", "tolerance_percent", "attempts", "most_workers")
TEXTS = ("item", "context", "reference", "condition")
# Before somebody writes another; a reward must be one, and nothing is launched unread.
FIRST_REWARD_USD = 0.1


@dataclass(frozen=True)
class AnswerRow:
    """The expected answer to one question, and what is said of it."""

    score: ScoreRow
    feedback: str


@dataclass(frozen=True)
class CandidateRow:
    """A candidate with its expected answers; the last one is empty, to be filled in."""

    prefix: str
    candidate: PracticeCandidate | None
    answers: list[AnswerRow]


@dataclass(frozen=True)
class PracticePageRow:
    """A page of practice as a fold of the form."""

    index: int
    item: PracticeItem
    answers: list[AnswerRow]
    candidates: list[CandidateRow]
    keys: list[str]
    has_faults: bool

    @property
    def prefix(self) -> str:
        return f"p{self.index}-"

    @property
    def number(self) -> int:
        return self.index + 1

    @property
    def title(self) -> str:
        """What it is of: the study's item, or the beginning of what is written."""
        texts = (self.item.item, self.item.context, *(each.text for each in self.item.candidates))
        return next((text.strip()[:60] for text in texts if text.strip()), "")


def practice_rows(
    study: Study, document: ProtocolDocument, faults: Sequence[Fault]
) -> list[PracticePageRow]:
    """Each page of practice, with an empty candidate after its own."""
    practice = document.qualifications.practice
    if practice is None:
        return []
    wrong = {fault.path[3] for fault in faults if fault.path[:2] == PATH and fault.path[3:]}
    keys: dict[str, list[str]] = {}
    names = [each.item for each in practice.items if each.item]
    rows = study.items.filter(key__in=names) if names else study.items.none()
    for item, candidate in rows.order_by("candidates__position", "candidates__pk").values_list(
        "key", "candidates__key"
    ):
        keys.setdefault(item, []).append(candidate)
    return [
        PracticePageRow(
            index,
            item,
            _answer_rows(document, item, is_of_item=True),
            list(_candidate_rows(document, index, item)),
            keys.get(item.item, []),
            index in wrong,
        )
        for index, item in enumerate(practice.items)
    ]


def _candidate_rows(
    document: ProtocolDocument, index: int, item: PracticeItem
) -> Sequence[CandidateRow]:
    candidates: list[PracticeCandidate | None] = [*item.candidates, None]
    return [
        CandidateRow(
            f"p{index}-c{number}-",
            each,
            _answer_rows(document, each or PracticeCandidate(), is_of_item=False),
        )
        for number, each in enumerate(candidates[:MOST_CANDIDATES])
    ]


def _answer_rows(
    document: ProtocolDocument, holder: PracticeItem | PracticeCandidate, *, is_of_item: bool
) -> list[AnswerRow]:
    questions = [each for each in document.questions if _is_answered(each, is_of_item)]
    scores = {**dict.fromkeys(holder.feedback), **holder.scores}
    return [
        AnswerRow(row, holder.feedback.get(row.name, ""))
        for row in score_rows(document, questions, scores)
    ]


def _is_answered(question: ProtocolQuestion, is_of_item: bool) -> bool:
    is_about_item = question.about == ITEM and not question.options.is_comparison
    return question.kind in PRACTISED_KINDS and is_about_item is is_of_item


def practice_in(data: Data) -> dict[str, Any]:
    """What the form says of practice; nothing where it has no part for it."""
    if "practice-n_pages" not in data:
        return {}
    values: dict[str, Any] = {"title": data.get("practice-title", "").strip()}
    values["reward_usd"] = number_of(data.get("practice-reward_usd", ""))
    for name in NUMBERS:
        number = number_of(data.get(f"practice-{name}", ""))
        values[name] = None if number is None else int(number)
    n_pages = count_in(data, "practice-n_pages", MOST_PAGES)
    values["items"] = [_page(data, f"p{index}-") for index in range(n_pages)]
    return {"practice": {name: each for name, each in values.items() if each is not None}}


def _page(data: Data, prefix: str) -> dict[str, Any]:
    page: dict[str, Any] = {name: _text(data, f"{prefix}{name}") for name in TEXTS}
    page["item"] = page["item"].strip()
    n = count_in(data, f"{prefix}n_candidates", MOST_CANDIDATES)
    candidates = [_candidate(data, f"{prefix}c{number}-") for number in range(n)]
    page["candidates"] = [each for each in candidates if any(each.values())]
    return page | _answers(data, prefix)


def _candidate(data: Data, prefix: str) -> dict[str, Any]:
    texts = {"candidate": _text(data, f"{prefix}candidate").strip()}
    texts["text"] = _text(data, f"{prefix}text")
    return texts | _answers(data, prefix)


def _answers(data: Data, prefix: str) -> dict[str, Any]:
    feedback = texts_of(data, f"{prefix}feedback-")
    return {"scores": scores_of(data, f"{prefix}score-"), "feedback": feedback}


def _text(data: Data, name: str) -> str:
    """Nothing of what is blank: it is no candidate."""
    text = data.get(name, "").replace("\r\n", "\n")
    return text if text.strip() else ""


# What the buttons do to practice.


def is_of_practice(action: str) -> bool:
    return action.partition(":")[0].endswith("-practice")


def change_practice(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
    """The document after an action such as `remove-page-practice:0`, and the page that it is
    about."""
    name, _colon, address = action.partition(":")
    before = document.qualifications.practice
    practice = before or Practice(FIRST_REWARD_USD, (PracticeItem(),))
    pages = list(practice.items)
    index = min(int(address[:2]) if address.isdecimal() else 0, max(len(pages) - 1, 0))
    if name == "add-page-practice" and before is not None and len(pages) < MOST_PAGES:
        pages.append(PracticeItem())
        index = len(pages) - 1
    elif name == "remove-page-practice" and pages:
        del pages[index]
        index = max(index - 1, 0)
    after = None if name == "remove-practice" else replace(practice, items=tuple(pages))
    qualifications = replace(document.qualifications, practice=after)
    return replace(document, qualifications=qualifications), index


def field_of_practice(path: tuple[str | int, ...]) -> str:
    """The form's field that a fault of practice is about."""
    match path[2:]:
        case ("items", int(index), "candidates", int(number), *rest):
            return f"p{index}-c{number}-{_field_within(rest, 'text')}"
        case ("items", int(index), "candidates"):
            return f"p{index}-c0-text"
        case ("items", int(index), *rest):
            return f"p{index}-{_field_within(rest, 'item')}"
        case (str(name), *_rest) if name != "items":
            return f"practice-{name}"
    return "add-page-practice"


def _field_within(rest: Sequence[str | int], default: str) -> str:
    match rest:
        case ["scores", str(name), *_rest]:
            return f"score-{name}"
        case ["feedback", str(name), *_rest]:
            return f"feedback-{name}"
        case [str(name), *_rest] if name not in ("scores", "feedback"):
            return name
    return default
