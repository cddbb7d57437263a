from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import nan
from pathlib import Path

import numpy as np

from annotation.exceptions import ImportRefused
from annotation.readers.report import ReadingReport
from annotation.readers.rows import Row
from annotation.readers.tables import kind_of
from error_codes import CodedText
from retrieval.exceptions import PoolFileFaults
from retrieval.pools.catalogue import require_name
from retrieval.pools.records import Target
from retrieval.text_lines import each_table_row, each_text_line, numbered_fault
from retrieval.trec_files import Run
from stats.arguments import Floats

# The same as the most candidates of a pool.
MOST_TARGETS = 1_000_000


def read_targets(
    path: Path,
    *,
    topic: str = "topic",
    target: str = "target",
    report: ReadingReport | None = None,
) -> list[Target]:
    """The targets of a file; where it has no column for the topic, that is the target's name.

    A file whose name ends in .txt or .ids has a target a line.
    """
    return [one for one, _, _ in _read(path, topic, target, None, report=report)]


def read_target_values(
    path: Path,
    column: str,
    *,
    topic: str = "topic",
    target: str = "target",
    is_required: bool = True,
    report: ReadingReport | None = None,
) -> tuple[list[Target], Floats]:
    """The targets of a file, and the number that a column of it has for each.

    NaN where the column is empty, or where there is none and it is not required.
    """
    read = _read(path, topic, target, column, is_required=is_required, report=report)
    return [one for one, _, _ in read], np.array([value for _, value, _ in read])


def line_of_topic(path: Path, topic: str) -> int:
    return next(line for one, _, line in _read(path, "topic", "target", None) if one.topic == topic)


def _read(
    path: Path,
    topic: str,
    target: str,
    column: str | None,
    *,
    is_required: bool = True,
    report: ReadingReport | None = None,
) -> list[tuple[Target, float, int]]:
    lines: dict[str, int] = {}
    read: list[tuple[Target, float, int]] = []
    faults: list[tuple[int | None, str]] = []
    for row in _rows(path, [target, *([column] if column and is_required else [])], report):
        try:
            one = _target(row, topic, target)
            value = row.number_or_nan(column) if column else nan
        except ImportRefused as refused:
            faults.append(numbered_fault(refused))
            continue
        if (line := lines.setdefault(one.topic, row.line)) != row.line:
            faults.append((row.line, f"topic {one.topic} is in line {line} already."))
        read.append((one, value, row.line))
    if faults:
        raise PoolFileFaults(path, faults)
    return read


def targets_of_runs(runs: Sequence[Run], documents: Sequence[str] = ()) -> list[Target]:
    """The topics of all runs; a topic that has the name of a document is about that document."""
    known = set(documents)
    topics = dict.fromkeys(topic for run in runs for topic in run.topics)
    return [Target(topic, topic if topic in known else "") for topic in topics]


def _rows(path: Path, columns: Sequence[str], report: ReadingReport | None) -> list[Row]:
    if kind_of(path) not in (".txt", ".ids"):
        return _few(path, each_table_row(path, PoolFileFaults, columns, report=report))
    lines = each_text_line(path, PoolFileFaults, report=report)
    rows = _few(path, (Row(path, line, {columns[0]: text}) for line, text in lines if text.strip()))
    if not rows:
        raise PoolFileFaults(path, [(None, CodedText("it holds no targets.", code="no_targets"))])
    return rows


def _few(path: Path, rows: Iterator[Row]) -> list[Row]:
    few = list(islice(rows, MOST_TARGETS + 1))
    if len(few) > MOST_TARGETS:
        problem = CodedText(
            f"it has more than {MOST_TARGETS:,} targets. Split it.", code="too_many_targets"
        )
        raise PoolFileFaults(path, [(few[-1].line, problem)])
    return few


def _target(row: Row, topic: str, target: str) -> Target:
    docno = require_name(row, target) if row.optional(target) else ""
    name = require_name(row, topic) if row.optional(topic) or not docno else docno
    return Target(name, docno)
