from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.sax.saxutils import escape

from defusedxml.ElementTree import XMLParser, fromstring
from django.utils.translation import gettext as _

from error_codes import CodedText, require
from marketplace.documents.constraints import FreeText, PatternBudget
from marketplace.documents.contents import SCHEMAS, Children, name_of, read_xml, text_of
from marketplace.documents.questions import FormQuestion, Overview, QuestionForm, Selection
from marketplace.exceptions import InvalidQuestion

KEY_NAMESPACE = f"{SCHEMAS}/2005-10-01/AnswerKey.xsd"
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
class AnswerKey:
    questions: tuple[KeyQuestion, ...]
    mapping: Callable[[Decimal], Decimal]

    def grade(self, answers: Mapping[str, Sequence[str]]) -> int:
        score = sum(
            (
                question.score(frozenset(answers.get(question.identifier, ())))
                for question in self.questions
            ),
            Decimal(0),
        )
        value = int(self.mapping(score).to_integral_value(rounding=ROUND_HALF_UP))
        return max(-LARGEST_VALUE, min(LARGEST_VALUE, value))


def parse_answer_key(xml: str) -> AnswerKey:
    """Read and check an answer key. Some widely copied keys bind the namespace to a prefix they do
    not use, so local names decide."""
    root = read_xml(xml)
    require(
        root.tag in (f"{{{KEY_NAMESPACE}}}AnswerKey", "AnswerKey"),
        InvalidQuestion(f"The root element must be an AnswerKey in the namespace {KEY_NAMESPACE}."),
    )
    children = Children(root)
    questions = tuple(_question(element) for element in children.all("Question"))
    mapping = children.optional("QualificationValueMapping")
    children.finish()
    identifiers = [question.identifier for question in questions]
    require(
        questions and len(set(identifiers)) == len(identifiers),
        InvalidQuestion("An AnswerKey must have Questions, each with its own identifier."),
    )
    return AnswerKey(questions, Decimal if mapping is None else _mapping(mapping))


def _question(element: Element) -> KeyQuestion:
    children = Children(element)
    question = KeyQuestion(
        identifier=children.text("QuestionIdentifier"),
        options=tuple(_option(option) for option in children.all("AnswerOption")),
        default_score=_number(children, "DefaultScore", "0"),
    )
    children.finish()
    require(
        question.options,
        InvalidQuestion(f"Question {question.identifier} must have an AnswerOption."),
    )
    return question


def _option(element: Element) -> AnswerOption:
    children = Children(element)
    selections = frozenset(
        text_of(selection).strip() for selection in children.all("SelectionIdentifier")
    )
    score = _number(children, "AnswerScore")
    children.finish()
    return AnswerOption(selections, score)


def _mapping(element: Element) -> Callable[[Decimal], Decimal]:
    outer = Children(element)
    inner = outer.one(*MAPPINGS)
    outer.finish()
    children = Children(inner)
    mapping = MAPPINGS[name_of(inner)](children)
    children.finish()
    return mapping


def _percentage(children: Children) -> Callable[[Decimal], Decimal]:
    maximum = _number(children, "MaximumSummedScore")
    require(maximum > 0, InvalidQuestion("MaximumSummedScore must be more than 0."))
    return lambda score: 100 * score / maximum


def _scale(children: Children) -> Callable[[Decimal], Decimal]:
    multiplier = _number(children, "SummedScoreMultiplier")
    return lambda score: score * multiplier


def _ranges(children: Children) -> Callable[[Decimal], Decimal]:
    # Ends are included.
    ranges = tuple(_range(each) for each in children.all("SummedScoreRange"))
    otherwise = _number(children, "OutOfRangeQualificationValue")
    return lambda score: next(
        (value for low, high, value in ranges if low <= score <= high), otherwise
    )


MAPPINGS = {"PercentageMapping": _percentage, "ScaleMapping": _scale, "RangeMapping": _ranges}


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
    require(
        number.is_finite() and abs(number) <= LARGEST_VALUE,
        InvalidQuestion(f"{name} must be a number, got {text[:40]!r}."),
    )
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


NAMESPACE = f"{SCHEMAS}/2005-10-01/QuestionFormAnswers.xsd"
ILLEGAL_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# A parser would read a bare carriage return as a line feed.
VERBATIM = {"\r": "&#13;"}


def render_answers(fields: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The document for these form fields, in order. Several values of a name are joined with "|";
    a character that XML cannot contain becomes U+FFFD."""
    return document(
        "".join(
            f"<Answer><QuestionIdentifier>{escaped(name)}</QuestionIdentifier>"
            f"<FreeText>{escaped('|'.join(values))}</FreeText></Answer>"
            for name, values in fields
        )
    )


def document(answers: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<QuestionFormAnswers xmlns="{NAMESPACE}">{answers}</QuestionFormAnswers>'
    )


def escaped(value: str) -> str:
    return escape(ILLEGAL_IN_XML.sub(REPLACEMENT, value), VERBATIM)


def read_answers(xml: str) -> list[tuple[str, str]]:
    answers = [[part.text or "" for part in answer] for answer in fromstring(xml, forbid_dtd=True)]
    return [(parts[0], ", ".join(parts[1:])) for parts in answers if parts]


# Reading QuestionFormAnswers: what a worker gave for each question.

TEXTS = ("FreeText", "OtherSelectionText")


def read_given_answers(xml: str) -> dict[str, tuple[str, ...]]:
    """Values by question. A text joined with "|" counts as several values."""
    if not xml:
        return {}
    answers = {}
    for answer in fromstring(xml, forbid_dtd=True):
        identifier = answer.findtext(f"{{{NAMESPACE}}}QuestionIdentifier", "")
        chosen = [
            child.text or ""
            for child in answer
            if child.tag == f"{{{NAMESPACE}}}SelectionIdentifier"
        ]
        texts = [
            child.text or ""
            for child in answer
            if child.tag in {f"{{{NAMESPACE}}}{name}" for name in TEXTS}
        ]
        answers[identifier] = (*chosen, *(part for text in texts for part in text.split("|")))
    return answers


# What a worker filled into a QuestionForm: checked, and written as QuestionFormAnswers.

OTHER = "other"

ValuesOf = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Filled:
    question: FormQuestion
    text: str = ""
    chosen: frozenset[int] = frozenset()
    is_other: bool = False
    complaint: CodedText | None = None


@dataclass(frozen=True)
class FilledForm:
    form: QuestionForm
    answers: Mapping[int, Filled] = field(default_factory=dict)

    @property
    def complaints(self) -> list[Filled]:
        return [filled for filled in self.answers.values() if filled.complaint]

    @property
    def parts(self) -> list[Overview | Filled]:
        return [
            part if isinstance(part, Overview) else self.answers[part.number]
            for part in self.form.parts
        ]

    @property
    def is_valid(self) -> bool:
        return not self.complaints

    def to_xml(self) -> str:
        """The QuestionFormAnswers document: blank texts are included, selections without a choice
        are not."""
        return document("".join(_answer(filled) for filled in self.answers.values()))


def blank(form: QuestionForm) -> FilledForm:
    answers = {}
    for question in form.questions:
        default = question.free_text.default if question.free_text else ""
        answers[question.number] = Filled(question, text=default)
    return FilledForm(form, answers)


def fill_in(form: QuestionForm, values_of: ValuesOf) -> FilledForm:
    budget = PatternBudget()
    return FilledForm(
        form, {question.number: _fill(question, values_of, budget) for question in form.questions}
    )


def _fill(question: FormQuestion, values_of: ValuesOf, budget: PatternBudget) -> Filled:
    answer_type = question.answer
    if isinstance(answer_type, Selection):
        return _choose(question, answer_type, values_of, budget)
    # Browsers send line breaks as CR LF, whatever the worker typed.
    text = "".join(values_of(question.name)[:1]).replace("\r\n", "\n")
    return Filled(
        question,
        text=text,
        complaint=_text_complaint(answer_type, text, budget, is_required=question.is_required),
    )


def _text_complaint(
    answer_type: FreeText, text: str, budget: PatternBudget, *, is_required: bool
) -> CodedText | None:
    if not text.strip():
        return _unanswered() if is_required else None
    return answer_type.complaint(text, budget)


def _unanswered() -> CodedText:
    return CodedText(_("This question needs an answer."), "unanswered")


def _choose(
    question: FormQuestion, selection: Selection, values_of: ValuesOf, budget: PatternBudget
) -> Filled:
    values = values_of(question.name)
    keys = {str(index): index for index in range(len(selection.options))}
    chosen = frozenset(keys[value] for value in values if value in keys)
    words = "".join(values_of(f"{question.name}-{OTHER}")[:1]).strip() if selection.other else ""
    is_other = bool(selection.other) and (OTHER in values or bool(words))
    complaint = _choice_complaint(question, selection, len(chosen) + is_other)
    if complaint is None and is_other and selection.other:
        complaint = _text_complaint(selection.other, words, budget, is_required=True)
    return Filled(question, text=words, chosen=chosen, is_other=is_other, complaint=complaint)


def _choice_complaint(question: FormQuestion, selection: Selection, count: int) -> CodedText | None:
    if not count:
        return _unanswered() if question.is_required else None
    if count < selection.minimum:
        text = _("Choose at least %(minimum)s; %(count)s chosen.")
        return CodedText(text % {"minimum": selection.minimum, "count": count}, "too_few_choices")
    if count > selection.maximum:
        text = _("Choose at most %(maximum)s; %(count)s chosen.")
        return CodedText(text % {"maximum": selection.maximum, "count": count}, "too_many_choices")
    return None


def _answer(filled: Filled) -> str:
    selection = filled.question.selection
    identifier = f"<QuestionIdentifier>{escaped(filled.question.identifier)}</QuestionIdentifier>"
    if selection is None:
        return f"<Answer>{identifier}<FreeText>{escaped(filled.text)}</FreeText></Answer>"
    if not filled.chosen and not filled.is_other:
        return ""
    chosen = "".join(
        f"<SelectionIdentifier>{escaped(selection.options[index].identifier)}</SelectionIdentifier>"
        for index in sorted(filled.chosen)
    )
    other = f"<OtherSelectionText>{escaped(filled.text)}</OtherSelectionText>"
    return f"<Answer>{identifier}{chosen}{other if filled.is_other else ''}</Answer>"
