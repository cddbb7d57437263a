"""The long frame of a crowd, checked and coded: votes for categories, or numeric ratings."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require_same_length,
    sum_by,
)
from stats.libraries import pd

Repeats = Literal["refuse", "count"]
MAX_CELLS = 100_000_000
"""Of a dense table of floats, which then takes 800 MB."""


@dataclass(frozen=True)
class Crowd:
    """Who labelled what: codes of items and annotators, both by ascending order."""

    item: Integers
    annotator: Integers
    items: list[Hashable]
    annotators: list[Hashable]
    n_repeated: int

    @property
    def n_labels(self) -> int:
        return len(self.item)

    @property
    def labels_per_item(self) -> Floats:
        return self.per_item(np.ones(self.n_labels))

    @property
    def labels_per_annotator(self) -> Floats:
        return self.per_annotator(np.ones(self.n_labels))

    def per_item(self, amounts: Floats) -> Floats:
        """Sum of an amount per label over each item."""
        return sum_by(self.item, amounts, len(self.items))

    def per_annotator(self, amounts: Floats) -> Floats:
        """Sum of an amount per label over each annotator."""
        return sum_by(self.annotator, amounts, len(self.annotators))


@dataclass(frozen=True)
class Votes(Crowd):
    """Labels that are categories: `value` holds codes of `categories`."""

    value: Integers
    categories: list[Hashable]

    @property
    def n_categories(self) -> int:
        return len(self.categories)

    def per_category(self, amounts: Floats) -> Floats:
        """Sum of an amount per label, shape (items, categories), over the labels of each kind."""
        require_table("values", items=len(self.items), categories=self.n_categories)
        cell = self.item * self.n_categories + self.value
        total = sum_by(cell, amounts, len(self.items) * self.n_categories)
        return total.reshape(len(self.items), self.n_categories)

    def shares(self) -> Floats:
        """The share of each item's labels that each category has."""
        counts = self.per_category(np.ones(self.n_labels))
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Ratings(Crowd):
    """Labels that are numbers."""

    value: Floats


def require_table(argument: str, **axes: int) -> None:
    """Refuse, before it is made, a table that takes gigabytes."""
    if prod(axes.values()) > MAX_CELLS:
        shape = " by ".join(f"{size:,} {name}" for name, size in axes.items())
        raise InvalidValue(
            f"{argument} would take a table of {shape}, which is too large", code="table_too_large"
        )


def code_votes(items: Column, annotators: Column, values: Column, repeats: Repeats) -> Votes:
    """Check the columns of categorical labels and code them."""
    crowd = _code_crowd(items, annotators, values, repeats)
    value, categories = coded_in_order(values, "values")
    return Votes(**vars(crowd), value=value, categories=categories)


def code_ratings(items: Column, annotators: Column, values: Column, repeats: Repeats) -> Ratings:
    """Check the columns of numeric labels and code them."""
    crowd = _code_crowd(items, annotators, values, repeats)
    return Ratings(**vars(crowd), value=complete_numbers(values, "values"))


def _code_crowd(items: Column, annotators: Column, values: Column, repeats: Repeats) -> Crowd:
    if repeats not in ("refuse", "count"):
        raise InvalidValue(
            f"repeats must be 'refuse' or 'count', not {repeats!r}", code="unknown_repeats"
        )
    require_same_length(items=items, annotators=annotators, values=values)
    item, distinct_items = coded_in_order(items, "items")
    annotator, distinct_annotators = coded_in_order(annotators, "annotators")
    pair = pd.Series(item * len(distinct_annotators) + annotator)
    n_repeated = int(pair.duplicated().sum())
    if n_repeated and repeats == "refuse":
        raise InvalidValue(
            f"annotators label an item more than once in {n_repeated} rows of items and "
            "annotators; leave them out, or pass repeats='count' to count each",
            code="repeated_labels",
        )
    return Crowd(item, annotator, distinct_items, distinct_annotators, n_repeated)
