from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any, ClassVar, get_args, get_type_hints

from django.utils.translation import gettext as _

from annotation.models import Study
from annotation.protocols.faults import Fault
from annotation.protocols.fields import ITEM
from annotation.protocols.practice import PATH, PRACTISED_KINDS, TESTED_KINDS
from annotation.protocols.records import (
    GradedCase,
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
    QualificationTest,
)
from annotation.protocols.scales import WRITTEN_KINDS, labelled_values
from presentation.numbers import group_values

Data = Mapping[str, str]
MOST_TESTS = 3
MOST_CASES = 50
TITLES = ("Test", "Practice", "Second test")


def read_fields(data: Data, prefix: str, record: type) -> dict[str, Any]:
    """The form's values for the texts, numbers and check boxes of a record.

    The caller reads its lists and nested records. Fields that do not contain a number are left out.
    """
    read = {
        name: _read_field(hint, data, f"{prefix}{name}")
        for name, hint in get_type_hints(record).items()
    }
    return {name: value for name, value in read.items() if value is not None}


def _read_field(hint: Any, data: Data, name: str) -> Any:
    if hint is bool:
        return name in data
    if hint is str:
        return text_in(data, name)
    # A mapping of numbers is for the caller.
    members = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kinds, number = {*members} & {int, float}, number_of(data.get(name, ""))
    return None if number is None or not kinds else kinds.pop()(number)


def text_in(data: Data, name: str) -> str:
    # Browsers send CRLF.
    return data.get(name, "").replace("\r\n", "\n")


@dataclass(frozen=True)
class Fold:
    # A part of the form that is folded away; the names of its fields begin with its `prefix`.

    letter: ClassVar[str]
    index: int

    @property
    def prefix(self) -> str:
        return f"{self.letter}{self.index}-"

    @property
    def number(self) -> int:
        return self.index + 1


@dataclass(frozen=True)
class ScoreRow:
    # The right value of one question; `choices` are its answers if they are words.

    name: str
    value: float | None
    choices: list[tuple[str, str]]

    @property
    def value_text(self) -> str:
        return "" if self.value is None else f"{self.value:g}"


def score_rows(
    document: ProtocolDocument,
    question: Sequence[ProtocolQuestion],
    scores: Mapping[str, float | None],
) -> list[ScoreRow]:
    return [
        ScoreRow(name, scores.get(name), value_choices(document.question(name), [scores.get(name)]))
        for name in dict.fromkeys([*(each.name for each in question), *scores])
    ]


def value_choices(
    question: ProtocolQuestion | None, values: Iterable[float | None]
) -> list[tuple[str, str]]:
    if question is None or question.kind not in WRITTEN_KINDS:
        return []
    words = {"yes": _("yes"), "no": _("no")} if question.kind != "category" else {}
    known = {
        f"{each:g}": words.get(label, label) for label, each in labelled_values(question).items()
    }
    # A value that is no answer stays until somebody chooses another.
    others = {f"{value:g}" for value in values if value is not None} - set(known)
    return [*((each, each) for each in sorted(others)), *known.items()]


@dataclass(frozen=True)
class QualificationTestRow(Fold):
    letter = "t"
    test: QualificationTest
    cases: list[dict[str, Any]]
    has_faults: bool


def qualification_test_rows(
    document: ProtocolDocument, faults: list[Fault]
) -> list[QualificationTestRow]:
    tests = document.qualifications.tests
    wrong = {
        fault.path[2]
        for fault in faults
        if fault.path[:2] == ("qualifications", "tests") and fault.path[2:]
    }
    return [
        QualificationTestRow(index, test, _case_rows(document, index, test), index in wrong)
        for index, test in enumerate(tests)
    ]


def _case_rows(
    document: ProtocolDocument, index: int, test: QualificationTest
) -> list[dict[str, Any]]:
    questions = [each for each in document.study_questions if each.kind in TESTED_KINDS]
    return [
        {
            "prefix": f"t{index}-case{number}-",
            "case": case,
            "scores": score_rows(document, questions, case.scores if case else {}),
        }
        for number, case in enumerate([*test.cases, None][:MOST_CASES])
    ]


def tests_of(data: Data) -> dict[str, Any]:
    if "n_tests" not in data:
        return {}
    return {"tests": [_test(data, n) for n in range(count_in(data, "n_tests", MOST_TESTS))]}


def _test(data: Data, index: int) -> dict[str, Any]:
    prefix = f"t{index}-"
    values = read_fields(data, prefix, QualificationTest)
    cases = [
        _case(data, f"{prefix}case{number}-")
        for number in range(count_in(data, f"{prefix}n_cases", MOST_CASES))
    ]
    return values | {
        "title": values["title"].strip(),
        "cases": [case for case in cases if case["candidate"].strip()],
    }


def _case(data: Data, prefix: str) -> dict[str, Any]:
    return read_fields(data, prefix, GradedCase) | {"scores": scores_of(data, f"{prefix}score-")}


def scores_of(data: Data, start: str) -> dict[str, float]:
    # A question may have been renamed in the same form: `NAME-was` holds its earlier name.
    scores = {name: number_of(text) for name, text in texts_of(data, start).items()}
    return {name: value for name, value in scores.items() if value is not None}


def texts_of(data: Data, start: str) -> dict[str, str]:
    names = {
        was: data.get(f"{field.removesuffix('was')}name", "").strip() or was
        for field, was in data.items()
        if field.endswith("-was")
    }
    texts = {
        names.get(was, was): text.replace("\r\n", "\n")
        for was, text in (
            (f.removeprefix(start), t) for f, t in data.items() if f.startswith(start)
        )
    }
    return {name: text for name, text in texts.items() if text.strip()}


def number_of(text: str) -> float | None:
    """None if the text is no number, or one that no protocol can hold."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) <= 1e9 else None


def count_in(data: Data, name: str, most: int) -> int:
    text = data.get(name, "")
    return min(int(text[:6]) if text.isdecimal() else 0, most)


# What the buttons do to the tests.


def change_tests(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
    name, _colon, address = action.partition(":")
    tests = list(document.qualifications.tests)
    index = min(int(address[:2]) if address.isdecimal() else 0, max(len(tests) - 1, 0))
    if name == "add-test" and len(tests) < MOST_TESTS:
        taken = {test.title for test in tests}
        tests.append(QualificationTest((), title=next(t for t in TITLES if t not in taken)))
        index = len(tests) - 1
    elif name == "remove-test" and tests:
        del tests[index]
        index = max(index - 1, 0)
    return replace(
        document, qualifications=replace(document.qualifications, tests=tuple(tests))
    ), index


def field_of_test(path: tuple[str | int, ...]) -> str:
    match path[2:]:
        case (int(index), "cases", int(number), "scores", str(name)):
            return f"t{index}-case{number}-score-{name}"
        case (int(index), "cases", int(number), str(name), *_rest) if name != "scores":
            return f"t{index}-case{number}-{name}"
        case (int(index), "cases", *rest):
            return f"t{index}-case{rest[0] if rest else 0}-candidate"
        case (int(index), str(name)):
            return f"t{index}-{name}"
    return "add-test"


MOST_PAGES = 20
MOST_CANDIDATES = 50
# Before somebody writes another; a reward must be one, and nothing is launched unread.
FIRST_REWARD_USD = 0.1


@dataclass(frozen=True)
class PracticePageRow(Fold):
    letter = "p"
    item: PracticeItem
    answers: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    keys: list[str]
    has_faults: bool

    @property
    def title(self) -> str:
        texts = (self.item.item, self.item.context, *(each.text for each in self.item.candidates))
        return next((text.strip()[:60] for text in texts if text.strip()), "")


def practice_rows(
    study: Study, document: ProtocolDocument, faults: Sequence[Fault]
) -> list[PracticePageRow]:
    practice = document.qualifications.practice
    if practice is None:
        return []
    wrong = {fault.path[3] for fault in faults if fault.path[:2] == PATH and fault.path[3:]}
    names = [each.item for each in practice.items if each.item]
    rows = study.items.filter(key__in=names) if names else study.items.none()
    rows = rows.order_by("candidates__position", "candidates__pk")
    keys = group_values(rows.values_list("key", "candidates__key"))
    return [
        PracticePageRow(
            index,
            item,
            _answer_rows(document, item, is_of_item=True),
            [
                {
                    "prefix": f"p{index}-c{number}-",
                    "candidate": each,
                    "answers": _answer_rows(
                        document, each or PracticeCandidate(), is_of_item=False
                    ),
                }
                for number, each in enumerate([*item.candidates, None][:MOST_CANDIDATES])
            ],
            keys.get(item.item, []),
            index in wrong,
        )
        for index, item in enumerate(practice.items)
    ]


def _answer_rows(
    document: ProtocolDocument, holder: PracticeItem | PracticeCandidate, *, is_of_item: bool
) -> list[dict[str, Any]]:
    questions = [
        each
        for each in document.study_questions
        if each.kind in PRACTISED_KINDS
        and (each.about == ITEM and not each.options.is_comparison) is is_of_item
    ]
    return [
        {"score": row, "feedback": holder.feedback.get(row.name, "")}
        for row in score_rows(
            document, questions, {**dict.fromkeys(holder.feedback), **holder.scores}
        )
    ]


def practice_in(data: Data) -> dict[str, Any]:
    if "practice-n_pages" not in data:
        return {}
    values = read_fields(data, "practice-", Practice)
    n_pages = count_in(data, "practice-n_pages", MOST_PAGES)
    return {
        "practice": values
        | {
            "title": values["title"].strip(),
            "items": [_page(data, f"p{index}-") for index in range(n_pages)],
        }
    }


def _page(data: Data, prefix: str) -> dict[str, Any]:
    page = _filled(read_fields(data, prefix, PracticeItem), "item")
    candidates = [
        _candidate(data, f"{prefix}c{number}-")
        for number in range(count_in(data, f"{prefix}n_candidates", MOST_CANDIDATES))
    ]
    page["candidates"] = [each for each in candidates if any(each.values())]
    return page | _practice_answers(data, prefix)


def _candidate(data: Data, prefix: str) -> dict[str, Any]:
    return _filled(read_fields(data, prefix, PracticeCandidate), "candidate") | _practice_answers(
        data, prefix
    )


def _practice_answers(data: Data, prefix: str) -> dict[str, Any]:
    return {
        "scores": scores_of(data, f"{prefix}score-"),
        "feedback": texts_of(data, f"{prefix}feedback-"),
    }


def _filled(texts: dict[str, str], key: str) -> dict[str, Any]:
    texts = {name: text if text.strip() else "" for name, text in texts.items()}
    return texts | {key: texts[key].strip()}


# What the buttons do to practice.


def change_practice(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
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
    return replace(document, qualifications=replace(document.qualifications, practice=after)), index


def field_of_practice(path: tuple[str | int, ...]) -> str:
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
