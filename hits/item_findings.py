"""What a protocol asks that items of the study do not have: the text that a wording names, or two
responses to choose between. Workers would be paid for answers to a question about nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.db.models import Count, Max, Min, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Item, Study
from annotation.protocols.practice import practised_keys
from annotation.protocols.validation import ITEM_FIELDS, NAMED_FIELD
from hits.preflight import Finding, Level

if TYPE_CHECKING:
    from annotation.protocols.records import ProtocolDocument, ProtocolQuestion


def item_findings(study: Study, document: ProtocolDocument) -> Iterator[Finding]:
    """Of the items that are judged; each finding with the field of the protocol's form."""
    yield from _instruction_findings(document)
    named = [
        (f"q{index}-wording", question, name)
        for index, question in enumerate(document.questions)
        for name in dict.fromkeys(NAMED_FIELD.findall(question.wording))
        if name in ITEM_FIELDS
    ]
    compared = [
        (f"q{index}-kind", question)
        for index, question in enumerate(document.questions)
        if question.kind == "preference"
    ]
    if not named and not compared:
        return
    items = study.items.exclude(key__in=practised_keys(document))
    counts = items.aggregate(
        n=Count("pk"), **{name: Count("pk", filter=Q(**{name: ""})) for name in ITEM_FIELDS}
    )
    for field, question, name in named:
        if counts[name]:
            yield _wording_finding(field, question, name, counts[name], counts["n"])
    others = _without_two(items) if compared else None
    if others and others["n"]:
        for field, question in compared:
            yield _preference_finding(field, question, others)


def _instruction_findings(document: ProtocolDocument) -> Iterator[Finding]:
    """Of names that stay as they are written: items have one text each, instructions have none."""
    for name in dict.fromkeys(NAMED_FIELD.findall(document.instructions)):
        if name in ITEM_FIELDS:
            text = _(
                "The instructions name {%(name)s}, which workers will read as it is written: only "
                "the wording of a question has an item's own text there."
            )
            yield Finding(
                Level.WARNING,
                text % {"name": name},
                protocol_field="instructions",
                code="name_in_instructions",
            )


def _wording_finding(
    field: str, question: ProtocolQuestion, name: str, n_without: int, n_items: int
) -> Finding:
    values = {"question": question.heading, "name": name, "n": f"{n_without:,}"}
    if n_without == n_items:
        text = _(
            "The wording of “%(question)s” names {%(name)s}, and no item has one: workers would be "
            "asked about nothing. Change the wording, or add items that have one."
        )
        return Finding(Level.FAULT, text % values, protocol_field=field, code="name_of_nothing")
    text = ngettext(
        "The wording of “%(question)s” names {%(name)s}, and %(n)s item has none: nothing stands "
        "there on its page.",
        "The wording of “%(question)s” names {%(name)s}, and %(n)s items have none: nothing stands "
        "there on their pages.",
        n_without,
    )
    return Finding(Level.WARNING, text % values, protocol_field=field, code="name_lacking")


def _without_two(items: QuerySet[Item]) -> dict[str, int]:
    """How many items have not two responses, and how many those have, at least and at most."""
    counted = items.order_by().annotate(n_candidates=Count("candidates"))
    others = counted.exclude(n_candidates=2)
    return others.aggregate(n=Count("pk"), least=Min("n_candidates"), most=Max("n_candidates"))


def _preference_finding(field: str, question: ProtocolQuestion, others: dict[str, int]) -> Finding:
    text = ngettext(
        "“%(question)s” asks which is preferred, and %(n)s item has not two responses but %(k)s. "
        "Workers choose one of them all: see that wording and instructions do not speak of two.",
        "“%(question)s” asks which is preferred, and %(n)s items have not two responses but %(k)s. "
        "Workers choose one of them all: see that wording and instructions do not speak of two.",
        others["n"],
    )
    least, most = others["least"], others["most"]
    k = str(least) if least == most else f"{least}–{most}"
    values = {"question": question.heading, "n": f"{others['n']:,}", "k": k}
    return Finding(Level.WARNING, text % values, protocol_field=field, code="not_two_responses")
