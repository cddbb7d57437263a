"""Writing a worker's answers as QuestionFormAnswers."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from defusedxml.ElementTree import fromstring
from django.utils.translation import gettext as _

from error_codes import CodedText
from marketplace.documents.constraints import FreeText, PatternBudget
from marketplace.documents.contents import SCHEMAS
from marketplace.documents.question_forms import FormQuestion, Overview, QuestionForm, Selection

NAMESPACE = f"{SCHEMAS}/2005-10-01/QuestionFormAnswers.xsd"
ILLEGAL_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# A parser would read a bare carriage return as a line feed.
VERBATIM = {"\r": "&#13;"}


def render_answers(fields: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The document for these form fields, in order. Several values of a name are joined with "|";
    a character that XML cannot contain becomes U+FFFD."""
    answers = "".join(
        f"<Answer><QuestionIdentifier>{escaped(name)}</QuestionIdentifier>"
        f"<FreeText>{escaped('|'.join(values))}</FreeText></Answer>"
        for name, values in fields
    )
    return document(answers)


def document(answers: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<QuestionFormAnswers xmlns="{NAMESPACE}">{answers}</QuestionFormAnswers>'
    )


def escaped(value: str) -> str:
    return escape(ILLEGAL_IN_XML.sub(REPLACEMENT, value), VERBATIM)


def read_answers(xml: str) -> list[tuple[str, str]]:
    """Name and readable text of each answer in a document of ours."""
    root = fromstring(xml, forbid_dtd=True)
    answers = [[part.text or "" for part in answer] for answer in root]
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
    """The untouched form with the requester's default texts."""
    answers = {}
    for question in form.questions:
        default = question.free_text.default if question.free_text else ""
        answers[question.number] = Filled(question, text=default)
    return FilledForm(form, answers)


def fill_in(form: QuestionForm, values_of: ValuesOf) -> FilledForm:
    """The form with posted values; `values_of` returns all values of a field."""
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
    complaint = _text_complaint(answer_type, text, budget, is_required=question.is_required)
    return Filled(question, text=text, complaint=complaint)


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
        values = {"minimum": selection.minimum, "count": count}
        return CodedText(text % values, "too_few_choices")
    if count > selection.maximum:
        text = _("Choose at most %(maximum)s; %(count)s chosen.")
        values = {"maximum": selection.maximum, "count": count}
        return CodedText(text % values, "too_many_choices")
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
