"""A study's item, made into the page a worker judges on and the XML a marketplace takes."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.utils.translation import gettext as _

from annotation.models import Candidate, Item, Picture, PlacedCheck, Study
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.versions import current_document
from error_codes import InvalidValue
from hits.exceptions import QuestionTooLarge
from hits.judgments import ShownCandidate
from hits.orders import LATIN_SQUARE, order_rows
from hits.page_contexts import page_context, task_of
from hits.page_rendering import page_html

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
    """The item's page with its quality checks as an HTMLQuestion, or QuestionTooLarge.

    `first_slot` counts the assignments of the item's HITs before this one.
    """
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
    """The whole page of one item, with its pictures inside it wherever the question then fits.

    It is made by the study's newest protocol, unless another is given. A page of practice has its
    right answers in it (`hits.graded_pages`).
    """
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


def data_address(picture: Picture) -> str:
    """A picture's content as a data: address, in whichever encoding is shorter."""
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
    """A ValueError if there can be no page of what the document asks."""
    n_ticked = sum(question.kind == "selection" for question in document.questions)
    if study.kind == Study.Kind.ALTERNATIVES and n_ticked != 1:
        raise InvalidValue(
            _(
                "study: '{study}' asks {n} questions; alternatives are ticked under exactly one."
            ).format(study=study.slug, n=n_ticked),
            code="not_one_question",
        )
    if not document.questions:
        raise InvalidValue(
            _("study: '{study}' asks no question.").format(study=study.slug), code="no_question"
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
    task = _task(item, [candidate for _, candidate in candidates], document, first_slot)
    context = page_context(document, item) | {
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
    """Numbered candidates, checks among them, in an order made of nothing but the item's key and
    blind keys."""
    own = list(item.candidates.all())
    if not own:
        raise InvalidValue(
            _("item: '{item}' has no candidates to judge.").format(item=item.key),
            code="no_candidates",
        )
    candidates: list[ShownCandidate] = [*own, *checks]
    candidates.sort(key=lambda each: sha256(f"{item.key}\n{each.blind_key}".encode()).digest())
    return list(enumerate(candidates))


def letters_of(item: Item, checks: Sequence[PlacedCheck]) -> dict[str, str]:
    """Under which letter each candidate and check stands where the order is fixed."""
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
        is_check = [isinstance(each, PlacedCheck) for each in candidates]
        seed = f"{document.order.seed}\n{item.key}"
        task["order"]["rows"] = order_rows(is_check, seed, first_slot)
    return task
