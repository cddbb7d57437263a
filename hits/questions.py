"""A study's item, made into the page a worker judges on and the XML a marketplace takes."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from annotation.models import Candidate, Item, Picture, Question, Study
from hits.exceptions import QuestionTooLarge

MAX_QUESTION_BYTES = 65_535
HTML_QUESTION = (
    '<HTMLQuestion xmlns="http://mechanicalturk.amazonaws.com/'
    'AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd">'
    "<HTMLContent><![CDATA[{}]]></HTMLContent><FrameHeight>0</FrameHeight></HTMLQuestion>"
)
# XML 1.0 has no way to write these, not even escaped.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Address = Callable[[Picture], str]


def html_question(item: Item) -> str:
    """The item's page as an HTMLQuestion, or QuestionTooLarge."""
    question = question_of(task_page(item))
    size = len(question.encode())
    if size > MAX_QUESTION_BYTES:
        raise QuestionTooLarge(
            f"Item '{item.key}' of study '{item.study.slug}' makes a question of {size:,} bytes; "
            f"a marketplace takes at most {MAX_QUESTION_BYTES:,}. Shorten its texts or the "
            "study's instructions, or split its candidates over several items."
        )
    return question


def task_page(item: Item) -> str:
    """The whole page of one item, with its pictures inside it wherever the question then fits."""
    prefetch_related_objects([item], "study__questions", "picture", "candidates__picture")
    owners: list[Item | Candidate] = [item, *item.candidates.all()]
    pictures = [owner.picture for owner in owners if owner.picture]
    if sum(len(picture.content) for picture in pictures) < MAX_QUESTION_BYTES:
        page = _rendered(item, data_address)
        if not pictures or len(question_of(page).encode()) <= MAX_QUESTION_BYTES:
            return page
    return _rendered(item, web_address)


def data_address(picture: Picture) -> str:
    """A picture's content as a data: address, in whichever encoding is shorter."""
    content = bytes(picture.content)
    encoded = base64.b64encode(content).decode()
    kind = quote(picture.media_type, safe="/+-.")
    escaped = quote(content, safe=" !*'()-._~:/?@=,;+$&")
    if len(escaped) < len(encoded) and picture.media_type.endswith("xml"):
        return f"data:{kind},{escaped}"
    return f"data:{kind};base64,{encoded}"


def web_address(picture: Picture) -> str:
    return f"{settings.SITE_URL}/pictures/{picture.sha256}"


def judged_questions(study: Study) -> list[Question]:
    """The questions the study's page asks, or a ValueError if there can be no such page."""
    questions = list(study.questions.all())
    if study.kind == Study.Kind.ALTERNATIVES and len(questions) != 1:
        raise ValueError(
            f"study: '{study.slug}' asks {len(questions)} questions; alternatives are ticked "
            "under exactly one."
        )
    if not questions:
        raise ValueError(f"study: '{study.slug}' asks no question.")
    return questions


def scale_of(question: Question, study: Study) -> tuple[float, float]:
    """The least and the greatest value an answer to the question may have on the page."""
    if study.kind == Study.Kind.ALTERNATIVES:
        return 0, 1
    if question.categories:
        return 0, len(question.categories) - 1
    return _whole(question.scale_min), _whole(question.scale_max)


def _whole(number: float) -> float:
    return int(number) if float(number).is_integer() else number


def question_of(page: str) -> str:
    """Any page as HTMLQuestion XML."""
    return HTML_QUESTION.format(page.replace("]]>", "]]]]><![CDATA[>"))


def _rendered(item: Item, address: Address) -> str:
    study = item.study
    candidates = _shuffled(item)
    questions = judged_questions(study)
    context = {
        "study": study,
        "item": item,
        "picture": item.picture and address(item.picture),
        "candidates": [
            _candidate_context(candidate, index, address) for index, candidate in candidates
        ],
        "questions": [_question_context(question, study) for question in questions],
        "has_lines": any(not question.categories for question in questions),
        "task": _task(item, [candidate for _, candidate in candidates], questions),
        "columns": min(len(candidates), 4),
        "rows": len(questions) + 2,
        "image_source": "data:" if address is data_address else f"{settings.SITE_URL}/pictures/",
        "template": f"worker_page/{study.kind}.html",
        "css": _slim("worker_page/page.css"),
        "js": _slim("worker_page/page.js"),
    }
    return NOT_XML.sub("\ufffd", render_to_string("worker_page/page.html", context))


def _slim(name: str) -> SafeString:
    """A stylesheet or script without its indentation and its lines of comment."""
    source = re.sub(r"\n\s*(//|/\*).*", "", f"\n{render_to_string(name)}")
    source = re.sub(r"\s*\n\s*", "\n", source).strip()
    if name.endswith(".css"):
        source = re.sub(r"\s*([{};,>])\s*|(?<=:)\s+", r"\1", source).replace(";}", "}")
    return mark_safe(source)  # it holds nothing but our own files


def _shuffled(item: Item) -> list[tuple[int, Candidate]]:
    """Numbered candidates in an order made of nothing but the item's key and blind keys."""
    candidates = list(item.candidates.all())
    if not candidates:
        raise ValueError(f"item: '{item.key}' has no candidates to judge.")
    candidates.sort(key=lambda each: sha256(f"{item.key}\n{each.blind_key}".encode()).digest())
    return list(enumerate(candidates))


def _candidate_context(candidate: Candidate, index: int, address: Address) -> dict[str, Any]:
    return {
        "key": candidate.blind_key,
        "letter": chr(ord("A") + index) if index < 26 else str(index + 1),
        "text": candidate.text,
        "picture": candidate.picture and address(candidate.picture),
    }


def _question_context(question: Question, study: Study) -> dict[str, Any]:
    low, high = scale_of(question, study)
    title = question.name.replace("_", " ").replace("-", " ").strip()
    return {
        "name": question.name,
        "title": title[:1].upper() + title[1:],
        "wording": question.wording,
        "low_label": question.low_label,
        "high_label": question.high_label,
        "categories": question.categories,
        # As text, so that no locale's digit grouping gets into an attribute.
        "min": str(low),
        "max": str(high),
        "middle": str(low + (high - low) // 2),
    }


def _task(item: Item, candidates: list[Candidate], questions: list[Question]) -> dict[str, Any]:
    """What the page's script, or a program that acts as a worker, needs to know to answer."""
    scales = [(question.name, *scale_of(question, item.study)) for question in questions]
    return {
        "version": 1,
        "item": str(item.pk),
        "kind": item.study.kind,
        "questions": [{"name": name, "min": low, "max": high} for name, low, high in scales],
        "candidates": [candidate.blind_key for candidate in candidates],
        "justification_min_length": item.study.justification_min_length,
    }
