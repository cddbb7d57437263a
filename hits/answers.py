import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from reprlib import repr as short_repr
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException
from django.conf import settings
from django.utils.translation import gettext as _

from annotation.evidence import Event, read_events
from annotation.models import Candidate, Item, PlacedCheck
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.scales import range_of
from annotation.protocols.versions import current_document
from hits.exceptions import AnswerUnreadable, require
from hits.judgments import (
    AnswerValues,
    JudgmentValue,
    MissingValue,
    WrittenText,
    read_answer_values,
    read_boolean,
    read_seconds,
    read_text,
)
from hits.models import Assignment
from hits.questions import (
    ShownCandidate,
    checked_candidates,
    consent_fingerprint,
    page_document,
)
from stats.quality import band_failed, degraded_failed, repeat_failed


def simulation_mark(assignment_id: str, *, secret: str) -> str:
    return hmac.new(
        secret.encode(), f"simulated:{assignment_id}".encode(), hashlib.sha256
    ).hexdigest()


def is_proved(mark: str, assignment: Assignment) -> bool:
    return hmac.compare_digest(
        mark.encode(errors="replace"),
        simulation_mark(assignment.assignment_id, secret=settings.SECRET_KEY).encode(),
    )


@dataclass(frozen=True)
class CheckedValue:
    # `compared_value` is the answer to what the check repeats or was made of.

    placed: PlacedCheck
    value: float
    compared_value: float | None
    is_failed: bool
    position: int | None
    seconds: float | None


def is_check(candidate: Candidate | PlacedCheck | None) -> bool:
    return isinstance(candidate, PlacedCheck)


def checked_values(
    checks: Sequence[PlacedCheck], read: AnswerValues, document: ProtocolDocument
) -> tuple[CheckedValue, ...]:
    # A question that was left out or did not appear does not count as a failed check.
    answers = {
        (each.candidate.blind_key, each.question.name): each
        for each in read.judged
        if each.candidate
    }
    values = []
    for placed in checks:
        if placed.is_question:
            if asked := read.checked.get(placed.question):
                is_failed = _is_failed(placed, asked.value, None, document)
                values.append(
                    CheckedValue(
                        placed, asked.value, None, is_failed, asked.position, asked.seconds
                    )
                )
            continue
        own = answers.get((placed.blind_key, placed.question))
        other = placed.compared and answers.get((placed.compared.blind_key, placed.question))
        if own is None or own.position is None or (placed.compared and not other):
            continue
        compared = other.value if other else None
        is_failed = _is_failed(placed, own.value, compared, document)
        values.append(
            CheckedValue(placed, own.value, compared, is_failed, own.position, own.seconds)
        )
    return tuple(values)


def _is_failed(
    placed: PlacedCheck, value: float, compared: float | None, document: ProtocolDocument
) -> bool:
    if compared is None:
        return placed.expected is not None and band_failed(value, placed.expected, placed.tolerance)
    if placed.kind == "repeat":
        return repeat_failed(compared, value, placed.tolerance)
    question = document.question(placed.question)
    return degraded_failed(
        value,
        compared,
        lowest=range_of(question)[0] if question else 0.0,
        tolerance=placed.tolerance,
    )


@dataclass(frozen=True)
class Answer:
    order: tuple[str, ...]
    judgments: tuple[JudgmentValue, ...]
    written: tuple[WrittenText, ...]
    justification: str
    comment: str
    active_seconds: float | None
    pasted: bool
    consented_at: datetime | None
    is_simulated: bool = False
    mark: str = ""
    events: tuple[Event, ...] = ()
    checked: tuple[CheckedValue, ...] = ()
    missing: tuple[MissingValue, ...] = ()


def read_answers_xml(xml: str) -> dict[str, str]:
    root = _root_element(xml)
    answers: dict[str, str] = {}
    for answer in root:
        parts = {_local(child): child.text or "" for child in answer}
        name = parts.get("QuestionIdentifier", "")
        if _local(answer) != "Answer" or not name:
            raise AnswerUnreadable(
                _("the XML holds something that is not an answer with its name"),
                code="not_an_answer",
            )
        if name in answers:
            raise AnswerUnreadable(
                _("the XML answers {name} twice").format(name=short_repr(name)),
                code="answered_twice",
            )
        answers[name] = parts.get("FreeText", "")
    return answers


def _root_element(xml: str) -> Element:
    try:
        root: Element = ElementTree.fromstring(xml, forbid_dtd=True)
    except DefusedXmlException as problem:
        raise AnswerUnreadable(
            _("the XML declares what an answer never needs: {problem}").format(problem=problem),
            code="xml_declaration",
        ) from None
    except (ParseError, ValueError) as problem:
        raise AnswerUnreadable(
            _("the answer is not XML: {problem}").format(problem=short_repr(str(problem))),
            code="not_xml",
        ) from None
    require(
        _local(root) == "QuestionFormAnswers",
        AnswerUnreadable(
            _("the XML is a {name}, not a QuestionFormAnswers").format(
                name=short_repr(_local(root))
            ),
            code="wrong_element",
        ),
    )
    return root


def _local(element: Element) -> str:
    return str(element.tag).rsplit("}", 1)[-1]


def read_answer(
    xml: str,
    item: Item,
    document: ProtocolDocument | None = None,
    checks: Sequence[PlacedCheck] = (),
) -> Answer:
    fields = read_answers_xml(xml)
    require(
        "answer" in fields,
        AnswerUnreadable(
            _("there is no field 'answer' among {fields}").format(
                fields=short_repr(sorted(fields))
            ),
            code="missing_field",
        ),
    )
    return read_answer_text(fields["answer"], item, document, checks)


def read_answer_text(
    text: str,
    item: Item,
    document: ProtocolDocument | None = None,
    checks: Sequence[PlacedCheck] = (),
) -> Answer:
    document = page_document(document or current_document(item.study), checks)
    answer = _json_object(text)
    _refuse_another_page(answer, item)
    among = [each for each in checks if not each.is_question]
    displayed: list[ShownCandidate] = [*item.candidates.all(), *among]
    candidates = {each.blind_key: each for each in displayed}
    order = _order(answer, candidates)
    columns = {question.name: question for question in item.study.questions.all()}
    ordered = [candidates[key] for key in order]
    values = read_answer_values(
        answer.get("judgments"), document, columns, ordered, checked_candidates(checks)
    )
    reasons = _reasons(answer, document, values, candidates)
    return Answer(
        order=tuple(each.key for each in ordered),
        judgments=tuple(each for each in values.judged if not is_check(each.candidate)),
        written=tuple(each for each in (*values.written, *reasons) if not is_check(each.candidate)),
        justification=_justification(answer, document),
        comment=read_text(answer, "comment"),
        active_seconds=read_seconds(answer, "active_seconds"),
        pasted=read_boolean(answer, "pasted") or any(each.pasted for each in reasons),
        consented_at=_consented_at(answer, document),
        is_simulated=read_boolean(answer, "simulated"),
        mark=str(answer.get("mark", "")),
        events=tuple(read_events(answer.get("events"))),
        checked=checked_values(checks, values, document),
        missing=tuple(each for each in values.missing if not is_check(each.candidate)),
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise AnswerUnreadable(
            _("'answer' is not JSON: {problem}").format(problem=short_repr(str(problem))),
            code="not_json",
        ) from None
    if not isinstance(answer, dict):
        raise AnswerUnreadable(
            _("'answer' is {answer}, not a JSON object").format(answer=short_repr(answer)),
            code="not_an_object",
        )
    return answer


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_another_page(answer: dict[str, Any], item: Item) -> None:
    version, item_key = answer.get("version"), answer.get("item")
    if version != 1 or isinstance(version, bool):
        raise AnswerUnreadable(
            _("version is {version}; only 1 is known").format(version=short_repr(version)),
            code="unknown_version",
        )
    require(
        item_key == str(item.pk),
        AnswerUnreadable(
            _("the answer is about item {item_key}, not '{item}'").format(
                item_key=short_repr(item_key), item=item.pk
            ),
            code="other_item",
        ),
    )


def _order(answer: dict[str, Any], candidates: dict[str, ShownCandidate]) -> list[str]:
    order = answer.get("order")
    if not isinstance(order, list) or not all(isinstance(key, str) for key in order):
        raise AnswerUnreadable(
            _("order is {order}, not a list of candidates").format(order=short_repr(order)),
            code="not_an_order",
        )
    if len(order) != len(candidates) or set(order) != set(candidates):
        raise AnswerUnreadable(
            _("order must name each of the item's {n} candidates once; it is {order}").format(
                n=len(candidates), order=short_repr(order)
            ),
            code="incomplete_order",
        )
    return order


def _justification(answer: dict[str, Any], document: ProtocolDocument) -> str:
    reason = document.reason
    text, least = read_text(answer, "justification"), reason.least_length
    if reason.rule == "page" and len(text.strip()) < least:
        raise AnswerUnreadable(
            _("the justification has {n} characters; the study asks for {least}").format(
                n=len(text.strip()), least=least
            ),
            code="short_reason",
        )
    return text


def _reasons(
    answer: dict[str, Any],
    document: ProtocolDocument,
    values: AnswerValues,
    candidates: dict[str, ShownCandidate],
) -> list[WrittenText]:
    rows = answer.get("reasons", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AnswerUnreadable(
            _("reasons is {rows}, not a list of objects").format(rows=short_repr(rows)),
            code="not_objects",
        )
    texts = {row.get("candidate"): row for row in rows if isinstance(row.get("candidate"), str)}
    require(
        len(texts) == len(rows),
        AnswerUnreadable(
            _("a reason lacks its candidate, or a candidate has two"), code="ambiguous_reason"
        ),
    )
    chosen = values.chosen(document) if document.reason.rule == "choice" else []
    reasons = []
    for question, candidate in chosen:
        row = texts.pop(candidate.blind_key, {})
        text = read_text(row, "text").strip()
        if len(text) < document.reason.least_length:
            raise AnswerUnreadable(
                _(
                    "the reason for '{candidate}' has {n} characters; the study asks for {least}"
                ).format(
                    candidate=candidate.blind_key,
                    n=len(text),
                    least=document.reason.least_length,
                ),
                code="short_reason",
            )
        if text:
            reasons.append(
                WrittenText(candidate, question, text, pasted=read_boolean(row, "pasted"))
            )
    if texts:
        raise AnswerUnreadable(
            _("a reason for {candidate} was not asked for").format(
                candidate=short_repr(next(iter(texts)))
            ),
            code="unasked",
        )
    return reasons


def _consented_at(answer: dict[str, Any], document: ProtocolDocument) -> datetime | None:
    # By the annotator's clock, which may be wrong.
    expected = consent_fingerprint(document)
    if expected is None:
        return None
    consent = answer.get("consent")
    if not isinstance(consent, dict) or consent.get("text") != expected:
        raise AnswerUnreadable(
            _("consent is {consent}, not to the study's text '{expected}'").format(
                consent=short_repr(consent), expected=expected
            ),
            code="no_consent",
        )
    try:
        at = datetime.fromisoformat(str(consent.get("at")))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise AnswerUnreadable(
            _("consent was given at {time}, which is not a time").format(
                time=short_repr(consent.get("at"))
            ),
            code="not_a_time",
        )
    try:
        return at.astimezone(UTC)
    except OverflowError:  # the first or the last day of all, in another zone
        return at.replace(tzinfo=UTC)
