"""Columns as their distinct values and, for each row, the number of its value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Integers = NDArray[np.intp]
Objects = NDArray[np.object_]


@dataclass(frozen=True)
class Words:
    """A column as its distinct values and, of each row, which of them it has.

    In a table these are the cells as they stand in the file; lists and objects of JSON, which
    cannot be compared, are all distinct.
    """

    codes: Integers
    words: list[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def to_list(self) -> list[Any]:
        values: list[Any] = self.take(self.words).tolist()
        return values

    def take(self, values: Sequence[Any]) -> Objects:
        """Of each row the value that belongs to its word."""
        of_words = np.empty(len(values), dtype=object)
        of_words[:] = values
        return of_words[self.codes]

    def rows(self, chosen: Mask | Integers) -> Words:
        return Words(self.codes[chosen], self.words)

    def compact(self) -> Words:
        """The column without words that no row has."""
        is_used = np.bincount(self.codes, minlength=len(self.words)) > 0
        if is_used.all():
            return self
        codes = np.cumsum(is_used) - 1
        return Words(codes[self.codes], [self.words[at] for at in np.flatnonzero(is_used).tolist()])

    def mask(self, is_chosen: Callable[[Any], bool]) -> Mask:
        chosen = np.fromiter(map(is_chosen, self.words), dtype=np.bool_, count=len(self.words))
        return chosen[self.codes] if len(self.words) else np.zeros(len(self.codes), np.bool_)


def coded(values: Iterable[Any]) -> Words:
    number: dict[Any, int] = {}
    words: list[Any] = []
    codes: list[int] = []
    for value in values:
        # 1, 1.0 and true are equal and not the same; lists and objects have no hash.
        key: Any = value if type(value) is str else (type(value), value)
        if isinstance(value, list | dict):
            key = len(words), None
        code = number.setdefault(key, len(words))
        if code == len(words):
            words.append(value)
        codes.append(code)
    return Words(np.array(codes, dtype=np.intp), words)


def merged_words(codes: Integers, words: Sequence[str]) -> Words:
    """The column after words have become equal."""
    if len({*words}) == len(words):
        return Words(codes, list(words))
    merged = coded(words)
    return Words(merged.codes[codes], merged.words)


def stacked(columns: Sequence[Words]) -> Words:
    """The columns next to each other, row by row."""
    words: list[Any] = []
    parts = []
    for column in columns:
        union = coded([*words, *column.words])
        words = union.words
        parts.append(union.codes[len(union.codes) - len(column.words) :][column.codes])
    return Words(np.stack(parts, axis=1).ravel(), words)
