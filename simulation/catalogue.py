import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import FileReadings, ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from simulation.exceptions import CatalogueUnfit, TargetsUnfit
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
        return on_grid(scaled / (float(np.sqrt((scaled**2).sum(axis=1)).max()) or 1.0))

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


NONE = -1


@dataclass(frozen=True)
class Targets:
    """One dialogue a row: the target, its alternatives in the order of judgment, the first item.

    `alternatives` (n_targets, widest) is filled up with -1. What the judgments say is kept:
    a target may be among its own alternatives, and an alternative may come twice. `rejected` were
    judged and not accepted. `start` is None where each seed draws a first item of its own.
    """

    target: Integers
    alternatives: Integers
    start: Integers | None
    rejected: Integers

    def __len__(self) -> int:
        return len(self.target)

    @cached_property
    def accepted(self) -> Integers:
        """The target and its alternatives, each once, padded with -1."""
        return _once(np.column_stack([self.target, self.alternatives]))

    def starts(self, catalogue: Catalogue, seeds: Sequence[int]) -> Integers:
        """(n_seeds, n_targets) first items: those that are named, or drawn by (seed, target)."""
        if self.start is not None:
            return np.broadcast_to(self.start, (len(seeds), len(self)))
        return np.stack([drawn_starts(catalogue, self.target, seed=seed) for seed in seeds])

    def part(self, rows: Integers) -> Self:
        return replace(
            self,
            target=self.target[rows],
            alternatives=self.alternatives[rows],
            start=None if self.start is None else self.start[rows],
            rejected=self.rejected[rows],
        )

    def without_faults(self) -> Self:
        """Without targets among their own alternatives, and without repetitions."""
        others = np.where(self.alternatives == self.target[:, None], NONE, self.alternatives)
        return replace(self, alternatives=_once(others))


def _once(items: Integers) -> Integers:
    """Each row's distinct items in their order, moved to the left."""
    rows = [list(dict.fromkeys(item for item in row if item != NONE)) for row in items.tolist()]
    return filled(rows)


def filled(rows: Sequence[Sequence[int]]) -> Integers:
    table = np.full((len(rows), max(1, *map(len, rows)) if rows else 1), NONE, dtype=np.intp)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table


def targets_of(
    catalogue: Catalogue,
    accepted: Mapping[str, Iterable[str]],
    *,
    rejected: Mapping[str, Iterable[str]] | None = None,
    starts: Mapping[str, str] | None = None,
) -> Targets:
    if not accepted:
        raise TargetsUnfit("There is no target with judgments.")
    targets = list(accepted)
    rows = [[target, *accepted[target]] for target in targets]
    others = [list((rejected or {}).get(target, ())) for target in targets]
    named = {one for row in (*rows, *others) for one in row}
    unknown = sorted(named - catalogue.number_of.keys())
    if unknown:
        raise TargetsUnfit(
            f"{len(unknown):,} judged items are not in the catalogue ({catalogue.source}): "
            f"{', '.join(unknown[:5])}. Judge items of this catalogue, or name the one they are of."
        )
    numbers = [catalogue.numbers(row).tolist() for row in rows]
    target = np.array([row[0] for row in numbers], dtype=np.intp)
    start = None if starts is None else _named_starts(catalogue, targets, starts)
    rejected_rows = filled([catalogue.numbers(row).tolist() for row in others])
    return Targets(target, filled([row[1:] for row in numbers]), start, rejected_rows)


def drawn_starts(catalogue: Catalogue, target: Integers, *, seed: int) -> Integers:
    """For each target any other item, by (seed, target)."""
    steps = uniform(START, seed, catalogue.keys[target]) * (len(catalogue) - 1)
    return np.asarray((target + 1 + steps.astype(np.intp)) % len(catalogue))


def _named_starts(
    catalogue: Catalogue, targets: Sequence[str], starts: Mapping[str, str]
) -> Integers:
    for target in targets:
        if target not in starts:
            raise TargetsUnfit(f"The target {target} has no first item. Name one for each target.")
        if starts[target] not in catalogue.number_of:
            raise TargetsUnfit(
                f"The first item {starts[target]} of target {target} is not in the catalogue."
            )
    return catalogue.numbers([starts[target] for target in targets])


def from_judgments(
    topics: Sequence[str],
    documents: Sequence[str],
    topic: Integers,
    document: Integers,
    grade: Integers,
    *,
    relevant_from: int = 1,
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Ids of what was judged relevant to each target, and of what was not, by line of the qrels.

    A target of which nothing is relevant has no alternative, and stays. A grade below 0 says that
    nobody judged.
    """
    accepted: dict[str, list[str]] = {name: [] for name in topics}
    rejected: dict[str, list[str]] = {name: [] for name in topics}
    for row, column, value in zip(topic.tolist(), document.tolist(), grade.tolist(), strict=True):
        if value >= 0:
            kept = accepted if value >= relevant_from else rejected
            kept[topics[row]].append(documents[column])
    return accepted, rejected


DIALOGUE = re.compile(r"u(\d+(?:,\d+)+)-t\d+")
ALTERNATIVES_COLUMN, START_COLUMNS = "target_alt_id", ("qid", "docid")


def read_dialogues(
    catalogue: Catalogue,
    alternatives: Path,
    starts: Path,
    *,
    readings: FileReadings | None = None,
) -> Targets:
    """Targets and alternatives in the order of their judgment, with the item shown first.

    Nothing is mended: a target that is among its own alternatives stays there.
    """
    readings = readings or FileReadings()
    first = {
        row.text("qid"): _number(starts, row.line, row.text("docid"))
        for row in _rows(starts, START_COLUMNS, readings.add(starts))
    }
    dialogues: dict[str, list[int]] = {}
    for row in _rows(alternatives, (ALTERNATIVES_COLUMN,), readings.add(alternatives)):
        name, line = row.text(ALTERNATIVES_COLUMN), row.line
        match = DIALOGUE.fullmatch(name)
        if match is None:
            raise _fault(alternatives, line, ALTERNATIVES_COLUMN, f"{name!r} is not u1,2-t0")
        if name not in first:
            raise _fault(alternatives, line, ALTERNATIVES_COLUMN, f"{starts.name} lacks {name}")
        dialogues[name] = [_number(alternatives, line, each) for each in match[1].split(",")]
    if not dialogues:
        raise TargetsUnfit(f"{alternatives.name} has no dialogue.")
    highest = max(max(max(row), first[name]) for name, row in dialogues.items())
    if highest >= len(catalogue):
        raise TargetsUnfit(
            f"{alternatives.name} names item {highest}, and the catalogue ({catalogue.source}) "
            f"ends at {len(catalogue) - 1}. Take the catalogue that its positions are of."
        )
    rows = list(dialogues.values())
    start = np.array([first[name] for name in dialogues], dtype=np.intp)
    target = np.array([row[0] for row in rows], dtype=np.intp)
    return Targets(target, filled([row[1:] for row in rows]), start, filled([[] for _ in rows]))


def read_starts(path: Path, *, report: ReadingReport | None = None) -> dict[str, str]:
    rows = _rows(path, ("target", "start"), report)
    return {row.text("target"): row.text("start") for row in rows}


def _rows(path: Path, columns: tuple[str, ...], report: ReadingReport | None) -> Iterator[Row]:
    try:
        yield from each_row(path, columns, report=report)
    except ImportRefused as refused:
        raise TargetsUnfit(refused.statement, code=refused.code) from None


def _number(path: Path, line: int, text: str) -> int:
    if not text.isdecimal():
        raise _fault(path, line, "docid", f"{text!r} is not the position of an item")
    return int(text)


def _fault(path: Path, line: int, field: str, problem: str) -> TargetsUnfit:
    return TargetsUnfit(f"Line {line} of {path.name}, {field}: {problem}.")
