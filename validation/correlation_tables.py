"""Correlations and comparisons of metrics as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from presentation.text_tables import text_table

Record = Mapping[str, Any]
CORRELATIONS = ("by", "metric", "level", "coefficient", "value", "interval", "used", "notes")
COMPARISONS = (
    "by",
    "level",
    "coefficient",
    "metrics",
    "test",
    "delta",
    "interval",
    "p",
    "p_holm",
    "p_bh",
    "notes",
)


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
        yield as_text(vars(self))


def as_text(records: Mapping[str, Sequence[Record]]) -> str:
    """A table of the correlations with its notes and, if there are any, one of comparisons."""
    text = text_table(CORRELATIONS, [_correlation(row) for row in records["correlations"]])
    notes = dict.fromkeys(note for row in records["correlations"] for note in row["notes"])
    text += "".join(f"\nNote: {note}." for note in notes)
    if records["comparisons"]:
        rows = [_comparison(row) for row in records["comparisons"]]
        text += "\n\n" + text_table(COMPARISONS, rows)
    return text


def _correlation(row: Record) -> tuple[str, ...]:
    return (
        row["by"] or "(all)",
        row["metric"],
        row["level"],
        row["coefficient"],
        _number(row["value"]),
        _interval(row),
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


def _comparison(row: Record) -> tuple[str, ...]:
    numbers = (_number(row[name]) for name in ("p", "p_holm", "p_bh"))
    metrics = f"{row['metric_a']} - {row['metric_b']}"
    return (
        row["by"] or "(all)",
        row["level"],
        row["coefficient"],
        metrics,
        row["test"],
        _number(row["delta"]),
        _interval(row) if "ci_low" in row else "",
        *numbers,
        _comparison_notes(row),
    )


def _comparison_notes(row: Record) -> str:
    """Of what a comparison speaks, and why it is undecided."""
    notes = [row["estimand"]] if row.get("estimand") else []
    return ", ".join(notes + ([f"undecided: {row['reason']}"] if row["reason"] else []))


def _interval(row: Record) -> str:
    if row["ci_low"] is None:
        return ""
    return f"[{_number(row['ci_low'])}, {_number(row['ci_high'])}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
