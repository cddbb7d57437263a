"""Reading an AnswerKey, and grading a qualification test by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

from defusedxml.ElementTree import XMLParser

from marketplace.documents.contents import SCHEMAS, Children, name_of, read_xml, text_of
from marketplace.exceptions import InvalidQuestion

NAMESPACE = f"{SCHEMAS}/2005-10-01/AnswerKey.xsd"
LARGEST_VALUE = 2**31 - 1


@dataclass(frozen=True)
class AnswerOption:
    selections: frozenset[str]
    score: Decimal


@dataclass(frozen=True)
class KeyQuestion:
    identifier: str
    options: tuple[AnswerOption, ...]
    default_score: Decimal

    def score(self, selections: frozenset[str]) -> Decimal:
        scores = (option.score for option in self.options if option.selections == selections)
        return next(scores, self.default_score)


@dataclass(frozen=True)
class Percentage:
    maximum: Decimal

    def value(self, score: Decimal) -> Decimal:
        return 100 * score / self.maximum


@dataclass(frozen=True)
class Scale:
    multiplier: Decimal

    def value(self, score: Decimal) -> Decimal:
        return score * self.multiplier


@dataclass(frozen=True)
class Ranges:
    ranges: tuple[tuple[Decimal, Decimal, Decimal], ...]
    otherwise: Decimal

    def value(self, score: Decimal) -> Decimal:
        values = (value for low, high, value in self.ranges if low <= score <= high)
        return next(values, self.otherwise)


@dataclass(frozen=True)
class AnswerKey:
    """Scored questions, and how their sum becomes a qualification's value."""

    questions: tuple[KeyQuestion, ...]
    mapping: Percentage | Scale | Ranges

    def grade(self, answers: Mapping[str, Sequence[str]]) -> int:
        """The qualification's value for these selections, rounded half up."""
        score = sum(
            (
                question.score(frozenset(answers.get(question.identifier, ())))
                for question in self.questions
            ),
            Decimal(0),
        )
        value = int(self.mapping.value(score).to_integral_value(rounding=ROUND_HALF_UP))
        return max(-LARGEST_VALUE, min(LARGEST_VALUE, value))


def parse_answer_key(xml: str) -> AnswerKey:
    """Read and check an answer key. Some widely copied keys bind the namespace to a prefix they do
    not use, so local names decide."""
    root = read_xml(xml)
    if root.tag not in (f"{{{NAMESPACE}}}AnswerKey", "AnswerKey"):
        raise InvalidQuestion(
            f"The root element must be an AnswerKey in the namespace {NAMESPACE}."
        )
    children = Children(root)
    questions = tuple(_question(element) for element in children.all("Question"))
    mapping = children.optional("QualificationValueMapping")
    children.finish()
    identifiers = [question.identifier for question in questions]
    if not questions or len(set(identifiers)) != len(identifiers):
        raise InvalidQuestion("An AnswerKey must have Questions, each with its own identifier.")
    return AnswerKey(questions, Scale(Decimal(1)) if mapping is None else _mapping(mapping))


def _question(element: Element) -> KeyQuestion:
    children = Children(element)
    question = KeyQuestion(
        identifier=children.text("QuestionIdentifier"),
        options=tuple(_option(option) for option in children.all("AnswerOption")),
        default_score=_number(children, "DefaultScore", "0"),
    )
    children.finish()
    if not question.options:
        raise InvalidQuestion(f"Question {question.identifier} must have an AnswerOption.")
    return question


def _option(element: Element) -> AnswerOption:
    children = Children(element)
    selections = frozenset(
        text_of(selection).strip() for selection in children.all("SelectionIdentifier")
    )
    score = _number(children, "AnswerScore")
    children.finish()
    return AnswerOption(selections, score)


def _mapping(element: Element) -> Percentage | Scale | Ranges:
    kinds = ("PercentageMapping", "ScaleMapping", "RangeMapping")
    outer = Children(element)
    inner = outer.one(*kinds)
    outer.finish()
    children = Children(inner)
    mapping: Percentage | Scale | Ranges
    if name_of(inner) == "PercentageMapping":
        mapping = Percentage(_number(children, "MaximumSummedScore"))
        if mapping.maximum <= 0:
            raise InvalidQuestion("MaximumSummedScore must be more than 0.")
    elif name_of(inner) == "ScaleMapping":
        mapping = Scale(_number(children, "SummedScoreMultiplier"))
    else:
        ranges = tuple(_range(each) for each in children.all("SummedScoreRange"))
        mapping = Ranges(ranges, _number(children, "OutOfRangeQualificationValue"))
    children.finish()
    return mapping


def _range(element: Element) -> tuple[Decimal, Decimal, Decimal]:
    children = Children(element)
    names = ("InclusiveLowerBound", "InclusiveUpperBound", "QualificationValue")
    low, high, value = (_number(children, name) for name in names)
    children.finish()
    return low, high, value


def _number(children: Children, name: str, default: str | None = None) -> Decimal:
    text = children.text(name, default)
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number) > LARGEST_VALUE:
        raise InvalidQuestion(f"{name} must be a number, got {text[:40]!r}.")
    return number


# What a requester says of a test's right answers, for its takers to read once it is graded.
#
# AnswerKey has no element for it. A processing instruction in a Question of the key is left alone
# by its XML Schema and by marketplaces that do not know it:
#
#     <Question><QuestionIdentifier>q1</QuestionIdentifier>
#       <?assay-explanation It answers another question than the one asked.?>

TARGET = "assay-explanation"


def read_explanations(answer_key: str) -> dict[str, str]:
    """The explanations in a valid answer key, by question identifier. An empty one shows takers
    only whether they were right."""
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
