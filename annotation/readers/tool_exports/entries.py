"""What every tool's export comes to: entries, each of one annotator about one record."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from annotation.exceptions import FileFaults, ImportRefused
from annotation.readers.drafts import CandidateDraft
from annotation.readers.rows import Row
from annotation.readers.tables import each_row

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
    """`value` is a text, a number, a list of categories, or where a candidate was placed."""

    question: str
    kind: Kind
    value: Any
    field: str
    candidate: str = SOLE_CANDIDATE


@dataclass(slots=True)
class Entry:
    """One annotator's answers about what one record shows; without an annotator, only that."""

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


@dataclass
class Faults:
    """What is wrong with a file, until all of it is read."""

    faults: list[ImportRefused] = field(default_factory=list)

    def add(self, fault: ImportRefused) -> None:
        self.faults.append(fault)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Go on after what is refused inside."""
        try:
            yield
        except ImportRefused as fault:
            self.add(fault)

    def require_none(self) -> None:
        if self.faults:
            raise FileFaults(sorted(self.faults, key=lambda fault: fault.line or 0))


@dataclass
class LeftOut:
    """What a tool can hold and a study cannot, counted by what it is."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def sentences(self) -> tuple[str, ...]:
        return tuple(f"{what} left out ({n:,})" for what, n in self.counts.items())


@dataclass(frozen=True)
class Export:
    """A file on its way in: its entries, what is wrong with it, and what no study takes."""

    path: Path
    fields: FieldNames
    faults: Faults = field(default_factory=Faults)
    left_out: LeftOut = field(default_factory=LeftOut)
    rows: Sequence[Row] | None = None

    def records(self) -> Iterator[Row]:
        """The rows that are read already, or else those of the file."""
        if self.rows is not None:
            yield from self.rows
        else:
            yield from each_row(self.path, on_fault=self.faults.add)


def inner(row: Row, value: Any, name: str) -> Row:
    """An object inside a record, which refuses itself with the record's line and its own name."""
    if not isinstance(value, dict):
        raise row.refuse("expected a JSON object in braces.", name, code="not_object")
    return row.child(value, row.called(name))


def inner_list(row: Row, name: str) -> list[Any]:
    value = row.fields.get(name)
    if not isinstance(value, list):
        raise row.refuse("expected a JSON list in brackets.", name, code="not_list")
    return value


def item_key(row: Row, names: Iterable[str]) -> str:
    """The item's key: the values of these fields, joined by hyphens."""
    names = tuple(names)
    key = "-".join(row.required(name) for name in names)
    if len(key) > 200:
        problem = f"the item's name has {len(key)} characters, where 200 fit."
        raise row.refuse(problem, names[-1], code="too_long")
    return key


def texts(row: Row, fields: FieldNames, *, response: str = "") -> dict[str, Any]:
    """What a record shows, as fields of an entry; `response` stands where no field is named."""
    system = row.optional(fields.system, longest=100) if fields.system else ""
    key = row.required(fields.candidate, longest=200) if fields.candidate else system
    text = row.text(fields.response) if fields.response else response
    candidate = CandidateDraft(key=key or SOLE_CANDIDATE, system=system, text=text)
    condition = row.optional(fields.condition, longest=64) if fields.condition else ""
    return {
        "candidates": (candidate,),
        "context": row.text(fields.context) if fields.context else "",
        "reference": row.text(fields.reference) if fields.reference else "",
        "condition": condition,
    }


def require_fields(row: Row, names: Iterable[str]) -> None:
    """Refuse a record that lacks a field that was named, unless by a pattern."""
    for name in names:
        if name and "{system}" not in name and name not in row.fields:
            there = ", ".join(map(str, row.fields)) or "none"
            raise row.refuse(
                f"this field is missing; there are {there}.", name, code="missing_field"
            )


def named_texts(fields: FieldNames) -> tuple[str, ...]:
    """The fields that the person named, of what a record shows."""
    rest = (fields.candidate, fields.system, fields.context, fields.response)
    return (*fields.item, *rest, fields.reference, fields.condition)


def number_of(row: Row, name: str) -> float | None:
    return None if row.fields.get(name) in (None, "") else row.number(name)


def iso_time(row: Row, name: str) -> datetime | None:
    """A time in ISO 8601, taken for UTC where it names no zone; absent is None."""
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
