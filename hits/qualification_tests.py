"""The protocol's qualification tests, as the Requester API has them: a QuestionForm, an AnswerKey
that grades it in percent, and HITs that ask for at least so much.

So they hold on any marketplace. Explanations are processing instructions in the key, which Assay's
marketplaces show to who handed the test in, and others leave alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, ProcessingInstruction, SubElement, tostring

from django.utils.html import linebreaks
from django.utils.translation import gettext as _

from annotation.protocols.markdown import markdown_html
from annotation.protocols.practice import choosable_values, graded_answers, right_values
from annotation.protocols.records import (
    GradedCase,
    ProtocolDocument,
    ProtocolQuestion,
    QualificationTest,
)
from hits.calls import create_type
from hits.endpoints import MTurkClient
from hits.exceptions import BatchUnfit
from hits.models import Batch
from hits.page_texts import page_language, page_text
from presentation.numbers import count_of

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
FORM = f"{SCHEMAS}/2017-11-06/QuestionForm.xsd"
KEY = f"{SCHEMAS}/2005-10-01/AnswerKey.xsd"
MOST_BYTES = 65_535
# So that a name has at most 200 characters.
LONGEST_TITLE = 100


@dataclass(frozen=True)
class GradedQuestion:
    number: int
    case: GradedCase
    question: ProtocolQuestion
    value: float
    is_first_of_case: bool
    is_last_of_case: bool

    @property
    def identifier(self) -> str:
        return f"q{self.number}"


def type_values(document: ProtocolDocument, test: QualificationTest) -> dict[str, Any]:
    # The key is a hash of the rest: the same test is one type for all batches.
    questions = list(_questions(document, test))
    values: dict[str, Any] = {
        "description": _description(document, test, len(questions)),
        "Test": _form(document, questions),
        "AnswerKey": _answer_key(test, questions),
        "TestDurationInSeconds": test.allowed_seconds,
    }
    if test.retry_after_seconds is not None:
        values["RetryDelayInSeconds"] = test.retry_after_seconds
    values["name"] = f"{document.title[:LONGEST_TITLE]} – {test.title}"
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]
    return {"key": f"test-{digest}", **values}


def size_errors(document: ProtocolDocument) -> list[str]:
    text = _("“%(title)s” has %(n)s bytes, more than the %(most)s that a marketplace takes.")
    return [
        text % {"title": test.title, "n": f"{n:,}", "most": f"{MOST_BYTES:,}"}
        for test in document.qualifications.tests
        for values in [type_values(document, test)]
        if (n := max(len(values[name].encode()) for name in ("Test", "AnswerKey"))) > MOST_BYTES
    ]


def create_tests(batch: Batch, client: MTurkClient) -> None:
    document = batch.document
    if errors := size_errors(document):
        raise BatchUnfit(" ".join(errors))
    tests = document.qualifications.tests
    if len(batch.test_type_ids) == len(tests):
        return
    batch.test_type_ids = [create_type(client, **type_values(document, test)) for test in tests]
    Batch.objects.filter(pk=batch.pk).update(test_type_ids=batch.test_type_ids)


def requirements_of_tests(batch: Batch) -> list[dict[str, Any]]:
    tests = batch.document.qualifications.tests if batch.test_type_ids else ()
    return [
        {
            "QualificationTypeId": type_id,
            "Comparator": "GreaterThanOrEqualTo",
            "IntegerValues": [test.pass_percent],
        }
        for type_id, test in zip(batch.test_type_ids, tests, strict=True)
    ]


def right_choices(batch: Batch) -> dict[str, list[int]]:
    tests = batch.document.qualifications.tests if batch.test_type_ids else ()
    return {
        type_id: [
            choosable_values(each.question).index(
                right_values(each.question, each.value, test.tolerance_percent)[0]
            )
            for each in _questions(batch.document, test)
        ]
        for type_id, test in zip(batch.test_type_ids, tests, strict=True)
    }


def _questions(document: ProtocolDocument, test: QualificationTest) -> Iterator[GradedQuestion]:
    number = 0
    for case in test.cases:
        answers = graded_answers(document, case)
        for index, (question, value) in enumerate(answers):
            number += 1
            yield GradedQuestion(
                number, case, question, value, index == 0, index == len(answers) - 1
            )


def _description(document: ProtocolDocument, test: QualificationTest, n: int) -> str:
    again = "It can be taken once."
    if test.retry_after_seconds is not None:
        again = "It can be taken again."
    return (
        f"{test.title} for “{document.title}”: {count_of(n, 'question')}; {test.pass_percent} % of "
        f"the answers must be right. {again}"
    )


def _form(document: ProtocolDocument, questions: list[GradedQuestion]) -> str:
    root = Element("QuestionForm", xmlns=FORM)
    overview = SubElement(root, "Overview")
    _text(overview, "Title", document.title)
    if document.instructions.strip():
        _text(overview, "FormattedContent", markdown_html(document.instructions))
    for graded in questions:
        _add_question(root, graded, page_language(document.language))
    return tostring(root, encoding="unicode")


def _add_question(root: Element, graded: GradedQuestion, language: str) -> None:
    question = graded.question
    element = SubElement(root, "Question")
    _text(element, "QuestionIdentifier", graded.identifier)
    _text(element, "DisplayName", f"{graded.number}. {question.heading}")
    _text(element, "IsRequired", "true")
    content = SubElement(element, "QuestionContent")
    if graded.is_first_of_case:
        if graded.case.context.strip():
            _text(content, "Text", graded.case.context)
        if reference := graded.case.reference.strip():
            _text(content, "Text", f"{page_text('Reference', language)}: {reference}")
        paragraph = linebreaks(graded.case.candidate, autoescape=True)
        _text(content, "FormattedContent", f"<blockquote>{paragraph}</blockquote>")
    _text(content, "Text", question.wording.replace("{reference}", graded.case.reference.strip()))
    specification = SubElement(SubElement(element, "AnswerSpecification"), "SelectionAnswer")
    _text(specification, "StyleSuggestion", "radiobutton")
    selections = SubElement(specification, "Selections")
    for value in choosable_values(question):
        selection = SubElement(selections, "Selection")
        _text(selection, "SelectionIdentifier", f"{value:g}")
        _text(selection, "Text", _label(question, value, language))


def _label(question: ProtocolQuestion, value: float, language: str) -> str:
    values = choosable_values(question)
    index = values.index(value)
    if question.kind == "line":
        words = {
            0: question.low_label,
            len(values) // 2: question.middle_label,
            10: question.high_label,
        }
        return f"{value:g} – {words[index]}" if words.get(index) else f"{value:g}"
    if labels := question.labels:
        return labels[index]
    return (question.no_label, question.yes_label)[index] or page_text(
        ("No", "Yes")[index], language
    )


def _answer_key(test: QualificationTest, questions: list[GradedQuestion]) -> str:
    root = Element("AnswerKey", xmlns=KEY)
    for graded in questions:
        element = SubElement(root, "Question")
        _text(element, "QuestionIdentifier", graded.identifier)
        if test.feedback:
            element.append(_explanation(graded))
        for value in right_values(graded.question, graded.value, test.tolerance_percent):
            option = SubElement(element, "AnswerOption")
            _text(option, "SelectionIdentifier", f"{value:g}")
            _text(option, "AnswerScore", "1")
    _text(
        SubElement(SubElement(root, "QualificationValueMapping"), "PercentageMapping"),
        "MaximumSummedScore",
        str(len(questions)),
    )
    return tostring(root, encoding="unicode")


def _explanation(graded: GradedQuestion) -> Element[Any]:
    words = graded.case.explanation if graded.is_last_of_case else ""
    # The sign that ends a processing instruction cannot stand in one.
    return ProcessingInstruction("assay-explanation", words.strip().replace("?>", "? >") or None)


def _text(parent: Element, name: str, text: str) -> None:
    SubElement(parent, name).text = text
