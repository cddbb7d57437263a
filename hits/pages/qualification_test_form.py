"""The Protocol page's part for qualification tests: what was typed, what its buttons change, and
each test as a fold of the form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from annotation.protocols.faults import Fault
from annotation.protocols.practice import TESTED_KINDS
from annotation.protocols.records import (
    GradedCase,
    ProtocolDocument,
    ProtocolQuestion,
    QualificationTest,
)
from annotation.protocols.scales import WRITTEN_KINDS, labelled_values
from hits.pages.check_form import number_of

Data = Mapping[str, str]
MOST_TESTS = 3
MOST_CASES = 50
TITLES = ("Test", "Practice", "Second test")
NUMBERS = ("pass_percent", "tolerance_percent", "allowed_seconds", "retry_after_seconds")


@dataclass(frozen=True)
class ScoreRow:
    """The right value under a question; where its answers are words, one of the `choices`."""

    name: str
    value: float | None
    choices: list[tuple[str, str]]

    @property
    def value_text(self) -> str:
        """The value as the choices have it."""
        return "" if self.value is None else f"{self.value:g}"


def score_rows(
    document: ProtocolDocument,
    question: Sequence[ProtocolQuestion],
    scores: Mapping[str, float | None],
) -> list[ScoreRow]:
    """A row for each of the questions, and for each score under another name."""
    names = dict.fromkeys([*(each.name for each in question), *scores])
    return [
        ScoreRow(name, scores.get(name), value_choices(document.question(name), [scores.get(name)]))
        for name in names
    ]


def value_choices(
    question: ProtocolQuestion | None, values: Iterable[float | None]
) -> list[tuple[str, str]]:
    """The answers that are words, each with its value as a field sends it; none of a number."""
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
class CaseRow:
    """A case with its scores; the last one is empty, to be filled in."""

    prefix: str
    case: GradedCase | None
    scores: list[ScoreRow]


@dataclass(frozen=True)
class QualificationTestRow:
    """A test as a fold of the form."""

    index: int
    test: QualificationTest
    cases: list[CaseRow]
    has_faults: bool

    @property
    def prefix(self) -> str:
        return f"t{self.index}-"

    @property
    def number(self) -> int:
        return self.index + 1


def qualification_test_rows(
    document: ProtocolDocument, faults: list[Fault]
) -> list[QualificationTestRow]:
    """Each test with its cases, and an empty case after them."""
    tests = document.qualifications.tests
    paths = [fault.path for fault in faults if fault.path[:2] == ("qualifications", "tests")]
    wrong = {path[2] for path in paths if path[2:]}
    return [
        QualificationTestRow(index, test, _case_rows(document, index, test), index in wrong)
        for index, test in enumerate(tests)
    ]


def _case_rows(document: ProtocolDocument, index: int, test: QualificationTest) -> list[CaseRow]:
    question = [each for each in document.questions if each.kind in TESTED_KINDS]
    rows = []
    for number, case in enumerate([*test.cases, None][:MOST_CASES]):
        scores = score_rows(document, question, case.scores if case else {})
        rows.append(CaseRow(f"t{index}-case{number}-", case, scores))
    return rows


def tests_of(data: Data) -> dict[str, Any]:
    """What the form says of tests; nothing where it has no part for them."""
    if "n_tests" not in data:
        return {}
    return {"tests": [_test(data, n) for n in range(count_in(data, "n_tests", MOST_TESTS))]}


def _test(data: Data, index: int) -> dict[str, Any]:
    prefix = f"t{index}-"
    values: dict[str, Any] = {"title": data.get(f"{prefix}title", "").strip()}
    for name in NUMBERS:
        number = number_of(data.get(f"{prefix}{name}", ""))
        if number is not None:
            values[name] = int(number)
    values["feedback"] = f"{prefix}feedback" in data
    n_cases = count_in(data, f"{prefix}n_cases", MOST_CASES)
    cases = [_case(data, f"{prefix}case{number}-") for number in range(n_cases)]
    values["cases"] = [case for case in cases if case["candidate"].strip()]
    return values


def _case(data: Data, prefix: str) -> dict[str, Any]:
    case: dict[str, Any] = {
        name: data.get(f"{prefix}{name}", "").replace("\r\n", "\n")
        for name in ("context", "reference", "candidate", "explanation")
    }
    return case | {"scores": scores_of(data, f"{prefix}score-")}


def scores_of(data: Data, start: str) -> dict[str, float]:
    """Values of the fields that begin so, under what their questions are called by now; under
    another name one is a fault to be seen."""
    scores = {name: number_of(text) for name, text in texts_of(data, start).items()}
    return {name: value for name, value in scores.items() if value is not None}


def texts_of(data: Data, start: str) -> dict[str, str]:
    """What is not blank of such fields, as text."""
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


def count_in(data: Data, name: str, most: int) -> int:
    """How many there are by a field of the form."""
    text = data.get(name, "")
    return min(int(text[:6]) if text.isdecimal() else 0, most)


# What the buttons do to the tests.


def is_of_tests(action: str) -> bool:
    return action.partition(":")[0].endswith("-test")


def change_tests(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
    """The document after an action such as `remove-test:0`, and the test that it is about."""
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
    qualifications = replace(document.qualifications, tests=tuple(tests))
    return replace(document, qualifications=qualifications), index


def field_of_test(path: tuple[str | int, ...]) -> str:
    """The form's field that a fault of a test is about."""
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
