"""Kinds of results. Each is declared once, in one module, and registered under its name.

From the declaration come the stored result, the background job, the page with its form, the API's
endpoint, the files, and the documentation. Its tables name the columns of the record's rows, and
how pages and papers show them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from io import BytesIO
from itertools import count, islice
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from django.db import models
from django.utils.translation import gettext as _

from console.registrations import app_modules
from error_codes import CodedText
from presentation import documents
from presentation.documents import Cell, Number, P
from presentation.libraries import pc, pq
from presentation.row_files import Kind, RowFile, row_parquet
from presentation.theme import Picture
from results.settings import Inputs
from stats.libraries import pd

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from presentation.progress import Reporter
    from results.models import Result


Row = Mapping[str, Any]
Record = Mapping[str, Any]
TableRows = Callable[[Record], Sequence[Row]]


@dataclass(frozen=True)
class Column:
    """A column; `name` of a row's value is the column's key in its table."""

    # May name settings of the result in braces.
    title: StrOrPromise
    # The title that it shares with its neighbors.
    group: StrOrPromise = field(default="", kw_only=True)
    # Whether the column is left out if no row has a value.
    hide_empty: bool = field(default=False, kw_only=True)
    # Whether the cell is empty in rows that do not have it.
    is_optional: bool = field(default=False, kw_only=True)
    is_number = True

    def cell(self, row: Row, name: str) -> Cell:
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Column):
    labels: Mapping[str, StrOrPromise] = field(default_factory=dict)
    is_number = False

    def cell(self, row: Row, name: str) -> Cell:
        value = "" if row[name] is None else str(row[name])
        return str(self.labels.get(value, value))


@dataclass(frozen=True)
class YesNo(Column):
    is_number = False

    def cell(self, row: Row, name: str) -> Cell:
        return _("yes") if row[name] else _("no")


@dataclass(frozen=True)
class Count(Column):
    def cell(self, row: Row, name: str) -> Cell:
        value: int = row[name]
        return value


@dataclass(frozen=True)
class Value(Column):
    """A number without an interval; None is undefined. `best` of a row is whether it stands out."""

    digits: int = 3
    best: str = ""

    def cell(self, row: Row, name: str) -> Cell:
        return Number(row.get(name), self.digits, is_best=bool(row.get(self.best)))


@dataclass(frozen=True)
class Estimate(Column):
    """A number with its interval, or the reason why one of them is undefined.

    The limits are the row's `low` and `high`; or those of the value itself if it is a mapping of
    `value`, `ci_low`, `ci_high` and `reason`.
    """

    digits: int = 3
    low: str = "ci_low"
    high: str = "ci_high"
    reason: str = "reason"

    def cell(self, row: Row, name: str) -> Cell:
        if isinstance(row.get(name), Mapping):
            row, name = row[name], "value"
        reason = str(row.get(self.reason) or "")
        return Number(
            row.get(name),
            self.digits,
            row.get(self.low),
            row.get(self.high),
            reason=reason,
            no_interval=reason,
        )


@dataclass(frozen=True)
class PValue(Column):
    reason: str = ""

    def cell(self, row: Row, name: str) -> Cell:
        return P(row.get(name), reason=str(row.get(self.reason) or ""))


@dataclass(frozen=True)
class Table:
    """A table of a record.

    `rows` finds them in the record; by default they are the list under the table's name.
    `finding` says in a few words what the table shows; `note` explains its columns.
    """

    caption: StrOrPromise
    columns: Mapping[str, Column]
    finding: Callable[[Sequence[Row], Result], str] = lambda rows, result: f"{len(rows):,}"
    note: Callable[[Result], str] = lambda result: ""
    rows: TableRows | None = None

    def read_rows(self, name: str, record: Record) -> Sequence[Row]:
        found: Sequence[Row] = record.get(name, ()) if self.rows is None else self.rows(record)
        return found

    def show(self, name: str, rows: Sequence[Row], result: Result) -> documents.Table:
        shown = {
            key: one
            for key, one in self.columns.items()
            if not one.hide_empty or any(row.get(key) is not None for row in rows)
        }
        return documents.Table(
            name.replace("_", "-"),
            str(self.caption),
            tuple(
                documents.Column(
                    str(one.title).format_map(result.settings),
                    group=str(one.group),
                    is_number=one.is_number,
                )
                for one in shown.values()
            ),
            [
                tuple(
                    "" if one.is_optional and key not in row else one.cell(row, key)
                    for key, one in shown.items()
                )
                for row in rows
            ],
            note=self.note(result),
        )


def sentence(code: str, text: str, **values: object) -> CodedText:
    """A sentence of a result, with the code that tests and programs know it by."""
    return CodedText(text.format(**values), code=code)


# Rows of a part of a long table: what is decoded to read one of them. Stored tables rely on it.
ROWS_A_PART = 100_000
ROWS_A_BATCH = 2000


def pack_rows(
    name: str, columns: Mapping[str, Kind], rows: Iterable[Row]
) -> Iterator[tuple[str, bytes]]:
    """A table that grows without bound, as parts of a result: Parquet files of consecutive rows."""
    values = (tuple(row[column] for column in columns) for row in rows)
    for number in count():
        if not (some := list(islice(values, ROWS_A_PART))):
            return
        yield f"{name}-{number}", b"".join(row_parquet(RowFile(columns, some)))


def read_rows(result: Result, name: str, *, after: int = 0, **equal: Any) -> Iterator[Row]:
    """The rows of a long table after as many, with these values in some of its columns."""
    number, n_before = divmod(after, ROWS_A_PART)
    while part := result.parts.filter(name=f"{name}-{number}").first():
        table = pq.ParquetFile(BytesIO(part.content)).read().slice(n_before)
        for column, value in equal.items():
            table = table.filter(pc.equal(table[column], value))
        for batch in table.to_batches(ROWS_A_BATCH):
            yield from batch.to_pylist()
        number, n_before = number + 1, 0


Subject = TypeVar("Subject", bound=models.Model)
# Rows, such as files, by the name of the input.
Chosen = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Chart:
    """A chart of a result, the sentence that describes it, and the rows it is drawn from.

    `summary` is its values in words, for people who do not see it, if `words` does not have them.
    """

    name: str
    title: str
    words: str
    frame: pd.DataFrame
    draw: Callable[[], Picture]
    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class Computed:
    """What a computation gave.

    Attributes
    ----------
    record : mapping
        Everything, under the keys that `--json` prints.
    facts : mapping
        Counts that lists of results show, such as `n_topics`.
    notes : sequence of str
        Warnings for readers, each with a code where there is one.
    settings : mapping, optional
        The settings, where the computation completed them.
    parts : mapping of bytes
        Large tables of the record, packed, that are read one by one.
    write_rows : callable, optional
        Stores what is paged row by row, in the transaction that stores the result.
    """

    record: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    seed: int = 0
    settings: Mapping[str, Any] | None = None
    parts: Mapping[str, bytes] = field(default_factory=dict)
    write_rows: Callable[[Result], object] | None = None


@dataclass(frozen=True)
class Given(Generic[Subject]):
    subject: Subject
    inputs: Sequence[Any]
    settings: Mapping[str, Any]
    progress: Reporter


@dataclass(frozen=True)
class NoSettings:
    """Of kinds that ask for none."""


@dataclass(frozen=True)
class SubjectOnly:
    """Of kinds that are computed of their subject alone."""


class ResultKind(ABC, Generic[Subject]):
    """A kind of computed results.

    `subject` is the name of the subject's model, such as "collection".
    `form` is the version of the record's layout: results of another form are computed anew.
    A result is computed once for the same input and settings, unless the kind `is_repeated`.
    `fields_of_errors` are the form's fields that an error of `check_settings` can be about.
    """

    name: ClassVar[str]
    subject: ClassVar[str]
    title: ClassVar[StrOrPromise]
    job: ClassVar[str]
    job_label: ClassVar[StrOrPromise]
    refusals: ClassVar[tuple[type[Exception], ...]] = ()
    form: ClassVar[int] = 1
    is_repeated: ClassVar[bool] = False
    settings: ClassVar[type] = NoSettings
    inputs: ClassVar[Mapping[str, Inputs]] = {}
    fields_of_errors: ClassVar[Mapping[str, Sequence[str]]] = {}
    tables: ClassVar[Mapping[str, Table]] = {}

    def offer_inputs(self, subject: Subject) -> Mapping[str, Sequence[Any]]:
        return {}

    def name_input(self, row: Any) -> str:
        return str(row.name)

    def explain_missing(self, offered: Chosen) -> str:
        """Why nothing can be computed of what is offered; empty if something can."""
        return ""

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise an error of `refusals` if the settings cannot be used."""

    def name_inputs(self, chosen: Chosen) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for name, rows in chosen.items():
            one = self.inputs.get(name)
            if one is not None and one.stored_as:
                names = [row.name for row in rows]
                named[one.stored_as] = names if one.several else next(iter(names), None)
        return named

    def check_request(self, chosen: Chosen, settings: Mapping[str, Any]) -> None:
        """Raise an error of `refusals` if no result can be computed of what was chosen."""

    @abstractmethod
    def open_subject(self, key: int) -> Subject:
        """The subject of a job; an error of `refusals` if it is gone."""

    @abstractmethod
    def find_subject(self, name: str) -> Subject:
        """The subject of that short name; an error of `refusals` if there is none."""

    @abstractmethod
    def load_inputs(self, subject: Subject, keys: Sequence[int]) -> Sequence[Any]:
        """The inputs of a job, such as files; an error of `refusals` if one is gone."""

    @abstractmethod
    def describe_inputs(self, subject: Subject, inputs: Sequence[Any]) -> Sequence[Any]:
        """What of the inputs the result depends on, as JSON: part of the fingerprint."""

    @abstractmethod
    def compute(self, given: Given[Subject]) -> Computed:
        """Compute a result."""

    def keep_inputs(self, result: Result, inputs: Sequence[Any]) -> None:
        """Store which inputs the result was computed from."""

    def list_kept_inputs(self, result: Result) -> Sequence[int]:
        """The keys of the inputs that a result was computed from, and that are still there."""
        return ()

    def prefer_inputs(self, subject: Subject) -> Mapping[str, Sequence[int | None]]:
        """Keys of inputs that the form of a first result begins with, by the input's name."""
        return {}

    def list_variants(
        self, subject: Subject, settings: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Settings of further results that are computed after one with these settings."""
        return ()

    def finish(self, subject: Subject, inputs: Sequence[Any]) -> None:
        """What else is done in the transaction that stores a result."""

    def read_record(self, result: Result) -> Record:
        """The record that the tables are of."""
        return result.record

    def answer(self, result: Result) -> str:
        """The first sentence of the page."""
        return ""

    def details(self, result: Result) -> Iterable[str]:
        return ()

    def charts(self, result: Result) -> Iterable[Chart]:
        """Pictures; those without rows are not shown."""
        return ()


_kinds: dict[str, ResultKind[Any]] = {}


def register_kind(kind: type[ResultKind[Any]]) -> type[ResultKind[Any]]:
    if kind.name in _kinds:
        raise ValueError(f"There are two kinds of results called {kind.name!r}.")
    _kinds[kind.name] = kind()
    return kind


def result_kind(name: str) -> ResultKind[Any]:
    _import_kinds()
    return _kinds[name]


def result_kinds(subject: str = "") -> Mapping[str, ResultKind[Any]]:
    _import_kinds()
    # Sorted, because the order of imports differs between processes.
    kinds = sorted(_kinds.items())
    return {name: one for name, one in kinds if subject in ("", one.subject)}


@cache
def _import_kinds() -> None:
    # Import the modules of each app's package `result_kinds` when a kind is first looked up: they
    # bring the statistics with them.
    for package in app_modules("result_kinds"):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
