import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import FileReadings, ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from simulation.catalogue import START, Catalogue, uniform
from simulation.exceptions import TargetsUnfit
from stats.arguments import Integers

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
