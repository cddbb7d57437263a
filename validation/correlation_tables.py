"""Correlations and comparisons of metrics as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from presentation.documents import Cell, Number
from presentation.text_tables import text_report, text_table

Record = Mapping[str, Any]
CORRELATIONS = ("by", "metric", "level", "coefficient", "value", "used", "notes")
P_NAMES = ("p", "p_holm", "p_bh")
COMPARISONS = ("by", "level", "coefficient", "metrics", "test", "delta", *P_NAMES, "notes")


@dataclass(frozen=True)
class CorrelationTables:
    """The correlations of a file's metrics, and the comparisons of its metrics."""

    correlations: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return vars(self)

    def lines(self) -> Iterator[str]:
        """The tables with their notes."""
        yield correlations_text(vars(self))


def correlations_text(records: Mapping[str, Sequence[Record]]) -> str:
    """A table of the correlations with its notes and, if there are any, one of comparisons."""
    parts = [text_table(CORRELATIONS, map(_correlation, records["correlations"]))]
    notes = dict.fromkeys(note for row in records["correlations"] for note in row["notes"])
    if records["comparisons"]:
        parts.append(text_table(COMPARISONS, map(_comparison, records["comparisons"])))
    return text_report(parts, notes)


def _correlation(row: Record) -> tuple[Cell, ...]:
    return (
        row["by"] or "(all)",
        row["metric"],
        row["level"],
        row["coefficient"],
        _number(row, "value"),
        f"{row['n_used']}/{row['n_groups']}",
        _notes(row),
    )


def _notes(row: Record) -> str:
    """Why a value is undefined, what was left out, and an interval that is no bootstrap."""
    counts = {
        "constant human": row["n_constant_human"],
        "constant metric": row["n_constant_metric"],
        "too few": row["n_too_few"],
        "cells missing": row["n_missing"],
    }
    notes = [f"undefined: {row['reason']}"] if row["reason"] else []
    notes += [f"{count} {name}" for name, count in counts.items() if count]
    if row["n_zeroed"]:
        notes.append(f"{row['n_zeroed']} counted as 0")
    if row["ci_reason"] and row["value"] is not None:
        notes.append(f"no interval: {row['ci_reason']}")
    if row["ci_method"].startswith("fisher"):
        notes.append(row["ci_method"])
    return ", ".join(notes)


def _comparison(row: Record) -> tuple[Cell, ...]:
    return (
        row["by"] or "(all)",
        row["level"],
        row["coefficient"],
        f"{row['metric_a']} - {row['metric_b']}",
        row["test"],
        _number(row, "delta"),
        *(Number(row[name], 3) for name in P_NAMES),
        _comparison_notes(row),
    )


def _comparison_notes(row: Record) -> str:
    """Of what a comparison speaks, and why it is undecided."""
    notes = [row["estimand"]] if row.get("estimand") else []
    return ", ".join(notes + ([f"undecided: {row['reason']}"] if row["reason"] else []))


def _number(row: Record, name: str) -> Number:
    """With its interval; the notes say why either is undefined."""
    return Number(row[name], 3, row.get("ci_low"), row.get("ci_high"))
