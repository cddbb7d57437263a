"""What a requester says of a test's right answers, for its takers to read once it is graded.

AnswerKey has no element for it. A processing instruction in a Question of the key is left alone by
its XML Schema and by marketplaces that do not know it:

    <Question><QuestionIdentifier>q1</QuestionIdentifier>
      <?assay-explanation It answers another question than the one asked.?>
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

from defusedxml.ElementTree import XMLParser

TARGET = "assay-explanation"


def read_explanations(answer_key: str) -> dict[str, str]:
    """The explanations in an answer key that was found valid, by the questions' identifiers. One
    of a question with none to read is empty: its takers learn whether they were right."""
    parser = XMLParser(target=TreeBuilder(insert_pis=True), forbid_dtd=True)
    parser.feed(answer_key)
    explanations = {}
    for question in parser.close():
        texts = [text for child in question if (text := _explanation(child)) is not None]
        if texts:
            explanations[_identifier(question)] = " ".join(texts)
    return explanations


def _explanation(child: Element[Any]) -> str | None:
    if isinstance(child.tag, str):  # of a processing instruction it is a function
        return None
    target, _blank, text = (child.text or "").partition(" ")
    return text.strip() if target == TARGET else None


def _identifier(question: Element) -> str:
    identifiers = (
        child.text or ""
        for child in question
        if isinstance(child.tag, str) and child.tag.endswith("QuestionIdentifier")
    )
    return next(identifiers, "").strip()
