"""Practice on the study's own page and qualification tests: right answers, and what is wrong.

An AnswerKey grades choices alone, so a line is asked in eleven points.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from annotation.models import Study
from annotation.protocols.documents import plain_document
from annotation.protocols.faults import Fault, FaultPath, broken_rules
from annotation.protocols.fields import KINDS
from annotation.protocols.records import (
    GradedCase,
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
    QualificationTest,
)
from annotation.protocols.scales import range_of, scale_problem
from error_codes import CodedText

TESTED_KINDS = ("line", "likert", "category", "yes_no", "selection")
NOMINAL_KINDS = ("category", "yes_no", "selection")
LINE_STEPS = 10


def only_right() -> CodedText:
    return CodedText(_("has only right answers. Allow a smaller difference."), "only_right")


def attention_check() -> CodedText:
    return CodedText(
        _("is an attention check, which is only on pages of the study."), "attention_check"
    )


def choosable_values(question: ProtocolQuestion) -> list[float]:
    low, high = range_of(question)
    if question.kind == "line":
        return [low + (high - low) * step / LINE_STEPS for step in range(LINE_STEPS + 1)]
    if question.kind in ("likert", "category"):
        return [low + step for step in range(len(question.labels))]
    return [low, high]


def right_values(question: ProtocolQuestion, value: float, tolerance_percent: int) -> list[float]:
    low, high = range_of(question)
    share = 0 if question.kind in NOMINAL_KINDS else tolerance_percent / 100
    # A little more, for decimal fractions that no float is.
    reach = share * (high - low) * (1 + 1e-9)
    return [each for each in choosable_values(question) if abs(each - value) <= reach]


def graded_answers(
    document: ProtocolDocument, case: GradedCase
) -> list[tuple[ProtocolQuestion, float]]:
    return [
        (question, case.scores[question.name])
        for question in document.questions
        if question.name in case.scores
    ]


def qualification_test_faults(document: ProtocolDocument) -> Iterator[Fault]:
    tests = document.qualifications.tests
    for index, test in enumerate(tests):
        path: FaultPath = ("qualifications", "tests", index)
        yield from broken_rules(
            path,
            (
                test.title in [each.title for each in tests[:index]],
                "title",
                _("'%(title)s' is the title of another test already.") % {"title": test.title},
                "repeated_title",
            ),
            (
                not test.cases,
                "cases",
                _("is missing: at least one case with its right answers."),
                "missing",
            ),
        )
        for number, case in enumerate(test.cases):
            yield from _case_faults(document, test, case, (*path, "cases", number, "scores"))


def _case_faults(
    document: ProtocolDocument, test: QualificationTest, case: GradedCase, path: FaultPath
) -> Iterator[Fault]:
    if not case.scores:
        yield Fault(
            path, _("is missing: the right value under at least one question."), code="missing"
        )
    for name, value in case.scores.items():
        question = document.question(name)
        if problem := _no_test(question, case) or _no_choosable_answer(question, value, test):
            yield Fault((*path, name), problem)


def _no_test(question: ProtocolQuestion | None, case: GradedCase) -> CodedText | None:
    if question is None:
        return CodedText(_("is no question of this protocol."), "unknown_question")
    if question.check is not None:
        return attention_check()
    if question.kind not in TESTED_KINDS:
        return CodedText(
            _("cannot be tested: an answer key grades questions of the kinds %(kinds)s.")
            % {"kinds": ", ".join(TESTED_KINDS)},
            "not_tested",
        )
    if "{condition}" in question.wording:
        return CodedText(
            _("cannot be tested: its wording names {condition}, and a test has no items."),
            "names_condition",
        )
    if "{reference}" in question.wording and not case.reference.strip():
        return CodedText(
            _("cannot be asked of this case: its wording names {reference}. Give the case one."),
            "names_reference",
        )
    return None


def _no_choosable_answer(
    question: ProtocolQuestion | None, value: float, test: QualificationTest
) -> CodedText | None:
    if question is None:
        return None
    if problem := scale_problem(question, value):
        return problem
    right = right_values(question, value, test.tolerance_percent)
    if not right:
        return CodedText(
            _("is %(value)g, near none of the answers that can be chosen: %(choices)s.")
            % {
                "value": value,
                "choices": ", ".join(f"{each:g}" for each in choosable_values(question)),
            },
            "near_no_answer",
        )
    return only_right() if len(right) == len(choosable_values(question)) else None


PRACTISED_KINDS = (*TESTED_KINDS, "number")
TERMS = ("reward_usd", "most_workers", "title")
PATH: FaultPath = ("qualifications", "practice")


@dataclass(frozen=True)
class RightRange:
    value: float
    least: float
    most: float

    def holds(self, value: float) -> bool:
        return self.least <= value <= self.most


def right_range(question: ProtocolQuestion, value: float, tolerance_percent: int) -> RightRange:
    """The answers within the tolerance, on the scale; of categories and ticks the value alone."""
    low, high = range_of(question)
    share = 0 if question.kind in NOMINAL_KINDS else tolerance_percent / 100
    # Rounded, for decimal fractions that no float is.
    reach = round(share * (high - low), 9)
    least, most = round(value - reach, 9), round(value + reach, 9)
    return RightRange(value, max(low, least), min(high, most))


def n_attempts(practice: Practice) -> int:
    return min(practice.attempts or len(practice.items), len(practice.items))


def practised_keys(document: ProtocolDocument) -> list[str]:
    practice = document.qualifications.practice
    return [] if practice is None else [each.item for each in practice.items]


def practice_fingerprint(document: ProtocolDocument) -> str:
    """What makes it the same practice in another version: its items and rules, and the questions
    that are asked of them."""
    values = plain_document(document)
    practice = dict(values["qualifications"]["practice"])
    # What it costs, and how many may do it, changes nothing of what was learnt.
    for name in TERMS:
        practice.pop(name, None)
    basis = {"questions": values["questions"], "practice": practice}
    return hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()


def practice_faults(document: ProtocolDocument) -> Iterator[Fault]:
    practice = document.qualifications.practice
    if practice is None:
        return
    n_items = len(practice.items)
    yield from broken_rules(
        PATH,
        (
            not n_items,
            "items",
            _("is missing: at least one item with its right values."),
            "missing",
        ),
        (
            practice.attempts and n_items and practice.attempts > n_items,
            "attempts",
            _("is %(n)d, more than the items, %(n_items)d: each attempt is at another one.")
            % {"n": practice.attempts or 0, "n_items": n_items},
            "too_many_attempts",
        ),
        (
            round(practice.reward_usd, 2) != practice.reward_usd,
            "reward_usd",
            _("is not an amount in whole cents."),
            "not_cents",
        ),
    )
    for index, item in enumerate(practice.items):
        path: FaultPath = (*PATH, "items", index)
        if item.item and item.item in [each.item for each in practice.items[:index]]:
            yield Fault((*path, "item"), _("is another page's already."), code="repeated")
        yield from _item_faults(document, practice, item, path)


def _item_faults(
    document: ProtocolDocument, practice: Practice, item: PracticeItem, path: FaultPath
) -> Iterator[Fault]:
    names_condition = any("{condition}" in question.wording for question in document.questions)
    has_values = item.scores or any(each.scores for each in item.candidates)
    own = _("is the study's own if an item of the study is named. Take it out.")
    yield from broken_rules(
        path,
        *(
            (item.item and getattr(item, name), name, own, "of_the_study")
            for name in ("context", "reference", "condition")
        ),
        (
            not item.item and not item.candidates,
            "candidates",
            _("is missing: what is judged, with its right values."),
            "missing",
        ),
        (
            not has_values,
            "candidates",
            _("has no right value: nothing could be passed."),
            "no_right_value",
        ),
        (
            not item.item and not item.condition and names_condition,
            "condition",
            _("is missing: a question's wording names {condition}."),
            "missing",
        ),
    )
    yield from _value_faults(document, practice, item, path, is_of_item=True)
    for number, candidate in enumerate(item.candidates):
        place: FaultPath = (*path, "candidates", number)
        yield from _candidate_faults(item, candidate, place)
        yield from _value_faults(document, practice, candidate, place, is_of_item=False)


def _candidate_faults(
    item: PracticeItem, candidate: PracticeCandidate, path: FaultPath
) -> Iterator[Fault]:
    keys = [each.candidate for each in item.candidates if each.candidate]
    yield from broken_rules(
        path,
        (
            item.item and not candidate.candidate,
            "candidate",
            _("is missing: which candidate of the study's item?"),
            "missing",
        ),
        (
            item.item and candidate.text,
            "text",
            _("is the study's own if an item of the study is named. Take it out."),
            "of_the_study",
        ),
        (
            not item.item and candidate.candidate,
            "candidate",
            _("needs the key of the study's item that it belongs to."),
            "needs_item",
        ),
        (
            not item.item and not candidate.text.strip(),
            "text",
            _("is missing: what is judged."),
            "missing",
        ),
        (keys.count(candidate.candidate) > 1, "candidate", _("is there twice."), "repeated"),
    )


def _value_faults(
    document: ProtocolDocument,
    practice: Practice,
    holder: PracticeItem | PracticeCandidate,
    path: FaultPath,
    *,
    is_of_item: bool,
) -> Iterator[Fault]:
    for name, value in holder.scores.items():
        question = document.question(name)
        problem = _no_practice(question, is_of_item) or _no_answer(question, value, practice)
        if problem:
            yield Fault((*path, "scores", name), problem)
    unread = _("has no right value, so annotators would not read it.")
    yield from broken_rules(
        (*path, "feedback"),
        *((name not in holder.scores, name, unread, "unread") for name in holder.feedback),
    )


def _no_practice(question: ProtocolQuestion | None, is_of_item: bool) -> CodedText | None:
    if question is None:
        return CodedText(_("is no question of this protocol."), "unknown_question")
    if question.check is not None:
        return attention_check()
    if question.kind not in PRACTISED_KINDS:
        return CodedText(
            _("cannot be practised: feedback is on questions of the kinds %(kinds)s.")
            % {"kinds": ", ".join(PRACTISED_KINDS)},
            "not_practiced",
        )
    is_about_item = question.about == "item" and not KINDS[question.kind].is_comparison
    if is_about_item and not is_of_item:
        return CodedText(_("is asked of the item: write it there."), "asked_of_item")
    if is_of_item and not is_about_item:
        return CodedText(_("is asked of each candidate: write it there."), "asked_of_candidate")
    return None


def _no_answer(
    question: ProtocolQuestion | None, value: float, practice: Practice
) -> CodedText | None:
    if question is None:
        return None
    right = right_range(question, value, practice.tolerance_percent)
    is_all = (right.least, right.most) == range_of(question)
    return scale_problem(question, value) or (only_right() if is_all else None)


def practice_source_faults(study: Study, document: ProtocolDocument) -> Iterator[Fault]:
    practice = document.qualifications.practice
    items = [] if practice is None else list(enumerate(practice.items))
    known = _keys_of(study, [item.item for _n, item in items if item.item])
    for index, item in items:
        path: FaultPath = (*PATH, "items", index)
        if item.item and item.item not in known:
            yield Fault(
                (*path, "item"),
                _("the study has no item '%(key)s'.") % {"key": item.item},
                code="unknown_item",
            )
            continue
        for number, each in enumerate(item.candidates if item.item else ()):
            if each.candidate and each.candidate not in known[item.item]:
                yield Fault(
                    (*path, "candidates", number, "candidate"),
                    _("item '%(item)s' has no candidate '%(candidate)s'.")
                    % {"item": item.item, "candidate": each.candidate},
                    code="unknown_candidate",
                )


def _keys_of(study: Study, keys: Sequence[str]) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {}
    rows = study.items.filter(key__in=keys).order_by() if keys else study.items.none()
    for item, candidate in rows.values_list("key", "candidates__key"):
        known.setdefault(item, set()).add(candidate)
    return known
