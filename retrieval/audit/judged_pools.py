"""Judged pools as arrays: a row an assignment, a column a position of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from annotation.readers.pooled_hits import PooledHit
from retrieval.collection_sizes import CollectionSizes
from stats.arguments import Integers

Flags = NDArray[np.bool_]
MOST_OF_BEFORE = 3
"""A position with so many times the pictures of the one before begins another source's block."""


@dataclass(frozen=True)
class JudgedPools:
    """Assignments with their pools.

    Attributes
    ----------
    target : ndarray of int, shape (n_rows,)
        Codes among `names`, as those of pictures.
    picture : ndarray of int, shape (n_rows, n_positions)
        -1 past the end of a shorter pool.
    ticked : ndarray of bool, shape (n_rows, n_positions)
    judged : ndarray of bool, shape (n_rows,)
    line : ndarray of int, shape (n_rows,)
    names : list of str
    """

    target: Integers
    picture: Integers
    ticked: Flags
    judged: Flags
    line: Integers
    names: list[str]

    @property
    def has_picture(self) -> Flags:
        return self.picture >= 0

    @property
    def is_target(self) -> Flags:
        """Slots that show the row's own target."""
        own: Flags = self.picture == self.target[:, None]
        return own

    @cached_property
    def is_repeat(self) -> Flags:
        """Slots whose picture stands in an earlier slot of the row."""
        import pandas as pd

        row, slot = np.nonzero(self.has_picture)
        pairs = pd.DataFrame({"row": row, "picture": self.picture[row, slot]})
        repeat = np.zeros(self.picture.shape, dtype=bool)
        repeat[row, slot] = pairs.duplicated().to_numpy()
        return repeat

    @cached_property
    def block(self) -> Integers:
        """The block of each position, inferred of how many pictures each has: a source that
        always returns the same few is followed by one that does not."""
        shown = [self.picture[self.judged, slot] for slot in range(self.picture.shape[1])]
        distinct = [len(np.unique(column[column >= 0])) for column in shown]
        least = 0.1 * self.judged.sum()
        begins = [
            n > 0 and after >= MOST_OF_BEFORE * before and after >= least and before > 1
            for n, (before, after) in enumerate(zip([0, *distinct], distinct, strict=False))
        ]
        return np.cumsum(begins).astype(np.intp)

    @cached_property
    def first_slot(self) -> Integers:
        """Where the picture of each slot stands first in its row."""
        n_rows, n_slots = self.picture.shape
        first = np.tile(np.arange(n_slots), (n_rows, 1))
        for row, slot in zip(*np.nonzero(self.is_repeat), strict=True):
            first[row, slot] = np.argmax(self.picture[row] == self.picture[row, slot])
        return first

    @property
    def sizes(self) -> CollectionSizes:
        """With every slot as it was shown, by target."""
        return self._sizes(self.has_picture & self.judged[:, None], self.ticked)

    @property
    def sizes_cleaned(self) -> CollectionSizes:
        """With a picture once, ticked if it was in any slot, and never the target itself."""
        ticked = self.ticked.copy()
        rows, slots = np.nonzero(self.ticked & self.is_repeat)
        ticked[rows, self.first_slot[rows, slots]] = True
        retained = self.has_picture & self.judged[:, None] & ~self.is_repeat & ~self.is_target
        return self._sizes(retained, ticked)

    def _sizes(self, judged: Flags, ticked: Flags) -> CollectionSizes:
        codes, topic = np.unique(self.target, return_inverse=True)
        return CollectionSizes(
            judged=_sums(topic, judged.sum(axis=1), len(codes)),
            relevant=_sums(topic, (judged & ticked).sum(axis=1), len(codes)),
        )


def _sums(group: Integers, values: Integers, n: int) -> Integers:
    return np.bincount(group, weights=values, minlength=n).astype(np.intp)


def judged_pools(hits: Sequence[PooledHit]) -> JudgedPools:
    """The rows of a file as arrays."""
    width = max((len(hit.pictures) for hit in hits), default=0)
    numbers: dict[str, int] = {}
    picture = np.full((len(hits), width), -1, dtype=np.intp)
    ticked = np.zeros((len(hits), width), dtype=bool)
    target = np.empty(len(hits), dtype=np.intp)
    for row, hit in enumerate(hits):
        target[row] = numbers.setdefault(hit.target, len(numbers))
        shown = [numbers.setdefault(name, len(numbers)) if name else -1 for name in hit.pictures]
        picture[row, : len(shown)] = shown
        if hit.ticks is not None:
            ticked[row, : len(hit.ticks)] = hit.ticks
    return JudgedPools(
        target=target,
        picture=picture,
        ticked=ticked,
        judged=np.array([hit.ticks is not None for hit in hits], dtype=bool),
        line=np.array([hit.line for hit in hits], dtype=np.intp),
        names=list(numbers),
    )
