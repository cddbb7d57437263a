"""The worker's page as HTML: its texts in the study's language, and of scripts and styles what it
uses. Only the widgets of its own questions are in it, since a marketplace takes 65,535 bytes."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from annotation.models import MissingAnswer
from annotation.protocols.versions import current_document
from hits.page_texts import RIGHT_TO_LEFT, page_language
from hits.wages import StudyTexts, duration_of

Schema = dict[str, Any]
# The value of an answer that is missing, as the page sends it.
CANNOT_TELL = MissingAnswer.Reason.CANNOT_TELL.value
LONGEST_TEXT = 20_000
MOST_SPELLED_OUT = 16


def schema_script(task: dict[str, Any]) -> SafeString:
    text = json.dumps(answer_schema(task), separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04X}")
    return mark_safe(f'<script type="application/schema+json" data-field="answer">{text}</script>')


def answer_schema(task: dict[str, Any]) -> Schema:
    keys = task["candidates"]
    reason = task["reason"]
    least = reason["least_length"] if reason["rule"] == "page" else 0
    properties: Schema = {
        "version": {"const": 1},
        "item": {"const": task["item"]},
        "order": {
            "type": "array", "items": {"enum": keys}, "uniqueItems": True,
            "minItems": len(keys), "maxItems": len(keys),
        },
        "judgments": _judgments_schema(task),
        "justification": {"type": "string", "minLength": least, "maxLength": LONGEST_TEXT},
        "comment": {"type": "string", "maxLength": LONGEST_TEXT},
    }  # fmt: skip
    required = ["version", "item", "order", "judgments"] + (["justification"] if least else [])
    if task["consent"]:
        properties["consent"] = {
            "type": "object", "required": ["text", "at"],
            "properties": {"text": {"const": task["consent"]}, "at": {"type": "string"}},
        }  # fmt: skip
        required.append("consent")
    if reason["rule"] == "choice" and reason["least_length"]:
        properties["reasons"] = {
            "type": "array",
            "items": {
                "required": ["candidate", "text"],
                "properties": {"text": {"type": "string", "minLength": reason["least_length"]}},
            },
        }
    return {"type": "object", "required": required, "properties": properties}


def _judgments_schema(task: dict[str, Any]) -> Schema:
    # Rows that are needed are spelled out if that takes little room, else counted.
    rows = [_row_schema(question, task["candidates"]) for question in task["questions"]]
    needed = [
        {"contains": {"required": ["value"], "properties": {
            "question": {"const": question["name"]}, "candidate": {"const": key},
            "value": {"not": {"const": None}},
        }}, "maxContains": 1}
        for question in task["questions"]
        if question.get("required", True) and "when" not in question
        for key in (_candidate_keys(question, task["candidates"]) or (None,))
    ]  # fmt: skip
    needs = {"allOf": needed} if len(needed) <= MOST_SPELLED_OUT else {"minItems": len(needed)}
    return {"type": "array", "items": {"anyOf": rows}, **needs}


def _candidate_keys(question: dict[str, Any], keys: list[str]) -> Sequence[str | None]:
    """The candidates that a question is asked about; none if it is about all or the item."""
    if question.get("about", "candidate") != "candidate":
        return []
    return [question["candidate"]] if "candidate" in question else keys


def _row_schema(question: dict[str, Any], keys: list[str]) -> Schema:
    about = _candidate_keys(question, keys)
    return {
        "type": "object",
        "required": ["candidate", "question"],
        "properties": {
            "question": {"const": question["name"]},
            "candidate": {"enum": about} if about else {"const": None},
            "value": {"anyOf": [{"const": None}, _value_schema(question, keys)]},
        },
    }


def _value_schema(question: dict[str, Any], keys: list[str]) -> Schema:
    match question["kind"]:
        case "short_text" | "long_text":
            return {
                "type": "string",
                "minLength": question["least_length"],
                "maxLength": question["most_length"] or LONGEST_TEXT,
            }
        case "categories":
            return {
                "type": "array", "uniqueItems": True, "items": {"enum": list(range(question["n"]))},
                "minItems": question["least"], "maxItems": question["most"],
            }  # fmt: skip
        case "preference":
            return {"enum": [*keys, "tie"] if question["ties"] else keys}
        case "best_worst":
            return {
                "type": "object",
                "required": ["best", "worst"],
                "properties": {"best": {"enum": keys}, "worst": {"enum": keys}},
            }
        case "ranking":
            group = {"type": "array", "items": {"enum": keys}, "minItems": 1}
            group |= {} if question["ties"] else {"maxItems": 1}
            return {"type": "array", "items": group, "minItems": 1, "maxItems": len(keys)}
    is_whole = question["kind"] not in ("number", "line") or question.get("whole")
    bounds = {"minimum": question["min"], "maximum": question["max"]}
    value = {"type": "integer" if is_whole else "number"} | bounds
    return {"anyOf": [value, {"const": CANNOT_TELL}]} if question.get("cannot_tell") else value


# Which of the widgets in templates/worker_page/widgets/ a question of each kind is.
WIDGETS = {
    "line": "line", "likert": "radio", "category": "radio", "yes_no": "radio",
    "preference": "radio", "categories": "categories", "number": "number", "short_text": "text",
    "long_text": "text", "best_worst": "best_worst", "ranking": "ranking",
    "selection": "selection",
}  # fmt: skip
# Where a control of its own has no name, the group of its controls has.
ROLES = {"radio": "radiogroup", "categories": "group", "best_worst": "group", "ranking": "group"}
# Texts, which stay as they are; comments; and signs with the spaces and line breaks around them,
# which no statement needs, as each ends with a semicolon.
SPACED = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)"""
    r"| *//[^\n]*"
    r"|[ \n;,]*(?P<end>})[ \n]*"
    r"| (?P<operator>[*/%<>]|[-+](?= [^-+])) "
    r"|[ \n]*(?P<sign>=>|[!=]==|&&|\|\||[-+]?=|[{(),;:?])[ \n]*"
)
SPEAKER = re.compile(r"([^\s:][^:\n]{0,39}):\s+(.*\S)")


@dataclass(frozen=True)
class Turn:
    speaker: str
    text: str
    is_first_speaker: bool = True


def page_html(context: dict[str, Any]) -> str:
    document, item = context["protocol"], context["item"]
    questions = [_with_widget(number, each) for number, each in enumerate(context["questions"])]
    language = page_language(document.language)
    is_rtl = language in RIGHT_TO_LEFT or document.direction == "rtl"
    display = document.display
    turns = conversation(item.context) if display.context else ()
    kinds = {question["widget"] for question in questions}
    parts = tuple(_parts(context))
    are_products = display.candidates == "product"
    is_one_turn = "sheet" in parts and len(item.context.strip().splitlines()) == 1
    return render_to_string(
        "worker_page/page.html",
        context
        | {
            "language": language,
            "direction": "rtl" if is_rtl else "ltr",
            "title": document.title or context["study"].title,
            "reason": document.reason,
            "has_comment": document.comment,
            "kinds": dict.fromkeys(kinds, True),
            "last_letter": chr(64 + min(26, len(context["candidates"]))),
            "has_letters": bool(kinds & {"best_worst", "ranking"})
            or any(each["kind"] == "preference" for each in questions),
            "ticked": next((each for each in questions if each["kind"] == "selection"), None),
            "of_each": [
                each
                for each in questions
                if each["about"] == "candidate" and each["kind"] != "selection"
            ],
            "of_whole": _of_whole(questions),
            # A comparison is of all of them at once.
            "judges_each": any(
                each["about"] == "candidate" and not each["when"] for each in questions
            ),
            "context": item.context if display.context else "",
            "turns": turns,
            "are_products": are_products,
            "has_last_turn": "sheet" in parts,
            "is_one_turn": is_one_turn,
            "is_pinned_alone": is_one_turn and not _has_more_context(context),
            "reference": item.reference.strip() if display.reference else "",
            "condition": item.condition if display.condition else "",
            "condition_label": display.condition_label,
            "has_context": bool(display.context and item.context.strip())
            or _has_more_context(context),
            "has_pictures": "pictures" in parts,
            "schema": schema_script(context["task"]),
            "css": style(
                context["study"].kind,
                *(part for part in ("line", "practice") if part in {*kinds, *parts}),
            ),
            "js": script(
                (
                    *sorted(f"widgets/{kind}" for kind in kinds),
                    "events",
                    "page",
                    "keys",
                    *parts,
                    "end",
                )
            ),
            "texts": texts(
                language,
                context["study"].kind,
                document.reason.rule,
                frozenset({*kinds, *parts, *(["products"] if are_products else ())}),
            ),
        },
    )


def _of_whole(questions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    waiting = [each for each in questions if each["about"] != "candidate"]
    ordered: list[dict[str, Any]] = []
    while waiting:
        names = {each["name"] for each in waiting}
        free = (one for one in waiting if not one["when"] or one["when"]["question"] not in names)
        ordered.append(following := next(free, waiting[0]))
        waiting.remove(following)
    return ordered


# What annotators read of the kinds of questions before they accept.
KIND_NAMES = {
    **dict.fromkeys(("line", "likert", "number"), "rating"),
    **dict.fromkeys(("category", "categories", "yes_no"), "category"),
    **dict.fromkeys(("preference", "best_worst", "ranking"), "comparison"),
    **dict.fromkeys(("short_text", "long_text"), "text"),
    "selection": "selection",
}


def default_texts(texts: StudyTexts) -> dict[str, str]:
    """The title, description and keywords of a study's HITs, from its protocol."""
    document = current_document(texts.study)
    seconds = max(round(duration_of(texts.study, texts, document).typical_seconds), 1)
    context = {
        "language": page_language(document.language),
        "names": list(dict.fromkeys(KIND_NAMES[each.kind] for each in document.questions)),
        "n": round(texts.of_candidates["n"] / max(texts.of_items["n"], 1)),
        "are_products": document.display.candidates == "product",
        "minutes": seconds // 60,
        "seconds": seconds % 60,
    }
    names, description, time = map(
        str.strip, render_to_string("worker_page/offer.html", context).strip().split("\n")
    )
    return {
        "title": document.title or texts.study.title,
        "description": description.replace("{names}", names).replace("{time}", time),
        "keywords": names,
    }


@lru_cache(maxsize=64)
def texts(language: str, kind: str, reason_rule: str, parts: frozenset[str]) -> SafeString:
    context = {"language": language, "kind": kind, "rule": reason_rule}
    return render_to_string(
        "worker_page/texts.html", context | {"parts": dict.fromkeys(parts, True)}
    )


def field_html(
    question: dict[str, Any],
    identity: str,
    language: str,
    candidates: list[dict[str, Any]],
    *,
    are_products: bool = False,
) -> SafeString:
    if question["about"] == "all":
        return render_to_string(
            "worker_page/question.html",
            {
                "question": question,
                "id": identity,
                "candidates": candidates,
                "language": language,
                "are_products": are_products,
            },
        )
    return _field_of_any_page(question["record"], identity, language)


@lru_cache(maxsize=512)
def _field_of_any_page(record: str, identity: str, language: str) -> SafeString:
    field = {"question": json.loads(record), "id": identity, "language": language}
    return mark_safe(re.sub(r">\n+<", "><", render_to_string("worker_page/question.html", field)))


def conversation(text: str) -> tuple[Turn, ...]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    matches = [SPEAKER.fullmatch(line) for line in lines]
    if len(lines) < 2 or not all(matches):
        return ()
    pairs = [(match[1], match[2]) for match in matches if match]
    return tuple(Turn(who, said, who == pairs[0][0]) for who, said in pairs)


def _has_more_context(context: dict[str, Any]) -> bool:
    display, item = context["protocol"].display, context["item"]
    return bool((display.condition and item.condition) or context["picture"])


def _with_widget(number: int, question: dict[str, Any]) -> dict[str, Any]:
    widget = WIDGETS[question["kind"]]
    shown = question | {
        "id": str(number),
        "widget": widget,
        "role": ROLES.get(widget, ""),
        "template": f"worker_page/widgets/{widget}.html",
    }
    # The same for every page, so that its HTML is made once.
    same = {name: value for name, value in shown.items() if name != "candidate"}
    return shown | {"record": json.dumps(same)}


def _parts(context: dict[str, Any]) -> Iterator[str]:
    is_pool = context["study"].kind == "alternatives"
    if context["picture"] or any(each["picture"] for each in context["candidates"]):
        yield "pictures"
        if is_pool:
            yield "pair"
    if not is_pool and context["protocol"].display.context and context["item"].context.strip():
        yield "sheet"
    if context["consent"]:
        yield "consent"
    if context["practice"]:
        yield "practice"
    document = context["protocol"]
    if document.reason.rule != "none" or "long_text" in {each.kind for each in document.questions}:
        yield "doubts"


@cache
def script(parts: tuple[str, ...]) -> SafeString:
    return mark_safe(
        "\n".join([_slim_script(f"worker_page/{part}.js") for part in ("base", *parts)])
    )


@cache
def style(kind: str, *others: str) -> SafeString:
    parts = ("page", kind, *others)
    return mark_safe("".join(_slim_style(f"worker_page/{part}.css") for part in parts))


def _slim_script(name: str) -> str:
    source = re.sub(
        r"\s*\n\s*", "\n", re.sub(r"\n\s*//.*", "", f"\n{render_to_string(name)}")
    ).strip()
    slim = SPACED.sub(lambda match: match[match.lastgroup] if match.lastgroup else "", source)
    slim = re.sub(r"\((\w+)\)=>", r"\1=>", slim).replace("const ", "let ")
    return re.sub(r"(?<=[=(,:?])(?:true|(false))\b", lambda match: "!1" if match[1] else "!0", slim)


def _slim_style(name: str) -> str:
    source = re.sub(r"/\*.*?\*/", "", render_to_string(name), flags=re.DOTALL)
    return re.sub(
        r"\s*([{};,>])\s*|(?<=:)\s+", r"\1", re.sub(r"\s*\n\s*", "\n", source).strip()
    ).replace(";}", "}")
