"""What is wrong with a protocol's quality checks: answers nobody can give, and cases that are
missing or show nothing."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from annotation.models import Candidate, Study
from annotation.protocols.faults import Fault, FaultPath
from annotation.protocols.kinds import CANDIDATE, KINDS
from annotation.protocols.records import (
    MADE_KINDS,
    Check,
    CheckCase,
    ProtocolDocument,
    ProtocolQuestion,
)
from annotation.protocols.scales import range_of

# Kinds of questions with one value for a candidate; of a degraded one it must have an order.
CHECKED_KINDS = ("line", "likert", "category", "yes_no", "number", "selection")
ORDERED_KINDS = ("line", "likert", "number")
TICKED_KINDS = ("yes_no", "selection")
KNOWN_VALUES = {"known_alternative": 1.0, "known_other": 0.0}


def checked_question(document: ProtocolDocument, check: Check) -> ProtocolQuestion | None:
    """The question a check is about: the first, where none is named."""
    if check.question:
        return document.question(check.question)
    return document.questions[0] if document.questions else None


def check_faults(document: ProtocolDocument, index: int) -> Iterator[Fault]:
    """All that is wrong with one check, but for what it names in a study."""
    check, path = document.checks[index], ("checks", index)
    question = checked_question(document, check)
    if question is None or question.kind not in KINDS:
        return
    yield from _question_faults(document, check, question, path)
    if check.kind in MADE_KINDS:
        if check.cases:
            text = _("a %(kind)s check is made of a candidate of the page; it has no cases.")
            problem = text % {"kind": check.kind}
            yield Fault((*path, "cases"), problem, code="needless_cases")
        return
    if not check.cases:
        text = _("nothing can be placed: say under 'cases' what a %(kind)s check shows.")
        problem = text % {"kind": check.kind}
        yield Fault((*path, "cases"), problem, code="missing")
    for number, case in enumerate(check.cases):
        yield from _case_faults(check, case, question, (*path, "cases", number))


def _question_faults(
    document: ProtocolDocument, check: Check, question: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    compared = [each.name for each in document.questions if _is_compared(each)]
    if compared:
        text = _(
            "a candidate more would change the comparison that '%(name)s' asks for; "
            "checks need questions about single candidates."
        )
        yield Fault((*path, "kind"), text % {"name": compared[0]}, code="comparison")
    elif question.kind not in CHECKED_KINDS or question.about != CANDIDATE:
        text = _("'%(name)s' has no single value for a candidate, which a check needs.")
        yield Fault((*path, "question"), text % {"name": question.name}, code="no_single_value")
    elif check.kind == "degraded" and question.kind not in ORDERED_KINDS:
        text = _("'%(name)s' has no higher and lower values, which a degraded check needs.")
        yield Fault((*path, "question"), text % {"name": question.name}, code="unordered")
    elif check.kind in KNOWN_VALUES and question.kind not in TICKED_KINDS:
        text = _("'%(name)s' is neither a tick nor a yes or no, which a %(kind)s check needs.")
        problem = text % {"name": question.name, "kind": check.kind}
        yield Fault((*path, "question"), problem, code="not_ticked")


def _is_compared(question: ProtocolQuestion) -> bool:
    kind = KINDS.get(question.kind)
    return kind is not None and kind.is_comparison and question.kind != "selection"


def _case_faults(
    check: Check, case: CheckCase, question: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    if not case.candidate.strip() and not case.source_item:
        problem = _("shows nothing: give it a candidate, or the source_item whose it bears.")
        yield Fault(path, problem, code="shows_nothing")
    if case.source_candidate and not case.source_item:
        problem = _("is missing: of which item is the source_candidate?")
        yield Fault((*path, "source_item"), problem, code="missing")
    if case.value is None:
        if check.kind not in KNOWN_VALUES:
            yield Fault((*path, "value"), _("is missing: the right answer."), code="missing")
        return
    low, high = range_of(question)
    if not low <= case.value <= high:
        text = _("is %(value)g, outside the scale %(low)g to %(high)g of '%(name)s'.")
        values = {"value": case.value, "low": low, "high": high, "name": question.name}
        yield Fault((*path, "value"), text % values, code="off_scale")


def source_faults(study: Study, document: ProtocolDocument) -> Iterator[Fault]:
    cases = [
        (("checks", index, "cases", number), case)
        for index, check in enumerate(document.checks)
        for number, case in enumerate(check.cases)
    ]
    keys = {key for _, case in cases for key in (case.item, case.source_item) if key}
    known = set(study.items.filter(key__in=keys).values_list("key", flat=True)) if keys else set()
    pairs = set(
        Candidate.objects.filter(item__study=study, item__key__in=keys).values_list(
            "item__key", "key"
        )
    )
    for path, case in cases:
        for name in ("item", "source_item"):
            if (key := getattr(case, name)) and key not in known:
                yield Fault(
                    (*path, name),
                    _("the study has no item '%(key)s'.") % {"key": key},
                    code="unknown_item",
                )
        source = (case.source_item, case.source_candidate)
        if case.source_candidate and case.source_item in known and source not in pairs:
            text = _("item '%(item)s' has no candidate '%(candidate)s'.")
            values = {"item": case.source_item, "candidate": case.source_candidate}
            yield Fault((*path, "source_candidate"), text % values, code="unknown_candidate")
