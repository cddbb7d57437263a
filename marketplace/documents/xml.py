"""Reading XML that strangers wrote: no document types, no entities, no more than so much."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from marketplace.exceptions import InvalidQuestion

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
MAX_BYTES = 65_535


def read_xml(xml: str) -> Element:
    """The root element of a question's XML."""
    if len(xml.encode("utf-8")) > MAX_BYTES:
        raise InvalidQuestion(f"The question is longer than {MAX_BYTES} bytes.", code="too_long")
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
    """The text of an element that holds nothing else."""
    if len(element):
        raise InvalidQuestion(
            f"{name_of(element)} must be text: put markup in a CDATA section.",
            code="markup_in_text",
        )
    return element.text or ""


class Children:
    """An element's children by name; whatever is not asked for is refused by `finish`."""

    def __init__(self, parent: Element) -> None:
        self.parent = name_of(parent)
        self._left = list(parent)

    def all(self, *names: str) -> Iterator[Element]:
        children = [child for child in self._left if name_of(child) in names]
        self._left = [child for child in self._left if name_of(child) not in names]
        return iter(children)

    def optional(self, *names: str) -> Element | None:
        """The one child with one of these names, or None."""
        children = list(self.all(*names))
        if len(children) > 1:
            raise InvalidQuestion(
                f"{self.parent} may have one {' or '.join(names)}, got {len(children)}.",
                code="repeated_element",
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
        """The text of the one child of this name, without the blanks around it; without a
        default there must be some."""
        element = self.one(name) if default is None else self.optional(name)
        value = "" if element is None else text_of(element).strip()
        if default is None and not value:
            raise InvalidQuestion(f"{name} of {self.parent} is empty.", code="empty_element")
        return value or default or ""

    def number(self, name: str, default: int) -> int:
        """The whole number in the one child of this name."""
        return whole_number(self.text(name, str(default)), f"{name} of {self.parent}")

    def finish(self) -> None:
        """Refuse children that were not read."""
        for child in self._left:
            raise InvalidQuestion(
                f"{self.parent} can't have a {name_of(child)} here.", code="unexpected_element"
            )


def whole_number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidQuestion(
            f"{what} must be a whole number, got {text[:40]!r}.", code="not_a_whole_number"
        )
    return int(text)
