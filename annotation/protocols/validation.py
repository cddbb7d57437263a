"""Every fault of a protocol at once: of its schema, and of what its parts say of each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

import pycountry
from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator

from annotation.models.studies import first_that_says_nothing, says_nothing
from annotation.protocols.check_faults import check_faults
from annotation.protocols.conditions import condition_faults
from annotation.protocols.documents import read_document
from annotation.protocols.faults import Fault, FaultPath, faults_of
from annotation.protocols.kinds import KINDS
from annotation.protocols.practice import practice_faults
from annotation.protocols.qualification_tests import qualification_test_faults
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.right_values import label_faults
from annotation.protocols.scales import part_name, range_of, scale_problem, scales_of
from annotation.protocols.schema import protocol_schema
from error_codes import CodedText

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
def _validator() -> Draft202012Validator:
    return Draft202012Validator(protocol_schema())


def _control_characters(values: Any, path: FaultPath = ()) -> Iterator[Fault]:
    if isinstance(values, str) and (match := CONTROL.search(values)):
        code = f"U+{ord(match.group()):04X}"
        text = _("holds the character %(code)s, which no page can show. Take it out.")
        yield Fault(path, text % {"code": code}, code="unprintable")
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


def _qualification_faults(document: ProtocolDocument) -> Iterator[Fault]:
    for index, code in enumerate(document.qualifications.countries):
        if pycountry.countries.get(alpha_2=code) is None:
            path = ("qualifications", "countries", index)
            text = _("'%(code)s' is not a country's code: no worker could have it.")
            yield Fault(path, text % {"code": code}, code="unknown_country")
    for index, code in enumerate(document.qualifications.languages):
        if not is_language(code):
            path = ("qualifications", "languages", index)
            text = _("'%(code)s' is not a language's code in ISO 639, such as de.")
            yield Fault(path, text % {"code": code}, code="unknown_language")


@lru_cache(1000)
def is_language(code: str) -> bool:
    """Whether it is a language's code in ISO 639, of two letters or three."""
    field = "alpha_2" if len(code) == 2 else "alpha_3"
    return code.islower() and pycountry.languages.get(**{field: code}) is not None


def _reason_faults(document: ProtocolDocument) -> Iterator[Fault]:
    is_chosen = any(each.kind in ("selection", "preference") for each in document.questions)
    if document.reason.rule == "choice" and not is_chosen:
        problem = _("is 'choice', but no question has choices: ask for ticks or a preference.")
        yield Fault(("reason", "rule"), problem, code="no_choices")
    if document.reason.rule == "none" and document.reason.least_length:
        yield Fault(
            ("reason", "least_length"), _("is set, but no reason is asked for."), code="no_reason"
        )


def _question_faults(document: ProtocolDocument) -> Iterator[Fault]:
    names: dict[str, str] = {}
    for index, question in enumerate(document.questions):
        path: FaultPath = ("questions", index)
        for name in (question.kind in KINDS and _column_names(question)) or [question.name]:
            if name in names:
                text = _("'%(name)s' is the name of another question already.")
                yield Fault((*path, "name"), text % {"name": name}, code="repeated_name")
            names[name] = question.name
            if len(name) > LONGEST_NAME:
                text = _(
                    "and its category make '%(name)s', which has %(n)d characters; %(most)d fit."
                )
                values = {"name": name, "n": len(name), "most": LONGEST_NAME}
                yield Fault((*path, "name"), text % values, code="too_long")
        yield from _wording_faults(question, document, path)
        yield from _range_faults(question, path)
        yield from condition_faults(document.questions, index)


def _column_names(question: ProtocolQuestion) -> list[str]:
    own = (
        []
        if question.kind != "categories"
        else [part_name(question, each) for each in question.categories]
    )
    return [question.name, *own]


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
            known = ", ".join(f"{{{each}}}" for each in ITEM_FIELDS)
            text = _("names {%(name)s}; items have %(known)s.")
            yield Fault(
                (*path, "wording"), text % {"name": name, "known": known}, code="unknown_field"
            )


def _order_faults(question: ProtocolQuestion, path: FaultPath) -> Iterator[Fault]:
    """Categories are in an order or in none, and what says that nothing can be said is after it."""
    if question.level != "ordinal":
        text = _("is %(level)s; of categories it is ordinal where they have an order, or left out.")
        yield Fault((*path, "level"), text % {"level": question.level}, code="not_ordinal")
    first = first_that_says_nothing(question.categories)
    if first < 2:
        yield Fault(
            (*path, "categories"),
            _("have fewer than two that are in the order."),
            code="too_few_in_order",
        )
    for name in question.categories[first:]:
        if not says_nothing(name):
            text = _(
                "have “%(name)s” after “%(nothing)s”, which has no place in the order. Put "
                "“%(nothing)s” last."
            )
            said = {"name": name, "nothing": question.categories[first]}
            yield Fault((*path, "categories"), text % said, code="after_cannot_judge")
            break


def _range_faults(question: ProtocolQuestion, path: FaultPath) -> Iterator[Fault]:
    low, high = range_of(question) if question.kind in ("line", "number") else (0, 1)
    if low >= high:
        text = _("is %(high)g, not more than the minimum, %(low)g.")
        yield Fault((*path, "maximum"), text % {"high": high, "low": low}, code="below_minimum")
    if question.kind == "category" and question.level:
        yield from _order_faults(question, path)
    elif question.level == "ratio" and low < 0:
        yield Fault(
            (*path, "minimum"), _("is below zero, where a ratio scale begins."), code="below_zero"
        )
    pairs = [
        ("most", question.least, question.most),
        ("most_length", question.least_length, question.most_length),
    ]
    for name, least, most in pairs:
        if least is not None and most is not None and least > most:
            text = _("is %(most)s, less than the least, %(least)s.")
            yield Fault((*path, name), text % {"most": most, "least": least}, code="below_least")
    if (
        question.kind == "categories"
        and question.least
        and question.least > len(question.categories)
    ):
        text = _("is %(least)s of %(n)s categories.")
        values = {"least": question.least, "n": len(question.categories)}
        yield Fault((*path, "least"), text % values, code="too_many_required")


def _score_problem(document: ProtocolDocument, name: str, value: float) -> CodedText | None:
    question = document.question(name)
    if question is None:
        return _no_question(name, document)
    scales = scales_of(question) if question.kind in KINDS else ()
    if len(scales) != 1:
        text = _("has no single value, so an example cannot be scored on it.")
        return CodedText(text, "no_single_value")
    return scale_problem(question, value)


def _no_question(name: str, document: ProtocolDocument) -> CodedText:
    names = ", ".join(each.name for each in document.questions)
    text = _("there is no question '%(name)s'. Questions: %(names)s.")
    return CodedText(text % {"name": name, "names": names}, "unknown_question")
