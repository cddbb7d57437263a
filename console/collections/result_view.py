"""A stored result of a collection as a page shows it: the answer, then folded tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from console.collections.evaluation_sentences import figure
from console.collections.result_charts import Chart
from presentation.documents import Column, Number, Table
from retrieval.models import CollectionVersion
from retrieval.stored_versions import signature_of


@dataclass(frozen=True)
class Fold:
    """A table with its title, and what it shows in a few words."""

    title: str
    finding: str
    table: Table


class ResultView(ABC):
    """What every result has: a first sentence, what it rests on, and notes."""

    picture = ""
    """The name of the address of its charts."""

    def __init__(self, version: CollectionVersion) -> None:
        self.version = version

    @property
    @abstractmethod
    def first_sentence(self) -> str:
        """The answer, in words that need no statistics."""

    @property
    @abstractmethod
    def details(self) -> list[str]:
        """What the answer rests on, a sentence each."""

    @abstractmethod
    def _folds(self) -> Iterator[Fold]: ...

    @cached_property
    def folds(self) -> list[Fold]:
        """The tables that have rows."""
        return [fold for fold in self._folds() if fold.table.rows]

    @cached_property
    def notes(self) -> list[str]:
        return [note.text for note in self.version.notes.all()]

    @cached_property
    def charts(self) -> list[Chart]:
        """Those that have something to draw."""
        return []

    @property
    def query(self) -> str:
        """What the address of a chart names its result by."""
        return f"version={self.version.number}"

    @property
    def signature(self) -> str:
        return signature_of(self.version)

    @property
    def level(self) -> str:
        """How confident its intervals are."""
        return level_of(self.version)

    @cached_property
    def tables(self) -> dict[str, Table]:
        return {fold.table.name: fold.table for fold in self.folds}

    def record(self) -> dict[str, Any]:
        """Every table's rows, with the settings and notes."""
        return {
            "result": self.version.number,
            "kind": self.version.kind,
            "fingerprint": self.version.fingerprint,
            "signature": self.signature,
            "settings": self.version.rules,
            "tables": {name: table.records() for name, table in self.tables.items()},
            "notes": self.notes,
        }


def level_of(version: CollectionVersion) -> str:
    """The confidence of a result's intervals, such as 95 %."""
    return f"{100 * version.rules.get('confidence', 0.95):g} %"


def text_column(title: str) -> Column:
    return Column(title, is_number=False)


def estimate(
    value: float | None, low: float | None, high: float | None, reason: str = "", decimals: int = 3
) -> Number:
    """A value with its interval, or the reason why it is undefined."""
    return Number(value, decimals, low, high, reason=reason)


def in_words(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval, within a sentence."""
    if low is None or high is None:
        return figure(value)
    return f"{figure(value)} [{figure(low)}, {figure(high)}]"
