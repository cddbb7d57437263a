"""What a protocol asks, as a worker's page is given it: for its template, and for its script."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from annotation.models import Item
from annotation.protocols.markdown import markdown_html
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.scales import range_of, value_condition
from annotation.protocols.validation import NAMED_FIELD

ALL = "all"
# Of a question's record, what only its template shows.
OPTIONS = (
    *("low_label", "middle_label", "high_label", "show_number", "unit", "whole"),
    *("yes_label", "no_label", "none_label", "ties", "tie_label", "least", "most"),
    *("least_length", "most_length", "required", "kind"),
)


def scope_of(question: ProtocolQuestion) -> str:
    """Of what it is asked: each candidate, the item, or all candidates of it at once."""
    if question.kind == "selection":
        return "candidate"
    return ALL if question.options.is_comparison else question.about


def page_context(document: ProtocolDocument, item: Item) -> dict[str, Any]:
    return {
        "protocol": document,
        "instructions": markdown_html(document.instructions),
        "consent": document.consent
        and {
            "information": markdown_html(document.consent.information),
            "statement": document.consent.statement,
        },
        "examples": [
            {"example": each, "scores": _scores(document, each.scores)}
            for each in document.examples
        ],
        "questions": [
            question_context(question, document, item) for question in document.questions
        ],
    }


def question_context(
    question: ProtocolQuestion, document: ProtocolDocument, item: Item
) -> dict[str, Any]:
    low, high = (_without_fraction(value) for value in range_of(question))
    first = int(low) if question.kind == "likert" else 0
    labels = question.points or question.categories
    return {
        **{name: getattr(question, name) for name in OPTIONS},
        "name": question.name,
        "title": question.heading,
        "wording": worded(question.wording, item),
        "about": scope_of(question),
        "when": _when(question, document),
        # What radio buttons and boxes stand for, and the value of each.
        "categories": list(question.categories),
        "options": [(first + n, label) for n, label in enumerate(labels)],
        # As text, so that no locale's digit grouping gets into an attribute.
        "min": str(low),
        "max": str(high),
        "middle": str(low + (high - low) // 2),
    }


def worded(wording: str, item: Item) -> str:
    fields = {"condition": item.condition, "reference": item.reference}
    return NAMED_FIELD.sub(lambda match: fields.get(match[1], match[0]), wording)


def task_of(document: ProtocolDocument) -> dict[str, Any]:
    reason = document.reason
    return {
        "questions": [_task_question(question, document) for question in document.questions],
        "justification_min_length": reason.least_length if reason.rule == "page" else 0,
        "reason": {"rule": reason.rule, "least_length": reason.least_length},
        "order": {"policy": document.order.policy, "seed": document.order.seed},
        "consent": consent_fingerprint(document),
    }


def _task_question(question: ProtocolQuestion, document: ProtocolDocument) -> dict[str, Any]:
    """What only repeats a default is left out: the page has little room."""
    low, high = range_of(question)
    record: dict[str, Any] = {"name": question.name, "kind": question.kind}
    if question.options.is_text:
        record |= {"least_length": question.least_length or 0, "most_length": question.most_length}
    elif question.kind == "categories":
        n = len(question.categories)
        record |= {"n": n, "least": question.least or 0, "most": question.most or n}
    elif scope_of(question) == ALL:
        record["ties"] = question.ties
    else:
        record |= {"min": _without_fraction(low), "max": _without_fraction(high)}
    whole = {"whole": True} if question.whole else {}
    optional = {} if question.required else {"required": False}
    about = {} if scope_of(question) == "candidate" else {"about": scope_of(question)}
    when = {"when": condition} if (condition := _when(question, document)) else {}
    return record | whole | optional | about | when


def _when(question: ProtocolQuestion, document: ProtocolDocument) -> dict[str, Any] | None:
    before = document.question(question.when.question) if question.when else None
    if before is None:
        return None
    condition = value_condition(question, before)
    limits = {"below": condition.below, "above": condition.above}
    record: dict[str, Any] = {"question": before.name}
    record |= {"any_of": list(condition.any_of)} if condition.any_of else {}
    return record | {name: value for name, value in limits.items() if value is not None}


def consent_fingerprint(document: ProtocolDocument) -> str | None:
    """Which text is agreed to; None where nothing is."""
    if document.consent is None:
        return None
    text = f"{document.consent.information}\n{document.consent.statement}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _scores(document: ProtocolDocument, scores: Mapping[str, float]) -> list[dict[str, Any]]:
    """Each score beside the question's heading, and in words where the value has a label."""
    rows = []
    for name, value in scores.items():
        question = document.question(name)
        if question is not None:
            rows.append({"title": question.heading, "value": value_in_words(question, value)})
    return rows


def value_in_words(question: ProtocolQuestion, value: float) -> str:
    """The label of an answer, where it has one, else its number."""
    labels = question.points or question.categories
    index = value - (range_of(question)[0] if question.points else 0)
    if labels and index in range(len(labels)):
        return labels[int(index)]
    if question.kind in ("yes_no", "selection"):
        return (question.yes_label or "yes") if value else (question.no_label or "no")
    return f"{value:g}"


def _without_fraction(number: float) -> float:
    return int(number) if float(number).is_integer() else number
