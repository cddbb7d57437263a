"""What a QuestionForm shows: titles, text, lists, pictures, formatted content."""

from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element

from marketplace.documents.addresses import is_web_address
from marketplace.documents.formatted import plain, sanitise
from marketplace.documents.xml import Children, name_of, text_of
from marketplace.exceptions import InvalidQuestion, NotOffered

CONTENT = ("Title", "Text", "List", "Binary", "EmbeddedBinary", "FormattedContent", "Application")


@dataclass(frozen=True)
class Media:
    """A picture, a sound or a film, at its own address."""

    kind: str  # image, audio or video
    url: str
    alternative: str
    width: int  # pixels; 0 leaves it to the file
    height: int


@dataclass(frozen=True)
class Content:
    """One thing to read, see or hear; `html` is sanitised."""

    kind: Literal["title", "text", "list", "media", "formatted"]
    text: str = ""
    items: tuple[str, ...] = ()
    html: str = ""
    media: Media | None = None


def read_contents(element: Element) -> tuple[Content, ...]:
    """All of an Overview or a QuestionContent."""
    return tuple(map(read_content, element))


def read_content(element: Element) -> Content:
    """One thing to read, see or hear."""
    kind = name_of(element)
    if kind not in CONTENT:
        raise InvalidQuestion(f"Content can't have a {kind}.", code="unexpected_element")
    if kind == "Application":
        raise NotOffered("Applets and Flash are not offered by this marketplace.")
    if kind == "List":
        return Content("list", items=tuple(text_of(item).strip() for item in element))
    if kind in ("Binary", "EmbeddedBinary"):
        return Content("media", media=_media(element))
    text = text_of(element).strip()
    if kind == "FormattedContent":
        return Content("formatted", text=plain(text), html=sanitise(text))
    return Content("title" if kind == "Title" else "text", text=text)


def _media(element: Element) -> Media:
    children = Children(element)
    mime_type = Children(children.one("MimeType", "EmbeddedMimeType"))
    kind, _ = mime_type.text("Type", "image"), mime_type.text("SubType", "")
    mime_type.finish()
    url = children.text("DataURL")
    media = Media(
        kind,
        url,
        children.text("AltText", ""),
        children.number("Width", 0),
        children.number("Height", 0),
    )
    children.finish()
    if kind not in ("image", "audio", "video"):
        raise InvalidQuestion(
            f"A Binary is of the Type image, audio or video, not {kind[:40]!r}.",
            code="unknown_media_type",
        )
    if not is_web_address(url):
        raise InvalidQuestion(
            "DataURL must be a full http or https address.", code="invalid_address"
        )
    return media
