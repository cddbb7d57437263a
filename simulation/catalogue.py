from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from simulation.exceptions import CatalogueUnfit
from stats.arguments import Floats, Integers

# Coordinates are whole multiples of it, and no item is further than 1 from the origin. So products
# of two positions and their sums are exact in double precision in any order: neither the batch nor
# its order changes a ranking.
GRID = 2.0**-23


@dataclass(frozen=True)
class Attribute:
    """What products differ in; ordered values are from least to most."""

    name: str
    values: tuple[str, ...]
    is_ordered: bool = False
    more: str = ""
    less: str = ""


@dataclass(frozen=True)
class Attributes:
    """The attributes of all items; `codes` (n_items, n_attributes) are positions of values."""

    kinds: tuple[Attribute, ...]
    codes: Integers

    def describe(self, item: int) -> dict[str, str]:
        codes = self.codes[item]
        return {kind.name: kind.values[code] for kind, code in zip(self.kinds, codes, strict=True)}


@dataclass(frozen=True)
class Catalogue:
    """Items by position from 0; `source` says what its embeddings are.

    `is_stand_in` marks embeddings that were drawn for items whose own are not at hand: what is
    simulated with them says how the programs behave, and nothing about the products.
    """

    ids: tuple[str, ...]
    embeddings: Floats
    source: str
    attributes: Attributes | None = None
    captions: tuple[str, ...] = ()
    picture: Callable[[int], bytes] | None = field(default=None, compare=False)
    is_stand_in: bool = False

    def __post_init__(self) -> None:
        if self.embeddings.ndim != 2 or len(self.embeddings) != len(self.ids):
            shape = " x ".join(map(str, self.embeddings.shape))
            raise CatalogueUnfit(f"There are {len(self.ids):,} ids, and embeddings of {shape}.")
        if len(self.ids) < 2:
            raise CatalogueUnfit("A catalogue needs at least two items.")
        if not np.isfinite(self.embeddings).all():
            row = int(np.flatnonzero(~np.isfinite(self.embeddings).all(axis=1))[0])
            raise CatalogueUnfit(
                f"The embedding of {self.ids[row]} has a value that is no number.",
                code="not_finite",
            )
        if len(set(self.ids)) < len(self.ids):
            [(twice, _)] = Counter(self.ids).most_common(1)
            raise CatalogueUnfit(f"The id {twice} is in the catalogue twice.", code="id_twice")
        if self.captions and len(self.captions) != len(self.ids):
            raise CatalogueUnfit("A catalogue has a caption for each item, or none.")

    def __len__(self) -> int:
        return len(self.ids)

    def words(self, item: int) -> str:
        if self.captions:
            return self.captions[item]
        return ", ".join(self.attributes.describe(item).values()) if self.attributes else ""

    @cached_property
    def number_of(self) -> dict[str, int]:
        return {one: number for number, one in enumerate(self.ids)}

    @cached_property
    def positions(self) -> Floats:
        """The embeddings on the grid, scaled so that the longest is 1."""
        scaled = below_one(self.embeddings)
        longest = float(np.sqrt((scaled**2).sum(axis=1)).max())
        return on_grid(scaled / (longest or 1.0))

    @cached_property
    def keys(self) -> np.ndarray:
        """64-bit numbers that depend on the id only."""
        digests = (blake2b(one.encode(), digest_size=8).digest() for one in self.ids)
        return np.frombuffer(b"".join(digests), dtype=np.uint64)

    def squared_distance(self, a: Integers, b: Integers) -> Floats:
        gap = self.positions[a] - self.positions[b]
        distance: Floats = np.einsum("...d,...d->...", gap, gap)
        return distance

    def numbers(self, ids: Sequence[str]) -> Integers:
        return np.array([self.number_of.get(one, -1) for one in ids], dtype=np.intp)


def below_one(values: Floats) -> Floats:
    """Divided by a power of 2, which changes no digit: squares of very large or small numbers are
    beyond double precision."""
    _, exponent = np.frexp(np.abs(values).max(initial=0.0))
    return np.asarray(np.ldexp(values, -exponent))


def on_grid(values: Floats) -> Floats:
    return np.asarray(np.rint(values / GRID) * GRID)


STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# Random numbers that depend only on seed, target and turn. A generator would give them in the order
# of calls, so that another batch or order of targets would change every dialogue. Here each is a
# hash of its coordinates (the finalizer of SplitMix64; G. L. Steele, D. Lea and C. H. Flood, 2014.
# Fast splittable pseudorandom number generators. OOPSLA 2014, 453-472).
# The purpose of a number: the same coordinates give another number for each.
SWITCH, LEAVE, START, SHARE, ORDER, SPLIT = range(6)


def hashed(*coordinates: Any) -> np.ndarray:
    """64 bits for each combination of coordinates, which are whole numbers that broadcast."""
    state = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for coordinate in coordinates:
            state = _mixed((state + STEP) ^ _mixed(np.asarray(coordinate).astype(np.uint64)))
    return state


def uniform(*coordinates: Any) -> Floats:
    """From 0 to below 1, one for each combination of coordinates."""
    return (hashed(*coordinates) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = bits + STEP
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return np.asarray(bits ^ (bits >> np.uint64(31)))
