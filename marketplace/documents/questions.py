"""Reading a HIT's question."""

import re
from dataclasses import dataclass
from html import escape
from typing import Literal
from urllib.parse import urlencode, urlsplit, urlunsplit
from xml.etree.ElementTree import Element

from marketplace.documents.answer_schemas import answer_schemas
from marketplace.documents.contents import SCHEMAS, is_web_address, read_xml
from marketplace.documents.question_forms import is_question_form, read_question_form
from marketplace.exceptions import InvalidQuestion

HTML_QUESTION = f"{SCHEMAS}/2011-11-11/HTMLQuestion.xsd"
EXTERNAL_QUESTION = f"{SCHEMAS}/2006-07-14/ExternalQuestion.xsd"
FORM_ROOT = re.compile(
    r"\ufeff?(?:\s|<\?.*?\?>|<!--.*?-->)*<(?:[\w.-]+:)?QuestionForm\b", re.DOTALL
)
MAX_FRAME_HEIGHT = 32_767


@dataclass(frozen=True)
class Question:
    """HTML or an external page, both shown in a frame, or the XML of a QuestionForm."""

    kind: Literal["html", "external", "form"]
    content: str
    frame_height: int

    def url_with(self, parameters: dict[str, str]) -> str:
        parts = urlsplit(self.content)
        query = "&".join(part for part in (parts.query, urlencode(parameters)) if part)
        return urlunsplit(parts._replace(query=query))


def parse_question(xml: str, *, allow_http: bool) -> Question:
    root = read_xml(xml)
    if root.tag == f"{{{HTML_QUESTION}}}HTMLQuestion":
        html = _child(root, HTML_QUESTION, "HTMLContent")
        answer_schemas(html)
        return Question("html", html, _frame_height(root))
    if root.tag == f"{{{EXTERNAL_QUESTION}}}ExternalQuestion":
        url = _child(root, EXTERNAL_QUESTION, "ExternalURL").strip()
        _check_url(url, allow_http=allow_http)
        return Question("external", url, _frame_height(root))
    if is_question_form(root):
        read_question_form(root)
        return Question("form", xml, 0)
    raise InvalidQuestion(
        f"The root element {root.tag} is neither an HTMLQuestion in the namespace "
        f"{HTML_QUESTION} nor an ExternalQuestion in {EXTERNAL_QUESTION} nor a QuestionForm.",
        code="wrong_namespace",
    )


def is_form(xml: str) -> bool:
    """Whether this checked XML is a QuestionForm, without reading all of it."""
    return FORM_ROOT.match(xml) is not None


def _child(root: Element, namespace: str, name: str) -> str:
    children = root.findall(f"{{{namespace}}}{name}")
    if len(children) != 1:
        raise InvalidQuestion(
            f"There must be exactly one {name}, got {len(children)}.", code="missing_element"
        )
    text = children[0].text or ""
    if len(children[0]):
        raise InvalidQuestion(
            f"{name} must be text: put markup in a CDATA section.", code="markup_in_text"
        )
    if not text.strip():
        raise InvalidQuestion(f"{name} is empty.", code="empty_element")
    return text


def _frame_height(root: Element) -> int:
    namespace = root.tag[1:].split("}")[0]
    text = _child(root, namespace, "FrameHeight").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= MAX_FRAME_HEIGHT):
        raise InvalidQuestion(
            f"FrameHeight must be a whole number of pixels from 0 to {MAX_FRAME_HEIGHT}.",
            code="invalid_frame_height",
        )
    return int(text)


def _check_url(url: str, *, allow_http: bool) -> None:
    schemes = ("https", "http") if allow_http else ("https",)
    if not is_web_address(url, schemes=schemes):
        raise InvalidQuestion(
            f"ExternalURL must be a full {' or '.join(schemes)} address.", code="invalid_address"
        )


# Pages written for Mechanical Turk, made to work here without a change by their authors.

EXTERNAL_HIT = re.compile(
    r"(?:https?:)?//(?:s3\.amazonaws\.com/mturk-public|mturk-public\.s3\.amazonaws\.com)"
    r"/externalHIT_v1\.js"
)
CROWD_ELEMENTS = re.compile(r"(?:https?:)?//assets\.crowd\.aws/crowd-html-elements\.js")
EXTERNAL_SUBMIT = re.compile(
    r"https?://(?:www|worker|workersandbox)\.mturk\.com/mturk/externalSubmit", re.IGNORECASE
)
# Whatever stands before a document type but a comment makes it no document type.
BEGINNING = re.compile(
    r"\ufeff?\s*(?:<!--.*?-->\s*)*(?:<!doctype[^>]*>)?", re.DOTALL | re.IGNORECASE
)


def send_here(html: str, *, external_hit: str, crowd_elements: str, external_submit: str) -> str:
    """Replace Mechanical Turk's two scripts and its submit address."""
    html = EXTERNAL_HIT.sub(lambda _: external_hit, html)
    html = CROWD_ELEMENTS.sub(lambda _: crowd_elements, html)
    return EXTERNAL_SUBMIT.sub(lambda _: external_submit, html)


def begin_with(html: str, *, script: str) -> str:
    """Run our script before the page's own; the page stays in standards mode."""
    match = BEGINNING.match(html)
    end = match.end() if match else 0
    return f'{html[:end]}<script src="{escape(script)}"></script>{html[end:]}'
