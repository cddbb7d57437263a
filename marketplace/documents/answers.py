"""Writing a worker's answers as QuestionFormAnswers."""

import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from defusedxml.ElementTree import fromstring

from marketplace.documents.xml import SCHEMAS

NAMESPACE = f"{SCHEMAS}/2005-10-01/QuestionFormAnswers.xsd"
ILLEGAL_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# A parser would read a bare carriage return as a line feed.
VERBATIM = {"\r": "&#13;"}


def render_answers(fields: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The document for these form fields, in their order. Several values under one
    name are joined with "|"; a character XML can't carry becomes U+FFFD."""
    answers = "".join(
        f"<Answer><QuestionIdentifier>{escaped(name)}</QuestionIdentifier>"
        f"<FreeText>{escaped('|'.join(values))}</FreeText></Answer>"
        for name, values in fields
    )
    return document(answers)


def document(answers: str) -> str:
    """The whole document around these Answer elements."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<QuestionFormAnswers xmlns="{NAMESPACE}">{answers}</QuestionFormAnswers>'
    )


def escaped(value: str) -> str:
    """Text as it stands in the document."""
    return escape(ILLEGAL_IN_XML.sub(REPLACEMENT, value), VERBATIM)


def read_answers(xml: str) -> list[tuple[str, str]]:
    """Name and text of each answer in a document of ours, as a person may read them."""
    root = fromstring(xml, forbid_dtd=True)
    answers = [[part.text or "" for part in answer] for answer in root]
    return [(parts[0], ", ".join(parts[1:])) for parts in answers if parts]
