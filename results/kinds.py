"""Kinds of results. Each is declared once, in one module, and registered under its name.

From the declaration come the stored result, the background job, the page with its form, the API's
endpoint, the files, and the documentation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from django.db import models
from django.utils.module_loading import autodiscover_modules

from presentation.theme import Picture
from results.tables import Table

if TYPE_CHECKING:
    import pandas as pd
    from django_stubs_ext import StrOrPromise

    from results.models import Result
    from work.execution import RunningJob

Subject = TypeVar("Subject", bound=models.Model)


@dataclass(frozen=True)
class Chart:
    """A chart of a result, the sentence that describes it, and the rows it is drawn from."""

    name: str
    title: str
    words: str
    frame: pd.DataFrame
    draw: Callable[[], Picture]


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
    write_rows : callable, optional
        Stores what is paged row by row, in the transaction that stores the result.
    """

    record: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    seed: int = 0
    settings: Mapping[str, Any] | None = None
    write_rows: Callable[[Result], object] | None = None


class ResultKind(ABC, Generic[Subject]):
    """A kind of computed results.

    `form` is the version of the record's layout: results of another form are computed anew.
    A result is computed once for the same input and settings, unless the kind `is_repeated`.
    """

    name: ClassVar[str]
    title: ClassVar[StrOrPromise]
    job: ClassVar[str]
    job_label: ClassVar[StrOrPromise]
    refusals: ClassVar[tuple[type[Exception], ...]] = ()
    form: ClassVar[int] = 1
    is_repeated: ClassVar[bool] = False
    tables: ClassVar[Mapping[str, Table]] = {}

    @abstractmethod
    def open_subject(self, key: int) -> Subject:
        """The subject of a job; an error of `refusals` if it is gone."""

    @abstractmethod
    def load_inputs(self, subject: Subject, keys: Sequence[int]) -> Sequence[Any]:
        """The inputs of a job, such as files; an error of `refusals` if one is gone."""

    @abstractmethod
    def describe_inputs(self, subject: Subject, inputs: Sequence[Any]) -> Sequence[Any]:
        """What of the inputs the result depends on, as JSON: part of the fingerprint."""

    @abstractmethod
    def compute(
        self,
        subject: Subject,
        inputs: Sequence[Any],
        settings: Mapping[str, Any],
        running: RunningJob,
    ) -> Computed:
        """Compute a result."""

    def keep_inputs(self, result: Result, inputs: Sequence[Any]) -> None:
        """Store which inputs the result was computed from."""

    def finish(self, subject: Subject, inputs: Sequence[Any]) -> None:
        """What else is done in the transaction that stores a result."""

    def answer(self, result: Result) -> str:
        """The first sentence of the page."""
        return ""

    def details(self, result: Result) -> Iterable[str]:
        """Sentences that say what the answer rests on."""
        return ()

    def charts(self, result: Result) -> Iterable[Chart]:
        """Pictures; those without rows are not shown."""
        return ()


_kinds: dict[str, ResultKind[Any]] = {}


def register_kind(kind: type[ResultKind[Any]]) -> type[ResultKind[Any]]:
    """Register the decorated class under its name."""
    if kind.name in _kinds:
        raise ValueError(f"There are two kinds of results called {kind.name!r}.")
    _kinds[kind.name] = kind()
    return kind


def result_kind(name: str) -> ResultKind[Any]:
    """The kind of that name; KeyError if there is none."""
    _import_kinds()
    return _kinds[name]


def result_kinds() -> Mapping[str, ResultKind[Any]]:
    """All kinds by name."""
    _import_kinds()
    return dict(_kinds)


@cache
def _import_kinds() -> None:
    """Import each app's package `result_kinds` when a kind is first looked up: it brings the
    statistics with it."""
    autodiscover_modules("result_kinds")
