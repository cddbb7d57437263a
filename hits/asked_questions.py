"""What a protocol asks, as a worker's page is given it: for its template, and for its script."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from annotation.models import Item
from annotation.protocols.conditions import value_condition
from annotation.protocols.markdown import markdown_html
from annotation.protocols.records import AskedQuestion, Consent, ProtocolDocument
from annotation.protocols.scales import range_of
from annotation.protocols.validation import NAMED_FIELD

ALL = "all"
# Of a question's record, what only its template shows.
OPTIONS = (
    *("low_label", "middle_label", "high_label", "show_number", "unit", "whole"),
    *("yes_label", "no_label", "none_label", "ties", "tie_label", "least", "most"),
    *("least_length", "most_length", "required", "kind"),
)


def scope_of(asked: AskedQuestion) -> str:
    """Of what it is asked: each candidate, the item, or all candidates of it at once."""
    if asked.kind == "selection":
        return "candidate"
    return ALL if asked.options.is_comparison else asked.about


def page_context(document: ProtocolDocument, item: Item) -> dict[str, Any]:
    """What the template shows of the protocol, beside the item."""
    return {
        "protocol": document,
        "instructions": markdown_html(document.instructions),
        "consent": document.consent and _consent_context(document.consent),
        "examples": [
            {"example": each, "scores": _scores(document, each.scores)}
            for each in document.examples
        ],
        "questions": [question_context(asked, document, item) for asked in document.questions],
    }


def question_context(
    asked: AskedQuestion, document: ProtocolDocument, item: Item
) -> dict[str, Any]:
    low, high = (_without_fraction(value) for value in range_of(asked))
    first = int(low) if asked.kind == "likert" else 0
    labels = asked.points or asked.categories
    return {
        **{name: getattr(asked, name) for name in OPTIONS},
        "name": asked.name,
        "title": asked.heading,
        "wording": worded(asked.wording, item),
        "about": scope_of(asked),
        "when": _when(asked, document),
        # What radio buttons and boxes stand for, and the value of each.
        "categories": list(asked.categories),
        "options": [(first + n, label) for n, label in enumerate(labels)],
        # As text, so that no locale's digit grouping gets into an attribute.
        "min": str(low),
        "max": str(high),
        "middle": str(low + (high - low) // 2),
    }


def worded(wording: str, item: Item) -> str:
    """The wording with the item's own {condition} and {reference} in it."""
    fields = {"condition": item.condition, "reference": item.reference}
    return NAMED_FIELD.sub(lambda match: fields.get(match[1], match[0]), wording)


def task_of(document: ProtocolDocument) -> dict[str, Any]:
    """What the page's script, or a program that acts as a worker, needs to know to answer."""
    reason = document.reason
    return {
        "questions": [_task_question(asked, document) for asked in document.questions],
        "justification_min_length": reason.least_length if reason.rule == "page" else 0,
        "reason": {"rule": reason.rule, "least_length": reason.least_length},
        "order": {"policy": document.order.policy, "seed": document.order.seed},
        "consent": consent_fingerprint(document),
    }


def _task_question(asked: AskedQuestion, document: ProtocolDocument) -> dict[str, Any]:
    """What only repeats a default is left out: the page has little room."""
    low, high = range_of(asked)
    record: dict[str, Any] = {"name": asked.name, "kind": asked.kind}
    if asked.options.is_text:
        record |= {"least_length": asked.least_length or 0, "most_length": asked.most_length}
    elif asked.kind == "categories":
        n = len(asked.categories)
        record |= {"n": n, "least": asked.least or 0, "most": asked.most or n}
    elif scope_of(asked) == ALL:
        record["ties"] = asked.ties
    else:
        record |= {"min": _without_fraction(low), "max": _without_fraction(high)}
    whole = {"whole": True} if asked.whole else {}
    optional = {} if asked.required else {"required": False}
    about = {} if scope_of(asked) == "candidate" else {"about": scope_of(asked)}
    when = {"when": condition} if (condition := _when(asked, document)) else {}
    return record | whole | optional | about | when


def _when(asked: AskedQuestion, document: ProtocolDocument) -> dict[str, Any] | None:
    before = document.question(asked.when.question) if asked.when else None
    if before is None:
        return None
    condition = value_condition(asked, before)
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


def _consent_context(consent: Consent) -> dict[str, Any]:
    return {
        "information": markdown_html(consent.information),
        "statement": consent.statement,
    }


def _scores(document: ProtocolDocument, scores: Mapping[str, float]) -> list[dict[str, Any]]:
    """Each score beside the question's heading, and in words where the value has a label."""
    rows = []
    for name, value in scores.items():
        asked = document.question(name)
        if asked is not None:
            rows.append({"title": asked.heading, "value": _in_words(asked, value)})
    return rows


def _in_words(asked: AskedQuestion, value: float) -> str:
    labels = asked.points or asked.categories
    index = value - (range_of(asked)[0] if asked.points else 0)
    if labels and index in range(len(labels)):
        return labels[int(index)]
    if asked.kind in ("yes_no", "selection"):
        return (asked.yes_label or "yes") if value else (asked.no_label or "no")
    return f"{value:g}"


def _without_fraction(number: float) -> float:
    return int(number) if float(number).is_integer() else number
