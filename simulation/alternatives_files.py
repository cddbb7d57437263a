"""Files of Fashion-AlterEval's layout: which items stand for a target, and what is shown first.

A dialogue's id is ``u<target>,<alternative>,…-t0``, of items' positions in the catalogue.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

from presentation.files import plain_file, reason_of
from simulation.catalogue import Catalogue
from simulation.exceptions import TargetsUnfit
from simulation.targets import Targets, filled

DIALOGUE = re.compile(r"u(\d+(?:,\d+)+)-t\d+")
ALTERNATIVES_COLUMN, START_COLUMNS = "target_alt_id", ("qid", "docid")


def read_dialogues(catalogue: Catalogue, alternatives: Path, starts: Path) -> Targets:
    """Targets and alternatives in the order of their judgment, with the item shown first.

    Nothing is mended: a target that is among its own alternatives stays there.
    """
    first = {
        row["qid"]: _number(starts, line, row["docid"])
        for line, row in _rows(starts, START_COLUMNS)
    }
    dialogues: dict[str, list[int]] = {}
    for line, row in _rows(alternatives, (ALTERNATIVES_COLUMN,)):
        name = row[ALTERNATIVES_COLUMN]
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


def read_starts(path: Path) -> dict[str, str]:
    """The id of the first item for each target's id: a CSV with the columns target and start."""
    return {row["target"]: row["start"] for _, row in _rows(path, ("target", "start"))}


def _rows(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    try:
        with plain_file(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise TargetsUnfit(f"{path.name} has no column {missing[0]}.")
            return [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TargetsUnfit(f"{path.name} cannot be read: {reason_of(error)}.") from None


def _number(path: Path, line: int, text: str) -> int:
    if not text.isdecimal():
        raise _fault(path, line, "docid", f"{text!r} is not the position of an item")
    return int(text)


def _fault(path: Path, line: int, field: str, problem: str) -> TargetsUnfit:
    return TargetsUnfit(f"Line {line} of {path.name}, {field}: {problem}.")
