import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.utils.translation import gettext as _

from annotation.models import Candidate, Item, Picture, PlacedCheck, Study
from annotation.protocols.markdown import markdown_html
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.scales import range_of, value_condition
from annotation.protocols.validation import NAMED_FIELD
from annotation.protocols.versions import current_document
from error_codes import InvalidValue, require
from hits.exceptions import QuestionTooLarge
from hits.page_rendering import page_html

# What stands on a page to be judged: of the study, or to check with.
ShownCandidate = Candidate | PlacedCheck
ALL = "all"
# Of a question's record, what only its template shows.
OPTIONS = (
    *("low_label", "middle_label", "high_label", "show_number", "unit", "whole"),
    *("yes_label", "no_label", "none_label", "ties", "tie_label", "least", "most"),
    *("least_length", "most_length", "required", "kind", "cannot_tell"),
)


def scope_of(question: ProtocolQuestion) -> str:
    if question.kind == "selection":
        return "candidate"
    return ALL if question.options.is_comparison else question.about


def page_document(document: ProtocolDocument, checks: Sequence[PlacedCheck]) -> ProtocolDocument:
    """The document with the questions of one page: an attention check is on some pages only."""
    placed = {each.question for each in checks if each.is_question}
    asked = (each for each in document.questions if each.check is None or each.name in placed)
    return replace(document, questions=tuple(asked))


def checked_candidates(checks: Sequence[PlacedCheck]) -> dict[str, str]:
    """By the name of a question that is a check, the one candidate that it is about."""
    return {
        each.question: each.compared.blind_key
        for each in checks
        if each.is_question and each.compared is not None
    }


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
    return {
        **{name: getattr(question, name) for name in OPTIONS},
        "name": question.name,
        "title": question.heading,
        "wording": worded(question.wording, item),
        "about": scope_of(question),
        "when": _when(question, document),
        # What radio buttons and boxes stand for, and the value of each.
        "categories": list(question.categories),
        "options": [(first + n, label) for n, label in enumerate(question.labels)],
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
    # Defaults are left out: the page has little room.
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
    cannot_tell = {"cannot_tell": True} if question.cannot_tell else {}
    when = {"when": condition} if (condition := _when(question, document)) else {}
    return record | whole | optional | cannot_tell | about | when


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
    if document.consent is None:
        return None
    text = f"{document.consent.information}\n{document.consent.statement}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _scores(document: ProtocolDocument, scores: Mapping[str, float]) -> list[dict[str, Any]]:
    return [
        {"title": question.heading, "value": value_in_words(question, value)}
        for name, value in scores.items()
        if (question := document.question(name)) is not None
    ]


def value_in_words(question: ProtocolQuestion, value: float) -> str:
    labels = question.labels
    index = value - (range_of(question)[0] if question.points else 0)
    if labels and index in range(len(labels)):
        return labels[int(index)]
    if question.kind in ("yes_no", "selection"):
        return (question.yes_label or "yes") if value else (question.no_label or "no")
    return f"{value:g}"


def _without_fraction(number: float) -> float:
    return int(number) if float(number).is_integer() else number


MAX_QUESTION_BYTES = 65_535
HTML_QUESTION = (
    '<HTMLQuestion xmlns="http://mechanicalturk.amazonaws.com/'
    'AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd">'
    "<HTMLContent><![CDATA[{}]]></HTMLContent><FrameHeight>0</FrameHeight></HTMLQuestion>"
)
# XML 1.0 has no way to write these, not even escaped.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Address = Callable[[Picture], str]


def html_question(
    item: Item,
    document: ProtocolDocument | None = None,
    checks: Sequence[PlacedCheck] = (),
    practice: Mapping[str, Any] | None = None,
    *,
    first_slot: int = 0,
) -> str:
    """QuestionTooLarge if it is too large. `first_slot` is how many assignments the item's
    earlier HITs have."""
    question = question_of(task_page(item, document, checks, practice, first_slot=first_slot))
    size = len(question.encode())
    if size > MAX_QUESTION_BYTES:
        raise QuestionTooLarge(
            _(
                "Item '{item}' of study '{study}' makes a question of {size:,} bytes; "
                "a marketplace takes at most {most:,}. Shorten its texts or the "
                "study's instructions, or split its candidates over several items."
            ).format(
                item=item.key,
                study=item.study.slug,
                size=size,
                most=MAX_QUESTION_BYTES,
            )
        )
    return question


def task_page(
    item: Item,
    document: ProtocolDocument | None = None,
    checks: Sequence[PlacedCheck] = (),
    practice: Mapping[str, Any] | None = None,
    *,
    first_slot: int = 0,
) -> str:
    """Pictures are embedded if the question then fits. A page of practice contains its right
    answers (`hits.practice`)."""
    prefetch_related_objects([item], "picture", "candidates__picture")
    document = document or current_document(item.study)
    require_questions(item.study, document)
    owners: list[Item | Candidate | PlacedCheck] = [item, *item.candidates.all(), *checks]
    pictures = [owner.picture for owner in owners if owner.picture]
    if sum(len(picture.content) for picture in pictures) < MAX_QUESTION_BYTES:
        page = _render_page(item, document, checks, data_address, practice, first_slot)
        if not pictures or len(question_of(page).encode()) <= MAX_QUESTION_BYTES:
            return page
    return _render_page(item, document, checks, web_address, practice, first_slot)


def preview_page(item: Item, document: ProtocolDocument) -> str:
    """The page of an item that is not stored, with its pictures in it, whatever their size."""
    require_questions(item.study, document)
    return _render_page(item, document, (), data_address, None, 0)


def data_address(picture: Picture) -> str:
    content = bytes(picture.content)
    text = base64.b64encode(content).decode()
    kind = quote(picture.media_type, safe="/+-.")
    escaped = quote(content, safe=" !*'()-._~:/?@=,;+$&")
    if len(escaped) < len(text) and picture.media_type.endswith("xml"):
        return f"data:{kind},{escaped}"
    return f"data:{kind};base64,{text}"


def web_address(picture: Picture) -> str:
    return f"{settings.SITE_URL}/pictures/{picture.sha256}"


def require_questions(study: Study, document: ProtocolDocument) -> None:
    n_ticked = sum(question.kind == "selection" for question in document.questions)
    require(
        study.kind != Study.Kind.ALTERNATIVES or n_ticked == 1,
        InvalidValue(
            _(
                "study: '{study}' asks {n} questions; alternatives are ticked under exactly one."
            ).format(study=study.slug, n=n_ticked),
            code="not_one_question",
        ),
    )
    require(
        document.questions,
        InvalidValue(
            _("study: '{study}' asks no question.").format(study=study.slug), code="no_question"
        ),
    )


def question_of(page: str) -> str:
    return HTML_QUESTION.format(page.replace("]]>", "]]]]><![CDATA[>"))


def _render_page(
    item: Item,
    document: ProtocolDocument,
    checks: Sequence[PlacedCheck],
    address: Address,
    practice: Mapping[str, Any] | None,
    first_slot: int,
) -> str:
    study = item.study
    candidates = _shuffle(item, checks)
    document, about = page_document(document, checks), checked_candidates(checks)
    task = _task(item, [candidate for _, candidate in candidates], document, first_slot)
    context = page_context(document, item)
    for question in (*task["questions"], *context["questions"]):
        if question["name"] in about:
            question["candidate"] = about[question["name"]]
    context |= {
        "study": study,
        "item": item,
        "picture": item.picture and address(item.picture),
        "candidates": [
            {
                "key": candidate.blind_key,
                "letter": letter_at(index),
                "text": candidate.text,
                "picture": candidate.picture and address(candidate.picture),
            }
            for index, candidate in candidates
        ],
        "task": task | ({"practice": practice} if practice else {}),
        "practice": practice,
        "image_source": "" if address is data_address else f"{settings.SITE_URL}/pictures/",
        "template": f"worker_page/{study.kind}.html",
    }
    return NOT_XML.sub("\ufffd", page_html(context))


def _shuffle(item: Item, checks: Sequence[PlacedCheck]) -> list[tuple[int, ShownCandidate]]:
    own = list(item.candidates.all())
    require(
        own,
        InvalidValue(
            _("item: '{item}' has no candidates to judge.").format(item=item.key),
            code="no_candidates",
        ),
    )
    candidates: list[ShownCandidate] = [*own, *(each for each in checks if not each.is_question)]
    # A pair has its left and its right candidate.
    if item.source_id is None:
        candidates.sort(key=lambda each: sha256(f"{item.key}\n{each.blind_key}".encode()).digest())
    return list(enumerate(candidates))


def letters_of(item: Item, checks: Sequence[PlacedCheck]) -> dict[str, str]:
    return {each.blind_key: letter_at(index) for index, each in _shuffle(item, checks)}


def letter_at(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else str(index + 1)


def _task(
    item: Item, candidates: list[ShownCandidate], document: ProtocolDocument, first_slot: int
) -> dict[str, Any]:
    task = task_of(document) | {
        "version": 1,
        "item": str(item.pk),
        "kind": item.study.kind,
        "candidates": [candidate.blind_key for candidate in candidates],
    }
    if document.order.policy == LATIN_SQUARE:
        task["order"]["rows"] = order_rows(
            [isinstance(each, PlacedCheck) for each in candidates],
            f"{document.order.seed}\n{item.key}",
            first_slot,
        )
    return task


LATIN_SQUARE, FIXED = "latin_square", "fixed"
# The slot of an assignment in its HIT, in the address of a page on Assay's marketplace.
SLOT = "assaySlot"


# `shown_order` does what `ordered` in `templates/worker_page/page.js` does in the browser: a test
# compares them (docs/adr/0023-orders-by-slots.md).


def balanced_orders(n: int) -> list[list[int]]:
    """The rows of a Williams design of n treatments: n rows for an even n, 2n for an odd n.

    Every n rows from a multiple of n on are a Latin square. In the whole design each treatment also
    directly follows each other one equally often. Source: Williams (1949), Experimental designs
    balanced for the estimation of residual effects of treatments, Australian Journal of Scientific
    Research A 2, 149-168.
    """
    first = [(position + 1) // 2 if position % 2 else -position // 2 for position in range(n)]
    rows = [[(place + turn) % n for place in first] for turn in range(n)]
    return rows + [row[::-1] for row in rows] if n % 2 else rows


def order_rows(is_check: Sequence[bool], seed: str, first_slot: int = 0) -> list[list[int]]:
    """Indices into the candidates of a page, a row per slot, for the slots from `first_slot` on.

    Quality checks have the same place in all rows, so that the candidates are balanced among
    themselves and over the places of the page.
    """
    own = [index for index, each in enumerate(is_check) if not each]
    turn = int.from_bytes(sha256(seed.encode()).digest()[:4]) % len(own)
    rows = []
    for order in balanced_orders(len(own)):
        shown = iter(own[(place + turn) % len(own)] for place in order)
        rows.append([index if each else next(shown) for index, each in enumerate(is_check)])
    first = first_slot % len(rows)
    return rows[first:] + rows[:first]


def shown_order(task: Mapping[str, Any], assignment_id: str, slot: int | None = None) -> list[str]:
    """The blind keys of a page's candidates in the order that this assignment shows.

    Without a slot, as on marketplaces that give none, a hash of the assignment's id picks the row.
    """
    keys, order = list(task["candidates"]), task["order"]
    if order["policy"] == FIXED:
        return keys
    drawn = _fnv1a(f"{order['seed'] or ''}{assignment_id}")
    if rows := order.get("rows"):
        return [keys[index] for index in rows[(drawn if slot is None else slot) % len(rows)]]
    return _shuffled(keys, drawn)


def _fnv1a(text: str) -> int:
    """The 32-bit FNV-1a hash of a text, by code points."""
    value = 2166136261
    for character in text:
        value = (value ^ ord(character)) * 16777619 & 0xFFFFFFFF
    return value


def _shuffled(keys: list[str], seed: int) -> list[str]:
    for last in range(len(keys) - 1, 0, -1):
        seed = (seed + 0x6D2B79F5) & 0xFFFFFFFF
        mixed = (seed ^ seed >> 15) * (1 | seed) & 0xFFFFFFFF
        mixed ^= mixed + ((mixed ^ mixed >> 7) * (61 | mixed) & 0xFFFFFFFF) & 0xFFFFFFFF
        other = (mixed ^ mixed >> 14) * (last + 1) >> 32
        keys[last], keys[other] = keys[other], keys[last]
    return keys


def is_even(orders: Iterable[Sequence[str]]) -> bool:
    """Whether each candidate was at each place equally often, as close as the number of
    submissions allows."""
    orders = list(orders)
    counts = Counter((place, key) for order in orders for place, key in enumerate(order))
    keys = {key for order in orders for key in order}
    times = [counts[place, key] for place in range(len(keys)) for key in keys]
    return not times or max(times) - min(times) <= 1
