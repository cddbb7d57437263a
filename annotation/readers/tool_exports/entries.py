import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from annotation.exceptions import FileFaults, ImportRefused
from annotation.readers.drafts import CandidateDraft, ReadingReport
from annotation.readers.policies import Policies
from annotation.readers.rows import MOST, Row
from annotation.readers.tables import each_row, read_object
from error_codes import CodedText

SOLE_CANDIDATE = "item"
LONGEST_QUESTION = 64
# `plain` is a text that may be a number: what it is shows once all values are there.
Kind = Literal["plain", "number", "points", "category", "categories", "placed", "written"]


@dataclass(frozen=True)
class FieldNames:
    """Which fields of an export hold what; what is not named is where the tool has it."""

    item: tuple[str, ...] = ()
    annotator: str = ""
    candidate: str = ""
    system: str = ""
    context: str = ""
    response: str = ""
    reference: str = ""
    condition: str = ""
    round: str = ""
    question: str = ""
    values: tuple[str, ...] = ()


@dataclass(slots=True)
class Answer:
    """`value` is a text, a number, a list of categories, or where a candidate was placed; `field`
    is the path of the value in its record."""

    question: str
    kind: Kind
    value: Any
    field: str
    candidate: str = SOLE_CANDIDATE


@dataclass(slots=True)
class Entry:
    """One annotator's answers about what one record shows; without an annotator, only that.

    `records` has the ids of the rows that the answers are from.
    """

    row: Row
    item: str
    candidates: tuple[CandidateDraft, ...]
    annotator: str = ""
    answers: list[Answer] = field(default_factory=list)
    context: str = ""
    reference: str = ""
    condition: str = ""
    round: int = 1
    status: str = "submitted"
    accepted_at: datetime | None = None
    submitted_at: datetime | None = None
    seconds: float | None = None
    is_simulated: bool = False
    records: list[int] = field(default_factory=list)

    def add(self, question: str, kind: Kind, value: Any, field: str, candidate: str = "") -> None:
        candidate = candidate or self.candidates[0].key
        self.answers.append(Answer(question, kind, value, field, candidate))

    def refuse(self, answer: Answer, problem: str, *, code: str) -> ImportRefused:
        row = self.row
        return ImportRefused(
            row.path,
            problem,
            line=row.line,
            field=answer.field,
            code=code,
            record=row.record,
            sheet=row.source.sheet if row.source else "",
        )


@dataclass
class Faults:
    faults: list[ImportRefused] = field(default_factory=list)

    def add(self, fault: ImportRefused) -> None:
        self.faults.append(fault)

    @contextmanager
    def noting(self) -> Iterator[None]:
        try:
            yield
        except ImportRefused as fault:
            self.add(fault)

    def require_none(self) -> None:
        if self.faults:
            raise FileFaults(sorted(self.faults, key=lambda fault: fault.line or 0))


@dataclass
class Export:
    """A file on its way in: its records, what is wrong with it, and what no study takes.

    `written` names the questions whose answers are words, `without` those that are not wanted.
    `answers` is how columns name their questions. `wordings` has the texts of questions that the
    file has.
    """

    path: Path
    fields: FieldNames
    faults: Faults = field(default_factory=Faults)
    report: ReadingReport = field(default_factory=ReadingReport)
    rows: Sequence[Row] | None = None
    policies: Policies = field(default_factory=Policies)
    written: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    answers: str = ""
    wordings: dict[str, str] = field(default_factory=dict)
    records_read: dict[int, Row] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    unwanted: Counter[str] = field(default_factory=Counter)

    def records(self) -> Iterator[Row]:
        for row in self.rows if self.rows is not None else read_records(self):
            self.records_read[id(row)] = row
            yield row

    def split_record(self, row: Row, parts: Sequence[Row]) -> None:
        self.report.n_rows += len(parts) - 1
        del self.records_read[id(row)]
        self.records_read |= {id(part): part for part in parts}

    def read_each(
        self, read: Callable[[Row], Iterable[Entry]], rows: Iterable[Row] | None = None
    ) -> Iterator[Entry]:
        for row in self.records() if rows is None else rows:
            with self.faults.noting():
                for entry in read(row):
                    entry.records.append(id(row))
                    yield entry

    def leave_out(self, reason: CodedText, row: Row, n: int = 1, *, detail: str = "") -> None:
        if n:
            self.report.leave_out_part(
                reason, f"{place_of(row)} ({detail})" if detail else place_of(row), n
            )

    def leave_out_record(self, reason: CodedText, row: Row) -> None:
        del self.records_read[id(row)]
        self.report.leave_out(reason, place_of(row))

    def count(self, name: str) -> int:
        self.counts[name] += 1
        return self.counts[name]

    def is_unwanted(self, question: str, row: Row) -> bool:
        if is_unwanted := question in self.without:
            self.unwanted[question] += 1
            self.leave_out(
                CodedText("the question is left out", "question_left_out"), row, detail=question
            )
        return is_unwanted

    def is_missing(self, text: str, question: str) -> bool:
        """Whether a cell of a table holds no answer, which is counted; of words it is one."""
        self.report.policies["missing"] = self.policies.missing
        text = text.strip()
        is_missing = not text if question in self.written else self.policies.is_missing(text)
        if is_missing:
            self.report.note_missing(text)
        return is_missing

    def count_unused_records(self, entries: Iterable[Entry], questions: Collection[str]) -> None:
        used = {
            number
            for entry in entries
            if any(answer.question in questions for answer in entry.answers)
            for number in entry.records
        }
        for number, row in self.records_read.items():
            if number not in used:
                self.report.leave_out(
                    CodedText(
                        "no answer in it can be used; only its item is imported", "no_answer"
                    ),
                    place_of(row),
                )


def place_of(row: Row) -> str:
    return f"{row.place}: {row.inside}" if row.inside else row.place


def read_records(export: Export) -> Iterator[Row]:
    try:
        yield from each_row(export.path, on_fault=export.faults.add, report=export.report)
    except ImportRefused as refused:
        if refused.code != "not_objects":
            raise
        export.report.n_rows += 1
        yield read_object(export.path)


def texts(row: Row, fields: FieldNames, *, response: str = "") -> dict[str, Any]:
    system = row.optional(fields.system, longest=100) if fields.system else ""
    return {
        "candidates": (
            CandidateDraft(
                key=(row.required(fields.candidate, longest=200) if fields.candidate else system)
                or SOLE_CANDIDATE,
                system=system,
                text=row.text(fields.response) if fields.response else response,
            ),
        ),
        "context": row.text(fields.context) if fields.context else "",
        "reference": row.text(fields.reference) if fields.reference else "",
        "condition": row.optional(fields.condition, longest=64) if fields.condition else "",
    }


def compile_pattern(pattern: str, names: Iterable[str]) -> re.Pattern[str]:
    escaped = re.escape(pattern)
    for name in names:
        escaped = escaped.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>.+?)")
    return re.compile(escaped)


def parse_json(text: str, default: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def sole_text(values: Mapping[str, Any], fields: FieldNames) -> str:
    known = named_texts(fields)
    found = [one for name, one in values.items() if isinstance(one, str) and name not in known]
    return found[0] if len(found) == 1 else ""


def require_fields(row: Row, names: Iterable[str]) -> None:
    for name in names:
        if name and "{system}" not in name and name not in row.fields:
            there = ", ".join(map(str, row.fields)) or "none"
            problem = f"this field is missing; there are {there}."
            if row.source is not None:
                problem = row.source.with_other_sheets(problem)
            raise row.refuse(problem, name, code="missing_field")


def named_texts(fields: FieldNames) -> tuple[str, ...]:
    rest = (fields.candidate, fields.system, fields.context, fields.response)
    return (*fields.item, *rest, fields.reference, fields.condition)


def short_name(row: Row, column: str) -> str:
    name = column.strip()
    row.refuse_unless(
        1 <= len(name) <= LONGEST_QUESTION,
        f"a question's name has 1 to {LONGEST_QUESTION} characters.",
        column,
        code="too_long",
    )
    return name


def show_candidates(
    entry: Entry, names: Iterable[str], text: Callable[[str], str] = lambda _name: ""
) -> None:
    known = {candidate.key: candidate for candidate in entry.candidates}
    for name in names:
        known.setdefault(name, CandidateDraft(key=name, system=name, text=text(name)))
    entry.candidates = tuple(known.values())


def number_of(row: Row, name: str) -> float | None:
    return None if row.fields.get(name) in (None, "") else row.number(name)


def number_of_text(value: object) -> float | None:
    try:
        number = float("" if "_" in str(value) else str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) <= MOST else None


def iso_time(row: Row, name: str) -> datetime | None:
    text = row.text(name).strip()
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise row.refuse(f"'{text[:40]}' is not a time.", name, code="not_time") from None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def placed(ranks: Mapping[str, float]) -> dict[str, float]:
    """Of each candidate the share of the others that it was placed above, ties as half."""
    others = max(len(ranks) - 1, 1)
    return {
        name: sum(
            1.0 if rank < other else 0.5 if rank == other else 0.0
            for key, other in ranks.items()
            if key != name
        )
        / others
        for name, rank in ranks.items()
    }
