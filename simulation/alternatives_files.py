"""Files of Fashion-AlterEval's layout: which items stand for a target, and what is shown first.

A dialogue's id is ``u<target>,<alternative>,…-t0``, of items' positions in the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.report import FileReadings, ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from simulation.catalogue import Catalogue
from simulation.exceptions import TargetsUnfit
from simulation.targets import Targets, filled

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
    """The first item's ID for each target's ID: a table with the columns target and start."""
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
