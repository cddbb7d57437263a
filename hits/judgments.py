"""What an answer says under each question of a protocol, as judgments and as words.

Whatever the page would not have let a worker send is refused here too. A comparison of an item's
candidates is a value for each: the share of the others that it was placed above, where an equal
one counts half. So 1 is best, whatever was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as short_repr
from types import MappingProxyType
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Question
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.scales import part_name, range_of, value_condition
from hits.exceptions import AnswerUnreadable
from hits.page_rendering import CANNOT_TELL
from hits.questions import ALL, ShownCandidate, scope_of

TIE = "tie"


def compared_values(
    question: ProtocolQuestion, value: Any, keys: Sequence[str]
) -> dict[str, float]:
    read = {"preference": _preference, "best_worst": _best_worst, "ranking": _ranking}
    return read[question.kind](question, value, keys)


def _preference(question: ProtocolQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    if value == TIE and question.ties:
        return dict.fromkeys(keys, 0.5)
    return {key: float(key == _candidate_key(question, value, keys)) for key in keys}


def _best_worst(question: ProtocolQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    if not isinstance(value, dict) or set(value) != {"best", "worst"}:
        raise AnswerUnreadable(
            _("'{question}' is {value}, not a best and a worst").format(
                question=question.name, value=short_repr(value)
            ),
            code="not_best_and_worst",
        )
    best, worst = (_candidate_key(question, value[end], keys) for end in ("best", "worst"))
    if best == worst:
        raise AnswerUnreadable(
            _("'{question}' names '{best}' as the best and the worst").format(
                question=question.name, best=best
            ),
            code="best_is_worst",
        )
    return dict.fromkeys(keys, 0.5) | {best: 1.0, worst: 0.0}


def _ranking(question: ProtocolQuestion, value: Any, keys: Sequence[str]) -> dict[str, float]:
    groups = _groups(question, value)
    ranked = [_candidate_key(question, key, keys) for group in groups for key in group]
    if len(ranked) != len(keys) or set(ranked) != set(keys):
        raise AnswerUnreadable(
            _("'{question}' must rank each of the {n} candidates once; it is {value}").format(
                question=question.name, n=len(keys), value=short_repr(value)
            ),
            code="incomplete_ranking",
        )
    n_others = max(len(keys) - 1, 1)
    n_below = len(keys)
    values: dict[str, float] = {}
    for group in groups:
        n_below -= len(group)
        values |= dict.fromkeys(group, (n_below + (len(group) - 1) / 2) / n_others)
    return values


def _groups(question: ProtocolQuestion, value: Any) -> list[list[str]]:
    is_ranking = isinstance(value, list) and all(isinstance(group, list) for group in value)
    if not is_ranking or not all(value):
        raise AnswerUnreadable(
            _("'{question}' is {value}, not lists of candidates").format(
                question=question.name, value=short_repr(value)
            ),
            code="not_a_ranking",
        )
    if not question.ties and any(len(group) > 1 for group in value):
        raise AnswerUnreadable(
            _("'{question}' has equal ranks, which are not allowed").format(question=question.name),
            code="equal_ranks",
        )
    return list(value)


def _candidate_key(question: ProtocolQuestion, key: Any, keys: Sequence[str]) -> str:
    if not isinstance(key, str) or key not in keys:
        raise AnswerUnreadable(
            _("'{question}' names {key}, which is not a candidate here").format(
                question=question.name, key=short_repr(key)
            ),
            code="unknown_candidate",
        )
    return key


LONGEST_SECONDS = 366 * 24 * 3600
LONGEST_TEXT = 20_000
CHOOSING = ("selection", "preference")
COUNTED = ("likert", "category", "yes_no", "selection")

Row = Mapping[str, Any]
# Whom an answer is about, by blind key, or None for the item; and the question's name.
AnswerKey = tuple[str | None, str]


@dataclass(frozen=True)
class JudgmentValue:
    # `position` is the place of the candidate as shown, from 0.

    candidate: ShownCandidate | None
    question: Question
    value: float
    position: int | None
    seconds: float | None


@dataclass(frozen=True)
class WrittenText:
    candidate: ShownCandidate | None
    question: str
    text: str
    seconds: float | None = None
    pasted: bool = False


@dataclass(frozen=True)
class MissingValue:
    candidate: ShownCandidate | None
    question: str
    reason: str
    seconds: float | None = None


@dataclass(frozen=True)
class CheckAnswerValue:
    # To a question that is an attention check; `position` as of a judgment.

    value: float
    position: int | None
    seconds: float | None


@dataclass
class AnswerValues:
    judged: list[JudgmentValue] = field(default_factory=list)
    checked: dict[str, CheckAnswerValue] = field(default_factory=dict)
    written: list[WrittenText] = field(default_factory=list)
    missing: list[MissingValue] = field(default_factory=list)
    values: dict[AnswerKey, float | tuple[float, ...]] = field(default_factory=dict)

    def chosen(self, document: ProtocolDocument) -> list[tuple[str, ShownCandidate]]:
        names = {question.name for question in document.questions if question.kind in CHOOSING}
        return [
            (each.question.name, each.candidate)
            for each in self.judged
            if each.candidate and each.value == 1 and each.question.name in names
        ]


def read_answer_values(
    rows: object,
    document: ProtocolDocument,
    columns: Mapping[str, Question],
    candidates: Sequence[ShownCandidate],
    checked_candidates: Mapping[str, str] = MappingProxyType({}),
) -> AnswerValues:
    """`checked_candidates` says of attention checks which candidate they are about."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AnswerUnreadable(
            _("judgments is {rows}, not a list of objects").format(rows=short_repr(rows)),
            code="not_objects",
        )
    by_key = _by_key(rows)
    reader = _Reader(document, columns, candidates)
    for question in document.questions:
        about = checked_candidates.get(question.name)
        displayed = [each for each in candidates if about in (None, each.blind_key)]
        for candidate in displayed if scope_of(question) == "candidate" else [None]:
            reader.read(question, candidate, by_key.pop((_blind_key(candidate), question.name), {}))
    if by_key:
        raise AnswerUnreadable(
            _("a judgment of {judgment} was not asked for").format(
                judgment=short_repr(next(iter(by_key)))
            ),
            code="unasked",
        )
    values = reader.values
    values.judged.sort(key=lambda each: -1 if each.position is None else each.position)
    return values


def _by_key(rows: list[dict[str, Any]]) -> dict[AnswerKey, Row]:
    by_key: dict[AnswerKey, Row] = {}
    for row in rows:
        candidate, question = row.get("candidate"), row.get("question")
        if not isinstance(candidate, str | None) or not isinstance(question, str):
            raise AnswerUnreadable(
                _("a judgment lacks its candidate or question: {row}").format(row=short_repr(row)),
                code="incomplete_judgment",
            )
        if (candidate, question) in by_key:
            raise AnswerUnreadable(
                _("{key} is judged twice").format(key=short_repr((candidate, question))),
                code="judged_twice",
            )
        by_key[candidate, question] = row
    return by_key


def _blind_key(candidate: ShownCandidate | None) -> str | None:
    return None if candidate is None else candidate.blind_key


@dataclass
class _Reader:
    document: ProtocolDocument
    columns: Mapping[str, Question]
    candidates: Sequence[ShownCandidate]
    values: AnswerValues = field(default_factory=AnswerValues)

    def read(self, question: ProtocolQuestion, candidate: ShownCandidate | None, row: Row) -> None:
        name = f"'{question.name}'" + (
            f" of candidate '{candidate.blind_key}'" if candidate else ""
        )
        value = row.get("value")
        if not self._appears(question, candidate):
            if value is not None:
                raise AnswerUnreadable(
                    _("{name} is answered, though it is not asked there").format(name=name),
                    code="unasked",
                )
            return
        if value is None or value == "":
            if question.required:
                raise AnswerUnreadable(
                    _("{name} is not judged").format(name=name), code="not_judged"
                )
            return
        if question.cannot_tell and value == CANNOT_TELL:
            self.values.missing.append(
                MissingValue(candidate, question.name, value, read_seconds(row, "seconds"))
            )
            return
        if question.options.is_text:
            self.values.written.append(_written_text(question, candidate, row, name))
            return
        self._judge(question, candidate, row, name)
        if scope_of(question) != ALL:
            plain = tuple(value) if question.kind == "categories" else float(value)
            self.values.values[_blind_key(candidate), question.name] = plain

    def _appears(self, question: ProtocolQuestion, candidate: ShownCandidate | None) -> bool:
        before = self.document.question(question.when.question) if question.when else None
        if before is None:
            return True
        about = _blind_key(candidate) if scope_of(before) == "candidate" else None
        return value_condition(question, before).holds(self.values.values.get((about, before.name)))

    def _judge(
        self, question: ProtocolQuestion, candidate: ShownCandidate | None, row: Row, name: str
    ) -> None:
        value, seconds = row["value"], read_seconds(row, "seconds")
        if scope_of(question) == ALL:
            compared = compared_values(
                question, value, [each.blind_key for each in self.candidates]
            )
            for each in self.candidates:
                self._add(question.name, each, compared[each.blind_key], seconds)
        elif question.kind == "categories":
            indexes = _indexes(question, value, name)
            for index, label in enumerate(question.categories):
                self._add(part_name(question, label), candidate, float(index in indexes), seconds)
        elif question.check is not None:
            self.values.checked[question.name] = CheckAnswerValue(
                _number(question, value, name),
                None if candidate is None else self.candidates.index(candidate),
                seconds,
            )
        else:
            self._add(question.name, candidate, _number(question, value, name), seconds)

    def _add(
        self, column: str, candidate: ShownCandidate | None, value: float, seconds: float | None
    ) -> None:
        question = self.columns.get(column)
        if question is None:
            raise AnswerUnreadable(
                _("the study has no question '{column}'").format(column=column),
                code="unknown_question",
            )
        self.values.judged.append(
            JudgmentValue(
                candidate,
                question,
                value,
                None if candidate is None else self.candidates.index(candidate),
                seconds,
            )
        )


def _indexes(question: ProtocolQuestion, value: Any, name: str) -> list[int]:
    n = len(question.categories)
    is_list = isinstance(value, list) and all(type(each) is int for each in value)
    if not is_list or len(set(value)) < len(value) or not set(value) <= set(range(n)):
        raise AnswerUnreadable(
            _("{name} is {value}, not categories from 0 to {n}").format(
                name=name, value=short_repr(value), n=n - 1
            ),
            code="not_categories",
        )
    least, most = question.least or 0, question.most or n
    if not least <= len(value) <= most:
        raise AnswerUnreadable(
            _("{name} names {n} categories, not {least} to {most}").format(
                name=name, n=len(value), least=least, most=most
            ),
            code="number_of_categories",
        )
    return list(value)


def _number(question: ProtocolQuestion, value: Any, name: str) -> float:
    low, high = range_of(question)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AnswerUnreadable(
            _("{name} is {value}, not a number").format(name=name, value=short_repr(value)),
            code="not_a_number",
        )
    if not low <= value <= high:  # NaN as well
        raise AnswerUnreadable(
            _("{name} is {value}, outside its scale from {low:g} to {high:g}").format(
                name=name, value=short_repr(value), low=low, high=high
            ),
            code="off_scale",
        )
    if (question.kind in COUNTED or question.whole) and not float(value).is_integer():
        raise AnswerUnreadable(
            _("{name} is {value}, between two choices").format(name=name, value=short_repr(value)),
            code="not_whole",
        )
    return float(value)


def _written_text(
    question: ProtocolQuestion, candidate: ShownCandidate | None, row: Row, name: str
) -> WrittenText:
    text = read_text(row, "value").strip()
    least, most = question.least_length or 0, question.most_length or LONGEST_TEXT
    if not least <= len(text) <= most:
        raise AnswerUnreadable(
            _("{name} has {n} characters, not {least} to {most}").format(
                name=name, n=len(text), least=least, most=most
            ),
            code="text_length",
        )
    seconds, pasted = read_seconds(row, "seconds"), read_boolean(row, "pasted")
    return WrittenText(candidate, question.name, text, seconds, pasted)


def read_text(answer: Row, name: str) -> str:
    """The text under this name without what no database can store: NUL and lone surrogates."""
    text = answer.get(name, "")
    if not isinstance(text, str):
        raise AnswerUnreadable(
            _("{name} is {text}, not a text").format(name=name, text=short_repr(text)),
            code="not_a_text",
        )
    mended = text.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass")
    return mended.decode("utf-16-le", "replace")


def read_seconds(answer: Row, name: str) -> float | None:
    seconds = answer.get(name)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise AnswerUnreadable(
            _("{name} is {seconds}, not a number").format(name=name, seconds=short_repr(seconds)),
            code="not_a_number",
        )
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise AnswerUnreadable(
            _("{name} is {seconds}, no time anybody worked").format(
                name=name, seconds=short_repr(seconds)
            ),
            code="impossible_time",
        )
    return float(seconds)


def read_boolean(answer: Row, name: str) -> bool:
    value = answer.get(name, False)
    if not isinstance(value, bool):
        raise AnswerUnreadable(
            _("{name} is {value}, neither true nor false").format(
                name=name, value=short_repr(value)
            ),
            code="not_a_boolean",
        )
    return value
