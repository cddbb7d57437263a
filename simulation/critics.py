"""What a user says of an item, relative to the one in mind: as a vector, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from simulation.catalogue import Attribute, Catalogue
from simulation.exceptions import CatalogueUnfit
from stats.arguments import Floats, Integers


class Critic(Protocol):
    """Critiques of items relative to others, many pairs at once."""

    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int:
        """Components of a critique's vector."""
        ...

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        """(n, width): what recommenders observe."""
        ...

    def texts(self, shown: Integers, wanted: Integers) -> list[str]: ...

    def record(self) -> dict[str, Any]: ...


class AttributeCritic:
    """Names the attributes in which the wanted item differs most, in words.

    Of an attribute whose values have an order it says which way ("has a higher heel"), of others
    the value ("is red"). Equal differences go by a fixed order of the attributes: the one that
    fewest items share comes first.
    """

    name = "attribute differences"

    def __init__(self, catalogue: Catalogue, *, n_named: int = 2) -> None:
        if catalogue.attributes is None:
            raise CatalogueUnfit("This catalogue has no attributes to critique items by.")
        if n_named < 1:
            raise ValueError(f"n_named must be at least 1, not {n_named}")
        self.attributes, self.n_named = catalogue.attributes, n_named
        self.features = _features(self.attributes.kinds)
        self.offsets = np.cumsum([0, *(_n_features(kind) for kind in self.attributes.kinds)])
        self.rank = _by_rarity(self.attributes.codes)

    @property
    def width(self) -> int:
        return len(self.features)

    def named(self, shown: Integers, wanted: Integers) -> Integers:
        """The attributes that are named, (n, n_named), -1 where fewer differ."""
        codes = self.attributes.codes
        gaps = np.abs(codes[wanted] - codes[shown]).astype(np.float64)
        for column, kind in enumerate(self.attributes.kinds):
            span = max(1, len(kind.values) - 1)
            gaps[:, column] = gaps[:, column] / span if kind.is_ordered else gaps[:, column] > 0
        order = np.lexsort((np.broadcast_to(self.rank, gaps.shape), -gaps), axis=1)
        first = order[:, : self.n_named]
        return np.where(np.take_along_axis(gaps, first, axis=1) > 0, first, -1)

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        """1 for each value that is wished for or more of which is, -1 for what is to go."""
        codes = self.attributes.codes
        vectors = np.zeros((len(shown), self.width))
        for column in self.named(shown, wanted).T:
            for number, kind in enumerate(self.attributes.kinds):
                rows = np.flatnonzero(column == number)
                has, wants = codes[shown[rows], number], codes[wanted[rows], number]
                offset = self.offsets[number]
                if kind.is_ordered:
                    vectors[rows, offset] = np.sign(wants - has)
                else:
                    vectors[rows, offset + has] = -1.0
                    vectors[rows, offset + wants] = 1.0
        return vectors

    def texts(self, shown: Integers, wanted: Integers) -> list[str]:
        named = self.named(shown, wanted)
        return [
            self._text(attributes, self.attributes.codes[a], self.attributes.codes[b])
            for attributes, a, b in zip(named.tolist(), shown, wanted, strict=True)
        ]

    def _text(self, named: Sequence[int], has: Integers, wants: Integers) -> str:
        words = []
        for number in named:
            if number == -1:
                continue
            kind = self.attributes.kinds[number]
            if kind.is_ordered:
                words.append(kind.more if wants[number] > has[number] else kind.less)
            else:
                words.append(f"is {kind.values[wants[number]]}")
        return " and ".join(words) or "is what I am looking for"

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "n_named": self.n_named}


def _n_features(kind: Attribute) -> int:
    return 1 if kind.is_ordered else len(kind.values)


def _features(kinds: Sequence[Attribute]) -> list[str]:
    return [
        name
        for kind in kinds
        for name in (
            [kind.name] if kind.is_ordered else [f"{kind.name} {value}" for value in kind.values]
        )
    ]


def _by_rarity(codes: Integers) -> Integers:
    """The place of each attribute: those come first whose commonest value fewest items have."""
    commonest = [np.bincount(column).max() for column in codes.T]
    return np.asarray(np.argsort(np.argsort(commonest, kind="stable"), kind="stable"))


class DirectionCritic:
    """For catalogues without attributes: which way the wanted item lies in the space, coarsely.

    Of the catalogue's principal directions those are named in which the two differ most, with the
    sign alone. It is a stand-in for words: what recommenders learn of it holds for no text.
    """

    name = "principal directions"

    def __init__(self, catalogue: Catalogue, *, n_directions: int = 16, n_named: int = 3) -> None:
        if n_directions < 1 or n_named < 1:
            raise ValueError("n_directions and n_named must be at least 1")
        centred = catalogue.positions - catalogue.positions.mean(axis=0)
        _, _, rows = np.linalg.svd(centred.T @ centred)
        projected = centred @ rows[:n_directions].T
        spread = projected.std(axis=0)
        self.projected = projected[:, spread > 1e-9] / spread[spread > 1e-9]
        self.n_named = min(n_named, self.width)

    @property
    def width(self) -> int:
        return int(self.projected.shape[1])

    def vectors(self, shown: Integers, wanted: Integers) -> Floats:
        gaps = self.projected[wanted] - self.projected[shown]
        first = np.argsort(-np.abs(gaps), axis=1, kind="stable")[:, : self.n_named]
        vectors: Floats = np.zeros_like(gaps)
        np.put_along_axis(vectors, first, np.sign(np.take_along_axis(gaps, first, 1)), axis=1)
        return vectors

    def texts(self, shown: Integers, wanted: Integers) -> list[str]:
        return [_directions(row) for row in self.vectors(shown, wanted)]

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "n_directions": self.width, "n_named": self.n_named}


def _directions(vector: Floats) -> str:
    words = [
        f"{'more' if vector[at] > 0 else 'less'} of direction {at + 1}"
        for at in np.flatnonzero(vector)
    ]
    return " and ".join(words) or "is what I am looking for"


def critic_of(catalogue: Catalogue) -> Critic:
    """The critic that suits the catalogue: by attributes where it has them."""
    return (
        DirectionCritic(catalogue) if catalogue.attributes is None else AttributeCritic(catalogue)
    )
