"""Reading a HIT's question: HTML, an external page or a QuestionForm.

Amazon's own XSD leaves some defaults of a QuestionForm to the reader. Here a selection without a
MaxSelectionCount allows one choice, or any number if its style is checkbox or multichooser; a
selection without a MinSelectionCount asks for one if the question is required. Uploads, applets and
Flash are refused when the HIT is made, not when a worker meets them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from textwrap import shorten
from typing import Literal
from urllib.parse import urlencode, urlsplit, urlunsplit
from xml.etree.ElementTree import Element

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from marketplace.documents.answer_schemas import answer_schemas
from marketplace.documents.constraints import FreeText, check_patterns, read_free_text
from marketplace.documents.contents import (
    SCHEMAS,
    Children,
    Content,
    is_web_address,
    name_of,
    read_content,
    read_contents,
    read_xml,
)
from marketplace.exceptions import InvalidQuestion, NotOffered, require

DATES = ("2005-10-01", "2017-11-06")
NAMESPACES = tuple(f"{SCHEMAS}/{date}/QuestionForm.xsd" for date in DATES)
LONGEST_IDENTIFIER = 1024
STYLES = ("radiobutton", "dropdown", "checkbox", "list", "combobox", "multichooser")

Control = Literal["radio", "checkbox", "dropdown", "list"]


@dataclass(frozen=True)
class Option:
    identifier: str
    content: Content
    text: str


@dataclass(frozen=True)
class Selection:
    options: tuple[Option, ...]
    minimum: int
    maximum: int
    style: str
    other: FreeText | None

    @property
    def control(self) -> Control:
        # A native list of many is hard to use without a mouse, so it becomes checkboxes; a combobox
        # is a dropdown with a text field.
        if self.maximum > 1:
            return "checkbox"
        if self.style in ("dropdown", "combobox"):
            return "dropdown"
        return "list" if self.style == "list" else "radio"

    @property
    def range_text(self) -> str:
        if self.minimum == self.maximum:
            return str(self.maximum)
        return _("%(low)s to %(high)s") % {"low": self.minimum or 1, "high": self.maximum}

    @property
    def size(self) -> int:
        return min(len(self.options) + bool(self.other), 8)


@dataclass(frozen=True)
class FormQuestion:
    number: int
    identifier: str
    display_name: str
    is_required: bool
    content: tuple[Content, ...]
    answer: FreeText | Selection

    @property
    def name(self) -> str:
        return f"question-{self.number}"

    @property
    def title(self) -> str:
        return shorten(
            next((content.text for content in self.content if content.text), ""),
            60,
            placeholder="…",
        ) or _("Question %(number)s") % {"number": self.number}

    @property
    def selection(self) -> Selection | None:
        return self.answer if isinstance(self.answer, Selection) else None

    @property
    def free_text(self) -> FreeText | None:
        return self.answer if isinstance(self.answer, FreeText) else None


@dataclass(frozen=True)
class Overview:
    content: tuple[Content, ...]


@dataclass(frozen=True)
class QuestionForm:
    parts: tuple[Overview | FormQuestion, ...]

    @property
    def questions(self) -> tuple[FormQuestion, ...]:
        return tuple(part for part in self.parts if isinstance(part, FormQuestion))


def is_question_form(root: Element) -> bool:
    return root.tag in {f"{{{namespace}}}QuestionForm" for namespace in NAMESPACES}


def parse_question_form(xml: str) -> QuestionForm:
    root = read_xml(xml)
    require(
        is_question_form(root),
        InvalidQuestion(
            f"The root element {root.tag} is not a QuestionForm in the namespace "
            f"{' or '.join(NAMESPACES)}.",
            code="wrong_namespace",
        ),
    )
    return read_question_form(root)


def read_question_form(root: Element) -> QuestionForm:
    _check_namespaces(root)
    check_patterns(root.iter())
    numbers = count(1)
    form = QuestionForm(tuple(_part(element, numbers) for element in root))
    require(
        form.questions,
        InvalidQuestion("A QuestionForm must have at least one Question.", code="no_question"),
    )
    _check_distinct("QuestionIdentifier", [question.identifier for question in form.questions])
    return form


def _check_namespaces(root: Element) -> None:
    namespace = root.tag.rpartition("}")[0]
    for element in root.iter():
        if element.tag.rpartition("}")[0] != namespace:
            raise InvalidQuestion(
                f"{element.tag} is not in the namespace of the QuestionForm.",
                code="wrong_namespace",
            )


def _part(element: Element, numbers: Iterator[int]) -> Overview | FormQuestion:
    if name_of(element) == "Overview":
        return Overview(read_contents(element))
    if name_of(element) == "Question":
        return _question(element, next(numbers))
    raise InvalidQuestion(
        f"A QuestionForm can't have a {name_of(element)} here.", code="unexpected_element"
    )


def _question(element: Element, number: int) -> FormQuestion:
    children = Children(element)
    question = FormQuestion(
        number=number,
        identifier=_identifier(children.text("QuestionIdentifier")),
        display_name=children.text("DisplayName", ""),
        is_required=_boolean(children.text("IsRequired", "false")),
        content=read_contents(children.one("QuestionContent")),
        answer=_answer(children.one("AnswerSpecification")),
    )
    children.finish()
    return question


def _answer(element: Element) -> FreeText | Selection:
    children = Children(element)
    kind = children.one("FreeTextAnswer", "SelectionAnswer", "FileUploadAnswer")
    children.finish()
    require(
        name_of(kind) != "FileUploadAnswer",
        NotOffered("FileUploadAnswer is not offered by this marketplace."),
    )
    return read_free_text(kind) if name_of(kind) == "FreeTextAnswer" else _selection(kind)


def _selection(element: Element) -> Selection:
    children = Children(element)
    selections = Children(children.one("Selections"))
    options = tuple(map(_option, selections.all("Selection")))
    # The schema has it among the selections; older forms have it after them.
    others = [*selections.all("OtherSelection"), *children.all("OtherSelection")]
    style = children.text("StyleSuggestion", "radiobutton")
    selections.finish()
    require(
        options and style in STYLES and len(others) <= 1,
        InvalidQuestion(
            "A SelectionAnswer has one Selection or more, one OtherSelection at most, and a "
            f"StyleSuggestion of {', '.join(STYLES)}.",
            code="invalid_selection",
        ),
    )
    _check_distinct("SelectionIdentifier", [option.identifier for option in options])
    size = len(options) + len(others)
    maximum = children.number(
        "MaxSelectionCount", size if style in ("checkbox", "multichooser") else 1
    )
    minimum = children.number("MinSelectionCount", 0)
    children.finish()
    require(
        (minimum <= maximum and 1 <= maximum <= size),
        InvalidQuestion(
            f"Of {size} selections at least {minimum} and at most {maximum} can't be chosen.",
            code="impossible_count",
        ),
    )
    other = read_free_text(others[0]) if others else None
    return Selection(options, minimum, maximum, style, other)


def _option(element: Element) -> Option:
    children = Children(element)
    identifier = _identifier(children.text("SelectionIdentifier"))
    content = read_content(children.one("Text", "FormattedContent", "Binary", "EmbeddedBinary"))
    children.finish()
    text = content.text or str((content.media or {}).get("alternative") or identifier)
    return Option(identifier, content, text)


def _identifier(text: str) -> str:
    require(
        len(text) <= LONGEST_IDENTIFIER,
        InvalidQuestion(
            f"An identifier has at most {LONGEST_IDENTIFIER} characters.",
            code="identifier_too_long",
        ),
    )
    return text


def _boolean(text: str) -> bool:
    values = {"true": True, "1": True, "false": False, "0": False}
    require(
        text in values,
        InvalidQuestion(f"IsRequired is true or false, not {text[:40]!r}.", code="not_a_boolean"),
    )
    return values[text]


def _check_distinct(what: str, identifiers: Sequence[str]) -> None:
    require(
        len(set(identifiers)) >= len(identifiers),
        InvalidQuestion(
            f"Every {what} must be different from the others.", code="repeated_identifier"
        ),
    )


HTML_QUESTION = f"{SCHEMAS}/2011-11-11/HTMLQuestion.xsd"
EXTERNAL_QUESTION = f"{SCHEMAS}/2006-07-14/ExternalQuestion.xsd"
FORM_ROOT = re.compile(
    r"\ufeff?(?:\s|<\?.*?\?>|<!--.*?-->)*<(?:[\w.-]+:)?QuestionForm\b", re.DOTALL
)
MAX_FRAME_HEIGHT = 32_767
LANGUAGE = re.compile(r"""<html\b[^>]*?\slang=["']?([a-z]{2,3})\b""", re.IGNORECASE)
# At most a day: nobody works on one HIT for longer.
ESTIMATE = re.compile(
    r"""<meta\s+name=["']?estimated-seconds["']?\s+content=["']?(\d{1,5})["'\s/>]""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Question:
    """HTML or an external page, both shown in a frame, or the XML of a QuestionForm."""

    kind: Literal["html", "external", "form"]
    content: str
    frame_height: int

    @property
    def language(self) -> str:
        """The language that the page around the task is in, too; "" if there is no translation."""
        match = LANGUAGE.search(self.content) if self.kind == "html" else None
        code = match[1].lower() if match else ""
        return code if code in settings.TASK_LANGUAGES else ""

    @property
    def estimated_seconds(self) -> int | None:
        """How long the HIT takes, as its page says."""
        match = ESTIMATE.search(self.content) if self.kind == "html" else None
        return (int(match[1]) or None) if match else None

    def url_with(self, parameters: dict[str, str]) -> str:
        parts = urlsplit(self.content)
        return urlunsplit(
            parts._replace(
                query="&".join(part for part in (parts.query, urlencode(parameters)) if part)
            )
        )


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


def task_language(xml: str) -> translation.override:
    """While it is entered, texts are in the language of the task."""
    language = parse_question(xml, allow_http=True).language
    return translation.override(language or translation.get_language())


def is_form(xml: str) -> bool:
    # Without reading all of it.
    return FORM_ROOT.match(xml) is not None


def _child(root: Element, namespace: str, name: str) -> str:
    children = root.findall(f"{{{namespace}}}{name}")
    require(
        len(children) == 1,
        InvalidQuestion(
            f"There must be exactly one {name}, got {len(children)}.", code="missing_element"
        ),
    )
    text = children[0].text or ""
    require(
        not len(children[0]),
        InvalidQuestion(
            f"{name} must be text: put markup in a CDATA section.", code="markup_in_text"
        ),
    )
    require(text.strip(), InvalidQuestion(f"{name} is empty.", code="empty_element"))
    return text


def _frame_height(root: Element) -> int:
    text = _child(root, root.tag[1:].split("}")[0], "FrameHeight").strip()
    require(
        (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= MAX_FRAME_HEIGHT),
        InvalidQuestion(
            f"FrameHeight must be a whole number of pixels from 0 to {MAX_FRAME_HEIGHT}.",
            code="invalid_frame_height",
        ),
    )
    return int(text)


def _check_url(url: str, *, allow_http: bool) -> None:
    schemes = ("https", "http") if allow_http else ("https",)
    require(
        is_web_address(url, schemes=schemes),
        InvalidQuestion(
            f"ExternalURL must be a full {' or '.join(schemes)} address.", code="invalid_address"
        ),
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
    html = EXTERNAL_HIT.sub(lambda _: external_hit, html)
    html = CROWD_ELEMENTS.sub(lambda _: crowd_elements, html)
    return EXTERNAL_SUBMIT.sub(lambda _: external_submit, html)


def begin_with(html: str, *, script: str) -> str:
    # After the document type, so that the page stays in standards mode.
    match = BEGINNING.match(html)
    end = match.end() if match else 0
    return f'{html[:end]}<script src="{escape(script)}"></script>{html[end:]}'
