"""A protocol's quality checks on its page: as folds of the form, and on the preview."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from annotation.check_placement import example_check
from annotation.models import Item, PlacedCheck
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
from hits.pages.check_form import (
    CHECK_TITLES,
    FLAG_TITLES,
    cases_on_page,
    percent_of,
)
from hits.pages.qualification_test_form import value_choices
from hits.questions import letters_of


@dataclass(frozen=True)
class CheckRow:
    """A check as a fold of the form."""

    index: int
    check: Check
    cases: list[tuple[int, CheckCase | None]]
    questions: list[str]
    n_hidden: int
    has_faults: bool
    choices: list[tuple[str, str]]

    @property
    def prefix(self) -> str:
        return f"c{self.index}-"

    @property
    def number(self) -> int:
        return self.index + 1

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
    """Each flag of an annotator, its title, and whether it holds work."""
    return [(name, str(FLAG_TITLES[name]), name in document.holding_flags) for name in FLAG_NAMES]


@dataclass(frozen=True)
class PreviewedCheck:
    """A check on the page of an item, as the preview shows it."""

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
        text = _("Check %(n)d (%(kind)s) has nothing to show on this page.")
        return PreviewedCheck(index, None, text % {"n": index + 1, "kind": title})
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
