"""Writes prepared.json: what pages of a running site have that only tools of development can make.

    python -m config.documentation.prepared

Formulas become MathML, and marks of what was measured a sentence of the benchmark's rows. Neither
the library for the one nor the rows are at a site; a test says when the file is due.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import django

from config.documentation.rendered import mathml


def prepared() -> dict[str, dict[str, str]]:
    # Needs the settings.
    from config.documentation.site_pages import DOCS, formulas_of

    texts = [path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))]
    formulas = sorted({one for text in texts for one in formulas_of(text)})
    marks = sorted({match[0] for text in texts for match in MARKER.finditer(text)})
    return {
        "formulas": {one: mathml(one) for one in formulas},
        "measured": {one: with_coverage(one) for one in marks},
    }


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    # Needs the settings.
    from config.documentation.site_pages import PREPARED

    content = json.dumps(prepared(), indent=1, ensure_ascii=False)
    PREPARED.write_text(f"{content}\n", "utf-8")


ROWS = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage_rows.jsonl"
MARKER = re.compile(r"<!-- measured: ([\w, ]+) -->")
# Where more studies have no interval than have one, those that have are no random part.
MOSTLY_REFUSED = 0.5
Row = Mapping[str, Any]
# What the benchmark's parts are of; the table of all rows has them by their own names.
SUBJECTS = {
    "kappa": "kappa of two annotators",
    "kappa_clusters": "kappa where items come in clusters",
    "percent": "shares in which annotators agree",
    "alpha": "Krippendorff's alpha",
    "agreement_of_many": "other coefficients of many annotators",
    "systems": "differences of systems' mean ratings",
    "equal_systems": "many systems whose p is adjusted",
    "ordinal_systems": "systems on ordinal scales",
    "skewed_systems": "systems rated at an end of the scale",
    "preferences": "systems that are compared",
    "crowd_ratings": "mean ratings by crowds of unequal work",
    "crowd_ordinal": "ordinal ratings by crowds of unequal work",
    "crowd_preferences": "preferences of crowds of unequal work",
    "correlation": "correlations for these systems",
    "correlation_of_many_cells": "pooled correlations of thousands of outputs",
    "new_systems": "correlations for new systems",
    "ceilings": "ceilings, and shares of them",
    "metrics": "differences of metrics, on these systems",
    "metrics_drawn": "differences of metrics, for new systems",
    "prediction_powered": "means from few ratings and many scores",
    "crowd_powered": "the same, by crowds of unequal work",
    "looks": "the same, looked at as ratings come in",
    "powered_quantiles": "quantiles from few ratings and many scores",
    "powered_correlations": "correlations from few ratings and many scores",
    "rogan_gladen": "shares corrected for a judge's errors",
    "drift": "drift of a judge",
    "mcnemar": "differences of two judges' accuracies",
    "alt_test": "the alternative annotator test",
    "topics": "means and differences over topics",
    "pool_bias": "losses of systems that were not pooled",
    "rankings": "agreement of two rankings",
    "overlap": "overlap of two assessors",
    "assessors": "rankings under other assessors",
    "switching": "simulated users against people",
    "outcomes": "recommenders with people and with simulated users",
}


def with_coverage(markdown: str, address: str = "coverage.md") -> str:
    return MARKER.sub(lambda match: sentence(match[1].split(", "), address), markdown)


@cache
def _rows() -> tuple[Row, ...]:
    return tuple(map(json.loads, ROWS.read_text("utf-8").splitlines()))


def sentence(parts: Iterable[str], address: str) -> str:
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
    return f"{SUBJECTS[part]} (`{part}`): {', '.join(texts)}" if texts else ""


def _of_tests(part: str, rows: list[Row]) -> str:
    rejected = [row["first"] for row in rows if row["kind"] == "test" and not row["noted"]]
    if not rejected:
        return ""
    subject = f"{SUBJECTS[part]} (`{part}`)"
    return f"tests of {subject} at .05 reject {_span(rejected)} where nothing differs"


def _settings(values: list[float]) -> str:
    return f"{len(values)} setting{'s' if len(values) > 1 else ''}"


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    if low == high:
        return low
    return f"{low} to {high} (mean {fmean(values):.3f})"


if __name__ == "__main__":
    main()
