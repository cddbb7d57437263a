"""The form of a protocol: what was typed, as a document; and what changes its questions' order.

It is read leniently, as a draft is saved while it is typed: what is left empty is left out, and
`annotation/protocols/validation.py` says what is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.check_placement import example_check
from annotation.models import Item, PlacedCheck
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.faults import Fault
from annotation.protocols.fields import CANDIDATE, ITEM, KINDS, fields_of_kind
from annotation.protocols.records import (
    FLAG_NAMES,
    MADE_KINDS,
    Check,
    CheckCase,
    Completion,
    Condition,
    Consent,
    Display,
    Example,
    Order,
    ProtocolDocument,
    ProtocolQuestion,
    Qualifications,
    QuestionCheck,
    Reason,
    Time,
)
from annotation.protocols.validation import checked_question
from hits.pages.admission import (
    Data,
    Fold,
    count_in,
    field_of_practice,
    field_of_test,
    number_of,
    practice_in,
    read_fields,
    scores_of,
    tests_of,
    text_in,
    value_choices,
)
from hits.pages.field_labels import in_words
from hits.questions import letters_of, scope_of

Cases = list[dict[str, Any]]
MOST_CHECKS = 20
# On the page at once, over all checks; what is beyond stays as the YAML says it.
MOST_CASES = 100

CHECK_TITLES = {
    "gold": gettext_lazy("Known value"),
    "repeat": gettext_lazy("Exact repeat"),
    "degraded": gettext_lazy("Degraded response"),
    "instructed": gettext_lazy("Instructed answer"),
    "known_alternative": gettext_lazy("Known alternative"),
    "known_other": gettext_lazy("Known not to be one"),
}
FLAG_TITLES = {
    "failed_checks": gettext_lazy("failed checks"),
    "straight_lines": gettext_lazy("straight lines"),
    "too_fast": gettext_lazy("too fast to read"),
    "copied_reasons": gettext_lazy("copied reasons"),
    "machine_like": gettext_lazy("machine-like reasons"),
    "colluding": gettext_lazy("like another worker"),
    "late_change": gettext_lazy("changed later"),
    "unrelated": gettext_lazy("unrelated to others"),
    "position": gettext_lazy("answers by position"),
    "contradictory_times": gettext_lazy("contradictory times"),
}


def checks_of(data: Data, before: ProtocolDocument) -> dict[str, Any]:
    if "n_checks" not in data:
        return {}
    stored = plain_document(before).get("checks", [])
    n = count_in(data, "n_checks", MOST_CHECKS)
    earlier = [*stored, *({} for _each in range(n))]
    return {
        "checks": [_check(data, index, earlier[index]) for index in range(n)],
        "holding_flags": [name for name in FLAG_NAMES if f"holding-{name}" in data],
    }


def _check(data: Data, index: int, before: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"c{index}-"
    values = read_fields(data, prefix, Check)
    values["share"] = share_of(data.get(f"{prefix}share", ""), before.get("share", 0.1))
    if values["kind"] not in MADE_KINDS:
        values["cases"] = _cases(data, prefix, before.get("cases", []))
    return values


def _cases(data: Data, prefix: str, before: Cases) -> Cases:
    cases = []
    for number in range(count_in(data, f"{prefix}n_cases", MOST_CASES + 1)):
        case = read_fields(data, f"{prefix}case{number}-", CheckCase)
        if values := {name: value for name, value in case.items() if value != ""}:
            cases.append(values)
    # Counted from the end: what is typed is saved while the page's own count stands.
    n_hidden = count_in(data, f"{prefix}n_hidden", len(before))
    return [*cases, *before[len(before) - n_hidden :]]


def percent_of(share: float) -> str:
    return f"{share * 100:.10g}"


def share_of(text: str, before: float) -> float:
    # Unchanged text keeps the stored share to its last digit.
    if text.strip() == percent_of(before):
        return before
    return round((number_of(text) or 0) / 100, 12)


# What the buttons do to the checks.


def change_checks(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
    name, _colon, address = action.partition(":")
    numbers = [int(part) for part in address.split(".") if part.isdecimal()]
    checks = list(document.checks)
    if name == "add-check":
        checks.append(Check(kind="gold"))
        return replace(document, checks=tuple(checks[:MOST_CHECKS])), len(checks) - 1
    index = numbers[0] if numbers and numbers[0] < len(checks) else 0
    if name == "remove-case" and checks:
        cases = enumerate(checks[index].cases)
        checks[index] = replace(
            checks[index], cases=tuple(case for number, case in cases if number not in numbers[1:])
        )
    elif name == "remove-check" and checks:
        del checks[index]
        index = max(index - 1, 0)
    return replace(document, checks=tuple(checks)), index


def check_field_of(path: tuple[str | int, ...]) -> str:
    match path:
        case ("checks", int(index), "cases", int(number), *rest):
            return f"c{index}-case{number}-{rest[0] if rest else 'candidate'}"
        case ("checks", int(index), "cases"):
            return f"c{index}-case0-candidate"
        case ("checks", int(index), *rest):
            return f"c{index}-{rest[0] if rest else 'kind'}"
    return "add-check"


@dataclass(frozen=True)
class CheckRow(Fold):
    letter = "c"
    check: Check
    cases: list[tuple[int, CheckCase | None]]
    questions: list[str]
    n_hidden: int
    faults: list[str]
    choices: list[tuple[str, str]]
    is_open: bool = False

    @property
    def title(self) -> str:
        return title_of(self.check)

    @property
    def wording(self) -> str:
        texts = [case.candidate for case in self.check.cases if case.candidate.strip()]
        return texts[0] if texts else _("An extra response among the others, with a known answer.")

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(name, str(title)) for name, title in CHECK_TITLES.items()]

    @property
    def percent(self) -> str:
        return percent_of(self.check.share)

    @property
    def has_cases(self) -> bool:
        return self.check.kind not in MADE_KINDS


def title_of(check: Check) -> str:
    return str(CHECK_TITLES.get(check.kind, check.kind))


def check_rows(document: ProtocolDocument, faults: list[Fault]) -> list[CheckRow]:
    wrong: dict[Any, list[str]] = {}
    for fault in faults:
        if fault.path[:1] == ("checks",) and fault.path[1:]:
            wrong.setdefault(fault.path[1], []).append(in_words(fault))
    n_most = max(3, MOST_CASES // max(len(document.checks), 1))
    names = [question.name for question in document.study_questions]
    rows = []
    for index, check in enumerate(document.checks):
        displayed: list[CheckCase | None] = [*check.cases[:n_most], None]
        n_hidden = max(len(check.cases) - n_most, 0)
        # A name that no question has any more stays until somebody chooses another.
        questions = list(dict.fromkeys([*names, *([check.question] if check.question else [])]))
        cases = list(enumerate(displayed))
        choices = value_choices(checked_question(document, check), [c.value for c in check.cases])
        rows.append(
            CheckRow(index, check, cases, questions, n_hidden, wrong.get(index, []), choices)
        )
    return rows


def holding_rows(document: ProtocolDocument) -> list[tuple[str, str, bool]]:
    return [(name, str(FLAG_TITLES[name]), name in document.holding_flags) for name in FLAG_NAMES]


def previewed_check(
    document: ProtocolDocument, item: Item | None, number: str | None
) -> dict[str, Any] | None:
    if item is None or not number or not number.isdecimal() or len(number) > 3:
        return None
    index = int(number)
    if index >= len(document.checks):
        return None
    placed = example_check(document, index, item)
    title = title_of(document.checks[index])
    if placed is None:
        sentence = _("Check %(n)d (%(kind)s) has nothing to show on this page.") % {
            "n": index + 1,
            "kind": title,
        }
    else:
        sentence = _sentence(item, placed, title)
    return {"number": index, "placed": placed, "sentence": sentence}


def _sentence(item: Item, placed: PlacedCheck, title: str) -> str:
    letters = letters_of(item, [placed])
    values = {"n": placed.number + 1, "kind": title, "letter": letters[placed.blind_key]}
    text = _("Check %(n)d (%(kind)s) is response %(letter)s on this page.") % values
    if placed.compared is not None:
        other = {"letter": letters[placed.compared.blind_key]}
        text += " " + _("It is made of response %(letter)s.") % other
    elif placed.expected is not None:
        right = {"value": f"{placed.expected:g}", "tolerance": f"{placed.tolerance:g}"}
        text += " " + _("Right is %(value)s, give or take %(tolerance)s.") % right
    return f"{text} " + _("Workers see it as one of the responses, and are not informed.")


MOST_QUESTIONS = 50
LEAST_POINTS, FIRST_POINTS, MOST_POINTS = 2, 5, 11
# Of an earlier question, each with a box in a condition.
MOST_ANSWERS = 50
# Ends of the names of fields that hold a number.
NUMBER_FIELDS = (
    *("minimum", "maximum", "first", "least", "most", "least_length", "most_length"),
    *("when-below", "when-above", "seed", "share", "tolerance", "value"),
    *("_seconds", "_percent", "_hits", "_worker", "_per_item"),
    *("practice-reward_usd", "practice-attempts", "practice-most_workers"),
)


def document_of(data: Data, before: ProtocolDocument) -> ProtocolDocument:
    values = plain_document(before)
    values |= {name: data.get(name, "") for name in ("title", "language", "direction")}
    values["instructions"] = text_in(data, "instructions")
    values["questions"] = [
        question_values(data, f"q{index}-")
        for index in range(count_in(data, "n_questions", MOST_QUESTIONS))
    ]
    values["examples"] = _examples(data)
    consent = read_fields(data, "consent-", Consent)
    values["consent"] = consent if any(each.strip() for each in consent.values()) else None
    values["comment"] = "comment" in data
    values["display"] = read_fields(data, "display-", Display) | {
        "condition_label": data.get("display-condition_label", "").strip(),
        "candidates": data.get("display-candidates", before.display.candidates),
    }
    values["order"] = read_fields(data, "order-", Order)
    values["reason"] = read_fields(data, "reason-", Reason) | {
        "wording": text_in(data, "reason-wording").strip()
    }
    values["time"] = read_fields(data, "time-", Time)
    values["qualifications"] = {
        **values.get("qualifications", {}),
        **read_fields(data, "qualifications-", Qualifications),
        **{
            name: text_in(data, f"qualifications-{name}").replace(",", " ").split()
            for name in ("countries", "languages", "excluded_studies")
        },
        **tests_of(data),
        **practice_in(data),
    }
    earlier = values.get("completion", {})
    percent = data.get("completion-second_round_percent", "")
    n_assignments = number_of(data.get("completion-assignments_per_item", ""))
    values["completion"] = earlier | {
        "assignments_per_item": int(n_assignments or 0) or Completion().assignments_per_item,
        "second_round_share": share_of(percent, earlier.get("second_round_share", 0.0)),
    }
    values |= checks_of(data, before)
    return read_document(values)


def question_values(data: Data, prefix: str) -> dict[str, Any]:
    kind = data.get(f"{prefix}kind", "line")
    allowed = fields_of_kind(kind if kind in KINDS else "line")
    values = read_fields(data, prefix, ProtocolQuestion)
    values["points"] = _points(data, prefix)
    values["categories"] = _answers(data, f"{prefix}categories")
    if values["kind"] == "category" and f"{prefix}categories" not in data:
        values["categories"] = [point for point in values["points"] if point] or ["Yes", "No"]
    if values["kind"] == "line" and f"{prefix}low_label" not in data:
        values |= {"low_label": values["points"][0], "high_label": values["points"][-1]}
    if data.get(f"{prefix}when-question"):
        values["when"] = read_fields(data, f"{prefix}when-", Condition)
        answers = (data.get(f"{prefix}when-answer{n}") for n in range(MOST_ANSWERS))
        values["when"]["any_of"] = [answer for answer in answers if answer]
    if f"{prefix}check-share" in data:
        percent = data.get(f"{prefix}check-share", "")
        values["check"] = read_fields(data, f"{prefix}check-", QuestionCheck)
        values["check"]["share"] = share_of(percent, QuestionCheck.share)
    return {name: value for name, value in values.items() if name in allowed}


def _examples(data: Data) -> list[dict[str, Any]]:
    return [
        example | {"scores": scores_of(data, f"e{index}-score-")}
        for index in range(count_in(data, "n_examples", MOST_QUESTIONS))
        if (example := read_fields(data, f"e{index}-", Example))["candidate"].strip()
    ]


def _points(data: Data, prefix: str) -> list[str]:
    # A question that was of another kind has the labels of its ends, and none between.
    n = count_in(data, f"{prefix}n_points", MOST_POINTS)
    labels = [data.get(f"{prefix}point{index}", "").strip() for index in range(n)]
    if not labels:
        ends = (data.get(f"{prefix}{name}", "").strip() for name in ("low_label", "high_label"))
        labels = [""] * FIRST_POINTS
        labels[0], labels[-1] = ends
    if data.get(f"{prefix}labels") == "ends":
        labels[1:-1] = [""] * len(labels[1:-1])
    return labels


def _answers(data: Data, name: str) -> list[str]:
    # Empty lines stay, since each may be meant as an answer: a fault says so.
    text = text_in(data, name)
    return [line.strip() for line in text.removesuffix("\n").split("\n")] if text.strip() else []


def unread_numbers(data: Data) -> list[str]:
    return [
        name
        for name, text in data.items()
        if (name.endswith(NUMBER_FIELDS) or "-score-" in name)
        and text.strip()
        and number_of(text) is None
    ]


# What the buttons of the form do to the questions.


def change_questions(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
    name, _colon, target = action.partition(":")
    index = int(target) if target.isdecimal() else len(document.questions)
    questions = list(document.questions)
    if name == "add" or index >= len(questions):
        name, index = "add", len(questions)
    match name:
        case "add":
            added = new_question(target)
            # A reason is asked once, if nothing else is asked of each response.
            scopes = {scope_of(one) for one in questions}
            if target == "long_text" and scopes and CANDIDATE not in scopes:
                added = replace(added, about=ITEM)
            questions.append(replace(added, name=_free_name(added.name, questions)))
        case "points-up" | "points-down":
            questions[index] = _with_points(questions[index], 1 if name == "points-up" else -1)
        case "up" | "down":
            question = questions.pop(index)
            index = max(index - 1, 0) if name == "up" else min(index + 1, len(questions))
            questions.insert(index, question)
        case "copy":
            copied = questions[index]
            index += 1
            questions.insert(index, replace(copied, name=_free_name(copied.name, questions)))
        case "remove":
            del questions[index]
            index = max(index - 1, 0)
    return replace(document, questions=tuple(questions[:MOST_QUESTIONS])), index


def new_question(kind: str) -> ProtocolQuestion:
    """A question that is complete, so that it can be seen before it is changed."""
    match kind:
        case "likert":
            points = (_("Not good at all"), "", "", "", _("Extremely good"))
            return ProtocolQuestion(
                "rating", "likert", _("How good is the response?"), points=points
            )
        case "category":
            return ProtocolQuestion(
                "choice", "category", _("Is the response correct?"), categories=(_("Yes"), _("No"))
            )
        case "check":
            return ProtocolQuestion(
                "attention",
                "category",
                _("To show that you read this page, choose Blue."),
                about=ITEM,
                categories=(_("Red"), _("Green"), _("Blue"), _("Yellow")),
                check=QuestionCheck(value=2),
            )
        case "long_text":
            return ProtocolQuestion("text", "long_text", _("Why did you answer as you did?"))
    return ProtocolQuestion(
        "slider",
        "line",
        _("How good is the response?"),
        low_label=_("Not good at all"),
        high_label=_("Extremely good"),
    )


def _with_points(question: ProtocolQuestion, step: int) -> ProtocolQuestion:
    """One point more or fewer, before the last one, which stays the end."""
    points = list(question.points)
    if step > 0 and len(points) < MOST_POINTS:
        points.insert(len(points) - 1, "")
    elif step < 0 and len(points) > LEAST_POINTS:
        del points[-2]
    return replace(question, points=tuple(points))


def _free_name(name: str, questions: list[ProtocolQuestion]) -> str:
    taken = {each.name for each in questions}
    if name not in taken:
        return name
    number = len(questions) + 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


# The field of a fault in all of a question's condition or check.
WHOLE = {"when": "question", "check": "value"}


def _question_field(rest: list[str | int]) -> str:
    match rest:
        case ["when" | "check" as part, *within]:
            return f"{part}-{within[0] if within else WHOLE[part]}"
        case ["points", *within]:
            return f"point{within[0] if within else 0}"
        case [name, *_within]:
            return str(name)
    return "wording"


def field_of(path: tuple[str | int, ...]) -> str:
    match path:
        case ("questions", int(index), *rest):
            return f"q{index}-{_question_field(rest)}"
        case ("checks", *_rest):
            return check_field_of(path)
        case ("qualifications", "practice", *_rest):
            return field_of_practice(path)
        case ("qualifications", "tests", *_rest):
            return field_of_test(path)
        case ("examples", int(index), "scores", name):
            return f"e{index}-score-{name}"
        case ("examples", int(index), *rest):
            return f"e{index}-{rest[0] if rest else 'candidate'}"
        case (str(group), str(name), *_rest):
            return f"{group}-{name}"
        case (str(name), *_rest):
            return "add-question" if name == "questions" else name
    return "title"
