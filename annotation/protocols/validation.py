import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import pycountry
from django.utils.translation import gettext as _

from annotation.models import Candidate, Study, first_that_says_nothing, says_nothing
from annotation.protocols.documents import protocol_schema, read_document
from annotation.protocols.faults import Fault, FaultPath, broken_rules, faults_of
from annotation.protocols.fields import CANDIDATE, CHECK_QUESTION_KINDS, KINDS
from annotation.protocols.practice import practice_faults, qualification_test_faults
from annotation.protocols.records import (
    MADE_KINDS,
    Check,
    CheckCase,
    ProtocolDocument,
    ProtocolQuestion,
)
from annotation.protocols.scales import (
    condition_faults,
    label_faults,
    part_name,
    range_of,
    scale_problem,
    scales_of,
)
from error_codes import CodedText

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

LONGEST_NAME = 64
# Fields of an item that a wording may name; the system is none of them.
ITEM_FIELDS = ("condition", "reference")
NAMED_FIELD = re.compile(r"\{(\w+)\}")
# No database keeps these, and no page shows them.
CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def document_faults(values: object) -> list[Fault]:
    if not isinstance(values, Mapping):
        return [
            Fault(
                (),
                _("is not a block of settings. Begin with 'assay_protocol: 1'."),
                code="not_settings",
            )
        ]
    faults = [fault for error in _validator().iter_errors(values) for fault in faults_of(error)]
    faults += _control_characters(values)
    document = read_document(values)
    faults += label_faults(values, document.questions)
    # Scores that cannot be read are not missing.
    unread = {fault.path[:-1] for fault in faults if fault.path[-2:-1] == ("scores",)}
    wrong = unread | {fault.path for fault in faults}
    faults += [fault for fault in _meaning_faults(document, values) if fault.path not in wrong]
    return sorted(set(faults), key=lambda fault: [str(part).zfill(6) for part in fault.path])


@cache
def _validator() -> "Draft202012Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator(protocol_schema())


def _control_characters(values: Any, path: FaultPath = ()) -> Iterator[Fault]:
    if isinstance(values, str) and (match := CONTROL.search(values)):
        yield Fault(
            path,
            _("holds the character %(code)s, which no page can show. Take it out.")
            % {"code": f"U+{ord(match.group()):04X}"},
            code="unprintable",
        )
    if isinstance(values, Mapping):
        for name, each in values.items():
            yield from _control_characters(each, (*path, name))
    if isinstance(values, list | tuple):
        for index, each in enumerate(values):
            yield from _control_characters(each, (*path, index))


def _meaning_faults(document: ProtocolDocument, values: Mapping[str, Any]) -> Iterator[Fault]:
    """What no schema says. Questions have the values' numbers, so an unreadable one stops them."""
    rows = values.get("questions")
    if isinstance(rows, list) and all(isinstance(each, Mapping) for each in rows):
        yield from _question_faults(document)
    for index, example in enumerate(document.examples):
        for name, value in example.scores.items():
            if problem := _score_problem(document, name, value):
                yield Fault(("examples", index, "scores", name), problem)
    for index, check in enumerate(document.checks):
        if check.question and document.question(check.question) is None:
            yield Fault(("checks", index, "question"), _no_question(check.question, document))
        else:
            yield from check_faults(document, index)
    yield from _qualification_faults(document)
    yield from qualification_test_faults(document)
    yield from practice_faults(document)
    yield from _reason_faults(document)
    yield from broken_rules(
        ("order",),
        (
            document.pairs and document.order.policy != "fixed",
            "policy",
            _("must be as imported: the pairs say which response is on the left."),
            "order_of_pairs",
        ),
    )


def _qualification_faults(document: ProtocolDocument) -> Iterator[Fault]:
    yield from broken_rules(
        ("qualifications", "countries"),
        *(
            (
                pycountry.countries.get(alpha_2=code) is None,
                index,
                _("'%(code)s' is not a country's code: no worker could have it.") % {"code": code},
                "unknown_country",
            )
            for index, code in enumerate(document.qualifications.countries)
        ),
    )
    yield from broken_rules(
        ("qualifications", "languages"),
        *(
            (
                not is_language(code),
                index,
                _("'%(code)s' is not a language's code in ISO 639, such as de.") % {"code": code},
                "unknown_language",
            )
            for index, code in enumerate(document.qualifications.languages)
        ),
    )


@lru_cache(1000)
def is_language(code: str) -> bool:
    field = "alpha_2" if len(code) == 2 else "alpha_3"
    return code.islower() and pycountry.languages.get(**{field: code}) is not None


def _reason_faults(document: ProtocolDocument) -> Iterator[Fault]:
    yield from broken_rules(
        ("reason",),
        (
            document.reason.rule == "choice"
            and not any(each.kind in ("selection", "preference") for each in document.questions),
            "rule",
            _("needs a question with choices: ask for ticks or a preference."),
            "no_choices",
        ),
        (
            document.reason.rule == "none" and document.reason.least_length,
            "least_length",
            _("is set, but no reason is asked for."),
            "no_reason",
        ),
    )


def _question_faults(document: ProtocolDocument) -> Iterator[Fault]:
    names: set[str] = set()
    for index, question in enumerate(document.questions):
        path: FaultPath = ("questions", index)
        for name in (question.kind in KINDS and _column_names(question)) or [question.name]:
            yield from broken_rules(
                (*path, "name"),
                (
                    name in names,
                    "",
                    _("'%(name)s' is the name of another question already.") % {"name": name},
                    "repeated_name",
                ),
                (
                    len(name) > LONGEST_NAME,
                    "",
                    _("and its category make '%(name)s', which has %(n)d characters; %(most)d fit.")
                    % {"name": name, "n": len(name), "most": LONGEST_NAME},
                    "too_long",
                ),
            )
            names.add(name)
        yield from _point_faults(question, (*path, "points"))
        yield from _wording_faults(question, document, path)
        yield from _range_faults(question, path)
        yield from condition_faults(document.questions, index)
        yield from broken_rules(
            (*path, "cannot_tell"),
            (
                question.cannot_tell and question.check is not None,
                "",
                _("An attention check has a right answer, so it cannot offer this one."),
                "attention_check",
            ),
        )
        if question.check is not None and question.kind in CHECK_QUESTION_KINDS:
            yield from _right_answer_faults(question, question.check.value, (*path, "check"))
    if document.questions and not document.study_questions:
        yield Fault(
            ("questions",),
            _("All questions are attention checks. Add a question whose answers are results."),
            code="only_checks",
        )


def _column_names(question: ProtocolQuestion) -> list[str]:
    own = (
        []
        if question.kind != "categories"
        else [part_name(question, each) for each in question.categories]
    )
    return [question.name, *own]


def _point_faults(question: ProtocolQuestion, path: FaultPath) -> Iterator[Fault]:
    n, labels = len(question.points), [each for each in question.labels if question.points]
    ends = [end for end in (1, n) if n > 1 and not question.points[end - 1].strip()]
    repeated = [label for number, label in enumerate(labels) if label in labels[:number]]
    yield from broken_rules(
        path,
        (
            len(ends) == 1,
            sum(ends) - 1,
            _("Point %(n)s needs a label.") % {"n": sum(ends)},
            "empty",
        ),
        (
            len(ends) == 2,
            "",
            _("Point 1 and point %(n)s need a label.") % {"n": n},
            "empty",
        ),
        (
            repeated,
            "",
            _("Two points are labeled %(label)r. Give each its own label.")
            % {"label": "".join(repeated[:1])},
            "repeated",
        ),
    )


def _wording_faults(
    question: ProtocolQuestion, document: ProtocolDocument, path: FaultPath
) -> Iterator[Fault]:
    for name in NAMED_FIELD.findall(question.wording):
        if name == "system":
            yield Fault(
                (*path, "wording"),
                _("names {system}, which annotators never learn."),
                code="names_system",
            )
        elif name not in ITEM_FIELDS:
            yield Fault(
                (*path, "wording"),
                _("names {%(name)s}; items have %(known)s.")
                % {"name": name, "known": ", ".join(f"{{{each}}}" for each in ITEM_FIELDS)},
                code="unknown_field",
            )


def _order_faults(question: ProtocolQuestion, path: FaultPath) -> Iterator[Fault]:
    first = first_that_says_nothing(question.categories)
    yield from broken_rules(
        path,
        (
            question.level != "ordinal",
            "level",
            _("is %(level)s; of categories it is ordinal where they have an order, or left out.")
            % {"level": question.level},
            "not_ordinal",
        ),
        (
            first < 2,
            "categories",
            _("have fewer than two that are in the order."),
            "too_few_in_order",
        ),
    )
    for name in question.categories[first:]:
        if not says_nothing(name):
            yield Fault(
                (*path, "categories"),
                _(
                    "have “%(name)s” after “%(nothing)s”, which has no place in the order. Put "
                    "“%(nothing)s” last."
                )
                % {"name": name, "nothing": question.categories[first]},
                code="after_cannot_judge",
            )
            break


def _range_faults(question: ProtocolQuestion, path: FaultPath) -> Iterator[Fault]:
    low, high = range_of(question) if question.kind in ("line", "number") else (0, 1)
    if question.kind == "category" and question.level:
        yield from _order_faults(question, path)
    yield from broken_rules(
        path,
        (
            low >= high,
            "maximum",
            _("is %(high)g, not more than the minimum, %(low)g.") % {"high": high, "low": low},
            "below_minimum",
        ),
        (
            question.kind != "category" and question.level == "ratio" and low < 0,
            "minimum",
            _("is below zero, where a ratio scale begins."),
            "below_zero",
        ),
        *(
            (
                least is not None and most is not None and least > most,
                name,
                _("is %(most)s, less than the least, %(least)s.") % {"most": most, "least": least},
                "below_least",
            )
            for name, least, most in [
                ("most", question.least, question.most),
                ("most_length", question.least_length, question.most_length),
            ]
        ),
        (
            question.kind == "categories" and (question.least or 0) > len(question.categories),
            "least",
            _("is %(least)s of %(n)s categories.")
            % {"least": question.least, "n": len(question.categories)},
            "too_many_required",
        ),
    )


def _score_problem(document: ProtocolDocument, name: str, value: float) -> CodedText | None:
    question = document.question(name)
    if question is None:
        return _no_question(name, document)
    scales = scales_of(question) if question.kind in KINDS else ()
    if len(scales) != 1:
        return CodedText(
            _("has no single value, so an example cannot be scored on it."), "no_single_value"
        )
    return scale_problem(question, value)


def _no_question(name: str, document: ProtocolDocument) -> CodedText:
    return CodedText(
        _("there is no question '%(name)s'. Questions: %(names)s.")
        % {"name": name, "names": ", ".join(each.name for each in document.questions)},
        "unknown_question",
    )


# Kinds of questions with one value for a candidate; of a degraded one it must have an order.
CHECKED_KINDS = ("line", "likert", "category", "yes_no", "number", "selection")
KNOWN_VALUES = {"known_alternative": 1.0, "known_other": 0.0}


def checked_question(document: ProtocolDocument, check: Check) -> ProtocolQuestion | None:
    if check.question:
        return document.question(check.question)
    return next(iter(document.study_questions), None)


def check_faults(document: ProtocolDocument, index: int) -> Iterator[Fault]:
    check, path = document.checks[index], ("checks", index)
    question = checked_question(document, check)
    if question is None or question.kind not in KINDS:
        return
    yield from _checked_question_faults(document, check, question, path)
    is_made = check.kind in MADE_KINDS
    yield from broken_rules(
        (*path, "cases"),
        (
            is_made and check.cases,
            "",
            _("checks of this kind are made of a candidate of the page and have no cases."),
            "needless_cases",
        ),
        (
            not is_made and not check.cases,
            "",
            _("nothing can be placed: add a case that shows what is judged."),
            "missing",
        ),
    )
    for number, case in enumerate(() if is_made else check.cases):
        yield from _case_faults(check, case, question, (*path, "cases", number))


def _checked_question_faults(
    document: ProtocolDocument, check: Check, question: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    compared = [each.name for each in document.questions if _is_compared(each)]
    if compared:
        yield Fault(
            (*path, "kind"),
            _(
                "a candidate more would change the comparison that '%(name)s' asks for; "
                "checks need questions about single candidates."
            )
            % {"name": compared[0]},
            code="comparison",
        )
    elif (
        question.kind not in CHECKED_KINDS
        or question.about != CANDIDATE
        or question.check is not None
    ):
        yield Fault(
            (*path, "question"),
            _("'%(name)s' has no single value for a candidate, which a check needs.")
            % {"name": question.name},
            code="no_single_value",
        )
    elif check.kind == "degraded" and question.kind not in ("line", "likert", "number"):
        yield Fault(
            (*path, "question"),
            _("'%(name)s' has no higher and lower values, which a degraded check needs.")
            % {"name": question.name},
            code="unordered",
        )
    elif check.kind in KNOWN_VALUES and question.kind not in ("yes_no", "selection"):
        yield Fault(
            (*path, "question"),
            (
                _("'%(name)s' is neither a tick nor a yes or no, which this kind of check needs.")
                % {"name": question.name}
            ),
            code="not_ticked",
        )


def _is_compared(question: ProtocolQuestion) -> bool:
    kind = KINDS.get(question.kind)
    return kind is not None and kind.is_comparison and question.kind != "selection"


def _case_faults(
    check: Check, case: CheckCase, question: ProtocolQuestion, path: FaultPath
) -> Iterator[Fault]:
    yield from broken_rules(
        path,
        (
            not case.candidate.strip() and not case.source_item,
            "",
            _("shows nothing. Enter a text, or the item whose response is shown."),
            "shows_nothing",
        ),
        (
            case.source_candidate and not case.source_item,
            "source_item",
            _("is missing. Enter the item that has the chosen response."),
            "missing",
        ),
    )
    if case.value is not None or check.kind not in KNOWN_VALUES:
        yield from _right_answer_faults(question, case.value, path)


def _right_answer_faults(
    question: ProtocolQuestion, right: float | None, path: FaultPath
) -> Iterator[Fault]:
    low, high = range_of(question)
    value = low if right is None else right
    yield from broken_rules(
        path,
        (right is None, "value", _("is missing: the right answer."), "missing"),
        (
            right is not None and not low <= value <= high,
            "value",
            _("is %(value)g, outside the scale %(low)g to %(high)g of '%(name)s'.")
            % {"value": value, "low": low, "high": high, "name": question.name},
            "off_scale",
        ),
    )


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
            yield Fault(
                (*path, "source_candidate"),
                _("item '%(item)s' has no candidate '%(candidate)s'.")
                % {"item": case.source_item, "candidate": case.source_candidate},
                code="unknown_candidate",
            )
