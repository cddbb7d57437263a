"""How often an interval holds the truth, in a sentence, of the rows that benchmarks/coverage kept.

A page asks for it where it explains the interval: `<!-- measured: kappa, alpha -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

ROWS = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage_rows.jsonl"
MARKER = re.compile(r"<!-- measured: ([\w, ]+) -->")
# Where more studies have no interval than have one, those that have are no random part.
MOSTLY_REFUSED = 0.5
Row = Mapping[str, Any]


def with_coverage(markdown: str, address: str = "coverage.md") -> str:
    """The page with a sentence for each marker."""
    return MARKER.sub(lambda match: sentence(match[1].split(", "), address), markdown)


@cache
def _rows() -> tuple[Row, ...]:
    return tuple(map(json.loads, ROWS.read_text("utf-8").splitlines()))


def sentence(parts: Iterable[str], address: str) -> str:
    """What was measured of these parts of the benchmark; ValueError where one has no rows."""
    said = []
    for part in parts:
        rows = [row for row in _rows() if row["part"] == part and row["none"] <= MOSTLY_REFUSED]
        if not rows:
            raise ValueError(f"parts must be of the coverage benchmark, got {part!r}")
        said += [_of_intervals(part, rows), _of_tests(part, rows)]
    return f"**Measured** ([all rows]({address})): {'; '.join(filter(None, said))}."


def _of_intervals(part: str, rows: list[Row]) -> str:
    kept = [row for row in rows if row["kind"] == "interval"]
    quiet = [row["first"] for row in kept if not row["noted"]]
    noted = [row["first"] for row in kept if row["noted"]]
    texts = []
    if quiet:
        texts.append(f"{_settings(quiet)} hold the truth {_span(quiet)}")
    if noted:
        verb = "with a note that the study is small" if quiet else "all with a note, hold it"
        texts.append(f"{_settings(noted)} {verb} {_span(noted)}")
    return f"`{part}`: {', '.join(texts)}" if texts else ""


def _of_tests(part: str, rows: list[Row]) -> str:
    rejected = [row["first"] for row in rows if row["kind"] == "test" and not row["noted"]]
    if not rejected:
        return ""
    return f"`{part}` tests at .05 reject {_span(rejected)} where nothing differs"


def _settings(values: list[float]) -> str:
    return f"{len(values)} setting{'s' if len(values) > 1 else ''}"


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    if low == high:
        return low
    return f"{low} to {high} (mean {fmean(values):.3f})"
