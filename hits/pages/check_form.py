"""The form's part of a protocol's quality checks: what was typed, and what its buttons change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from annotation.protocols.documents import plain_document
from annotation.protocols.records import (
    FLAG_NAMES,
    MADE_KINDS,
    Check,
    CheckCase,
    ProtocolDocument,
)

Data = Mapping[str, str]
Cases = list[dict[str, Any]]
MOST_CHECKS = 20
# On the page at once, over all checks; what is beyond stays as the YAML says it.
MOST_CASES = 100
CASE_TEXTS = tuple(one.name for one in fields(CheckCase) if one.name != "value")

CHECK_TITLES = {
    "gold": _("Known value"),
    "repeat": _("Exact repeat"),
    "degraded": _("Degraded response"),
    "instructed": _("Instructed answer"),
    "known_alternative": _("Known alternative"),
    "known_other": _("Known not to be one"),
}
FLAG_TITLES = {
    "failed_checks": _("failed checks"),
    "straight_lines": _("straight lines"),
    "too_fast": _("too fast to read"),
    "copied_reasons": _("copied reasons"),
    "machine_like": _("machine-like reasons"),
    "colluding": _("like another worker"),
    "late_change": _("changed later"),
    "unrelated": _("unrelated to others"),
    "position": _("answers by position"),
    "contradictory_times": _("contradictory times"),
}


def cases_on_page(n_checks: int) -> int:
    """How many cases of each check have fields."""
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


def number_of(text: str) -> float | None:
    """The number that was typed, if it is one a protocol can hold."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) <= 1e9 else None


def percent_of(share: float) -> str:
    """A share as it stands in a field."""
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
    if checks:
        index = CHANGES.get(name, _leave)(checks, index, numbers[1:])
    return replace(document, checks=tuple(checks)), index


def _leave(checks: list[Check], index: int, _rest: list[int]) -> int:
    return index


def _remove(checks: list[Check], index: int, _rest: list[int]) -> int:
    del checks[index]
    return max(index - 1, 0)


def _remove_case(checks: list[Check], index: int, rest: list[int]) -> int:
    cases = [case for number, case in enumerate(checks[index].cases) if number not in rest]
    checks[index] = replace(checks[index], cases=tuple(cases))
    return index


CHANGES: dict[str, Callable[[list[Check], int, list[int]], int]] = {
    "remove-check": _remove,
    "remove-case": _remove_case,
}


def check_field_of(path: tuple[str | int, ...]) -> str:
    """The form's field that a fault of a check is about."""
    match path:
        case ("checks", int(index), "cases", int(number), *rest):
            return f"c{index}-case{number}-{rest[0] if rest else 'candidate'}"
        case ("checks", int(index), "cases"):
            return f"c{index}-case0-candidate"
        case ("checks", int(index), *rest):
            return f"c{index}-{rest[0] if rest else 'kind'}"
    return "add-check"
