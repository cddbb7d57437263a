"""A protocol's quality checks on its page: as folds of the form, and on the preview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.check_placement import example_check
from annotation.models import Item, PlacedCheck
from annotation.protocols.documents import plain_document
from annotation.protocols.faults import Fault
from annotation.protocols.records import (
    FLAG_NAMES,
    MADE_KINDS,
    Check,
    CheckCase,
    Order,
    ProtocolDocument,
)
from annotation.protocols.validation import checked_question
from hits.pages.admission import Fold, number_of, value_choices
from hits.questions import letters_of

Data = Mapping[str, str]
Cases = list[dict[str, Any]]
MOST_CHECKS = 20
# On the page at once, over all checks; what is beyond stays as the YAML says it.
MOST_CASES = 100
CASE_TEXTS = tuple(one.name for one in fields(CheckCase) if one.name != "value")

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


def cases_on_page(n_checks: int) -> int:
    return max(3, MOST_CASES // max(n_checks, 1))


def checks_of(data: Data, before: ProtocolDocument) -> dict[str, Any]:
    """What the form says of checks; nothing where it has no part for them."""
    if "n_checks" not in data:
        return {}
    stored = plain_document(before).get("checks", [])
    n = min(int(data["n_checks"][:6]) if data["n_checks"].isdecimal() else 0, MOST_CHECKS)
    earlier = [*stored, *({} for _each in range(n))]
    checks = [_check(data, index, earlier[index]) for index in range(n)]
    flags = [name for name in FLAG_NAMES if f"holding-{name}" in data]
    return {"checks": checks, "holding_flags": flags}


def _check(data: Data, index: int, before: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"c{index}-"
    values: dict[str, Any] = {
        name: data.get(f"{prefix}{name}", "") for name in ("kind", "question")
    }
    values["share"] = share_of(data.get(f"{prefix}share", ""), before.get("share", 0.1))
    values["tolerance"] = number_of(data.get(f"{prefix}tolerance", ""))
    values["holds_work"] = f"{prefix}holds_work" in data
    if values["kind"] not in MADE_KINDS:
        values["cases"] = _cases(data, prefix, before.get("cases", []))
    return {name: value for name, value in values.items() if value is not None}


def _cases(data: Data, prefix: str, before: Cases) -> Cases:
    """Those that say anything, and those that had no fields on the page."""
    count = data.get(f"{prefix}n_cases", "")
    n = min(int(count[:6]) if count.isdecimal() else 0, MOST_CASES + 1)
    cases = []
    for number in range(n):
        own = f"{prefix}case{number}-"
        case: dict[str, Any] = {
            name: data.get(f"{own}{name}", "").replace("\r\n", "\n") for name in CASE_TEXTS
        }
        case["value"] = number_of(data.get(f"{own}value", ""))
        values = {name: value for name, value in case.items() if value not in ("", None)}
        if values:
            cases.append(values)
    # Counted from the end: what is typed is saved while the page's own count stands.
    hidden = data.get(f"{prefix}n_hidden", "")
    n_hidden = min(int(hidden[:6]) if hidden.isdecimal() else 0, len(before))
    return [*cases, *before[len(before) - n_hidden :]]


def percent_of(share: float) -> str:
    return f"{share * 100:.10g}"


def share_of(text: str, before: float) -> float:
    """The share of a percentage that was typed; to the last digit as it was, if nobody changed
    it."""
    if text.strip() == percent_of(before):
        return before
    return round((number_of(text) or 0) / 100, 12)


# What the buttons do to the checks.


def is_of_checks(action: str) -> bool:
    return action.partition(":")[0].endswith(("-check", "-case"))


def change_checks(document: ProtocolDocument, action: str) -> tuple[ProtocolDocument, int]:
    """The document after an action such as `remove-case:0.2`, and the check that it is about."""
    name, _colon, address = action.partition(":")
    numbers = [int(part) for part in address.split(".") if part.isdecimal()]
    checks = list(document.checks)
    if name == "add-check":
        checks.append(Check(kind="gold"))
        return replace(document, checks=tuple(checks[:MOST_CHECKS])), len(checks) - 1
    index = numbers[0] if numbers and numbers[0] < len(checks) else 0
    if name == "remove-case" and checks:
        cases = enumerate(checks[index].cases)
        left = tuple(case for number, case in cases if number not in numbers[1:])
        checks[index] = replace(checks[index], cases=left)
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
    has_faults: bool
    choices: list[tuple[str, str]]

    @property
    def title(self) -> str:
        return title_of(self.check)

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
    """Each check with its cases, and an empty case after them."""
    wrong = {fault.path[1] for fault in faults if fault.path[:1] == ("checks",) and fault.path[1:]}
    n_most = cases_on_page(len(document.checks))
    names = [question.name for question in document.questions]
    rows = []
    for index, check in enumerate(document.checks):
        displayed: list[CheckCase | None] = [*check.cases[:n_most], None]
        n_hidden = max(len(check.cases) - n_most, 0)
        # A name that no question has any more stays until somebody chooses another.
        questions = list(dict.fromkeys([*names, *([check.question] if check.question else [])]))
        cases = list(enumerate(displayed))
        choices = value_choices(checked_question(document, check), [c.value for c in check.cases])
        is_wrong = index in wrong
        rows.append(CheckRow(index, check, cases, questions, n_hidden, is_wrong, choices))
    return rows


def holding_rows(document: ProtocolDocument) -> list[tuple[str, str, bool]]:
    return [(name, str(FLAG_TITLES[name]), name in document.holding_flags) for name in FLAG_NAMES]


@dataclass(frozen=True)
class PreviewedCheck:
    number: int
    placed: PlacedCheck | None
    sentence: str


def previewed_check(
    document: ProtocolDocument, item: Item | None, number: str | None
) -> PreviewedCheck | None:
    """The check of that number on the item's page, with what the researcher has to know of it."""
    if item is None or not number or not number.isdecimal() or len(number) > 3:
        return None
    index = int(number)
    if index >= len(document.checks):
        return None
    placed = example_check(document, index, item)
    title = title_of(document.checks[index])
    if placed is None:
        return PreviewedCheck(
            index,
            None,
            _("Check %(n)d (%(kind)s) has nothing to show on this page.")
            % {"n": index + 1, "kind": title},
        )
    return PreviewedCheck(index, placed, _sentence(item, placed, title))


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


def in_stored_order(document: ProtocolDocument) -> ProtocolDocument:
    """With the candidates where their letters say; workers see them in another order each."""
    return replace(document, order=Order(policy="fixed"))
