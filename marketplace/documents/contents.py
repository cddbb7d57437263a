from collections.abc import Container, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Literal
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, ParseError

import nh3
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from marketplace.exceptions import InvalidQuestion, NotOffered, require

# Reading XML that strangers wrote: no document types, no entities, no more than so much.

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
MAX_BYTES = 65_535


def read_xml(xml: str) -> Element:
    require(
        len(xml.encode("utf-8")) <= MAX_BYTES,
        InvalidQuestion(f"The question is longer than {MAX_BYTES} bytes.", code="too_long"),
    )
    try:
        return fromstring(xml, forbid_dtd=True)
    except ParseError as error:
        raise InvalidQuestion(
            f"The XML is not well-formed: {error}.", code="not_well_formed"
        ) from error
    except DefusedXmlException as error:
        raise InvalidQuestion(
            "A question may declare no document type and no entities.", code="declares_entities"
        ) from error
    except ValueError as error:  # e.g. an encoding declaration that can't be honoured
        raise InvalidQuestion(f"The XML can't be read: {error}.", code="unreadable") from error


def name_of(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def text_of(element: Element) -> str:
    require(
        not len(element),
        InvalidQuestion(
            f"{name_of(element)} must be text: put markup in a CDATA section.",
            code="markup_in_text",
        ),
    )
    return element.text or ""


class Children:
    """An element's children by name; `finish` refuses those that were not read."""

    def __init__(self, parent: Element) -> None:
        self.parent = name_of(parent)
        self._left = list(parent)

    def all(self, *names: str) -> Iterator[Element]:
        children = [child for child in self._left if name_of(child) in names]
        self._left = [child for child in self._left if name_of(child) not in names]
        return iter(children)

    def optional(self, *names: str) -> Element | None:
        children = list(self.all(*names))
        require(
            len(children) <= 1,
            InvalidQuestion(
                f"{self.parent} may have one {' or '.join(names)}, got {len(children)}.",
                code="repeated_element",
            ),
        )
        return children[0] if children else None

    def one(self, *names: str) -> Element:
        child = self.optional(*names)
        if child is None:
            raise InvalidQuestion(
                f"{self.parent} must have a {' or '.join(names)}.", code="missing_element"
            )
        return child

    def text(self, name: str, default: str | None = None) -> str:
        """The stripped text of the child with this name. Without a default it must not be empty."""
        element = self.one(name) if default is None else self.optional(name)
        value = "" if element is None else text_of(element).strip()
        if default is None and not value:
            raise InvalidQuestion(f"{name} of {self.parent} is empty.", code="empty_element")
        return value or default or ""

    def number(self, name: str, default: int) -> int:
        return whole_number(self.text(name, str(default)), f"{name} of {self.parent}")

    def finish(self) -> None:
        for child in self._left:
            raise InvalidQuestion(
                f"{self.parent} can't have a {name_of(child)} here.", code="unexpected_element"
            )


def whole_number(text: str, what: str) -> int:
    require(
        text.isascii() and text.isdigit() and len(text) <= 9,
        InvalidQuestion(
            f"{what} must be a whole number, got {text[:40]!r}.", code="not_a_whole_number"
        ),
    )
    return int(text)


# Requesters' formatted text, made safe to show on our own pages.
#
# A QuestionForm is shown outside any frame, so what its FormattedContent may hold is a short list:
# text, tables, pictures and links. No scripts, styles, forms, frames, ids.

TAGS = {
    "a", "abbr", "b", "big", "blockquote", "br", "caption", "center", "cite", "code", "col",
    "colgroup", "dd", "del", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i",
    "img", "ins", "li", "ol", "p", "pre", "q", "s", "small", "span", "strong", "sub", "sup",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "a": {"href", "title"},
    "abbr": {"title"},
    "img": {"src", "alt", "title", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
}


def sanitise(html: str) -> str:
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer",
        set_tag_attribute_values={
            "a": {"target": "_blank"},
            "img": {"referrerpolicy": "no-referrer", "loading": "lazy"},
        },
    )


# Web addresses that strangers wrote.


def is_web_address(text: str, *, schemes: Container[str] = ("https", "http")) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in schemes and bool(parts.hostname)
    except ValueError:
        return False


CONTENT = ("Title", "Text", "List", "Binary", "EmbeddedBinary", "FormattedContent", "Application")


@dataclass(frozen=True)
class Content:
    # `html` is sanitised. `media` has the kind (image, audio or video), url, alternative, and the
    # width and height in pixels; 0 leaves them to the file.
    kind: Literal["title", "text", "list", "media", "formatted"]
    text: str = ""
    items: tuple[str, ...] = ()
    html: str = ""
    media: dict[str, str | int] | None = None


def read_contents(element: Element) -> tuple[Content, ...]:
    return tuple(map(read_content, element))


def read_content(element: Element) -> Content:
    kind = name_of(element)
    require(
        kind in CONTENT, InvalidQuestion(f"Content can't have a {kind}.", code="unexpected_element")
    )
    require(
        kind != "Application", NotOffered("Applets and Flash are not offered by this marketplace.")
    )
    if kind == "List":
        return Content("list", items=tuple(text_of(item).strip() for item in element))
    if kind in ("Binary", "EmbeddedBinary"):
        return Content("media", media=_media(element))
    text = text_of(element).strip()
    if kind == "FormattedContent":
        plain = " ".join(unescape(nh3.clean(text, tags=set(), attributes={})).split())
        return Content("formatted", text=plain, html=sanitise(text))
    return Content("title" if kind == "Title" else "text", text=text)


def _media(element: Element) -> dict[str, str | int]:
    children = Children(element)
    mime_type = Children(children.one("MimeType", "EmbeddedMimeType"))
    kind, _ = mime_type.text("Type", "image"), mime_type.text("SubType", "")
    mime_type.finish()
    url = children.text("DataURL")
    media: dict[str, str | int] = {
        "kind": kind,
        "url": url,
        "alternative": children.text("AltText", ""),
        "width": children.number("Width", 0),
        "height": children.number("Height", 0),
    }
    children.finish()
    require(
        kind in ("image", "audio", "video"),
        InvalidQuestion(
            f"A Binary is of the Type image, audio or video, not {kind[:40]!r}.",
            code="unknown_media_type",
        ),
    )
    require(
        is_web_address(url),
        InvalidQuestion("DataURL must be a full http or https address.", code="invalid_address"),
    )
    return media
