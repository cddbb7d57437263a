"""How well the annotators of a plain file of labels agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotation.readers.columns import unusable
from annotation.readers.label_tables import Kind, LabelTable, read_labels
from annotation.readers.policies import Reading
from annotation.readers.shapes import Columns
from annotation.units import KAPPA_WEIGHTS, MOST_STEPS, Level
from presentation.counts import count_of
from presentation.records import plain_records, plain_values
from stats.agreement import Agreement, coefficients_at_level, pairwise_kappa
from stats.agreement.intervals import CiChoice

if TYPE_CHECKING:
    import pandas as pd


KINDS: dict[Level, Kind] = {
    "nominal": "text",
    "ordinal": "number",
    "interval": "number",
    "ratio": "amount",
}


@dataclass(frozen=True)
class FileAgreement:
    level: Level
    n_items: int
    n_annotators: int
    n_judgments: int
    coefficients: tuple[Agreement, ...]
    pairs: pd.DataFrame

    def record(self) -> dict[str, Any]:
        """As plain values for JSON; undefined numbers are None, with a reason."""
        return {
            "n_items": self.n_items,
            "n_annotators": self.n_annotators,
            "n_judgments": self.n_judgments,
            "level": self.level,
            "coefficients": [
                plain_values(asdict(coefficient)) for coefficient in self.coefficients
            ],
            "pairs": plain_records(self.pairs),
        }

    def lines(self) -> Iterator[str]:
        """A table for a person: what is defined with its interval, then what is not and why."""
        yield (
            f"{count_of(self.n_judgments, 'label')} of {count_of(self.n_items, 'item')} by "
            f"{count_of(self.n_annotators, 'annotator')}, {self.level}"
        )
        yield f"{'':24}{'value':>8}{'se':>8}   interval           items"
        for row in self.coefficients:
            if row.is_defined:
                yield _line(row)
        for row in self.coefficients:
            if not row.is_defined:
                yield f"{row.name:24} undefined: {str(row.reason).replace('_', ' ')}"
        warnings = dict.fromkeys(text for row in self.coefficients for text in row.warnings)
        yield from (f"Note: {warning}." for warning in warnings)
        if len(self.pairs):
            pairs = count_of(
                len(self.pairs), "pair of annotators shares", "pairs of annotators share"
            )
            yield f"{pairs} items; --json lists their kappas."


def agree_on_file(
    path: Path,
    columns: Columns,
    *,
    level: Level,
    ci: CiChoice = "jackknife",
    seed: int = 0,
    reading: Reading | None = None,
) -> FileAgreement:
    table = read_labels(path, columns, kind=KINDS[level], reading=reading)
    try:
        coefficients = coefficients_at_level(
            table.items,
            table.annotators,
            table.values,
            level=level,
            clusters=table.clusters,
            ci=ci,
            rng=seed,
        )
    except ValueError as error:
        raise unusable(path, error) from None
    return FileAgreement(
        level=level,
        n_items=len(set(table.items)),
        n_annotators=len(set(table.annotators)),
        n_judgments=len(table.items),
        coefficients=coefficients,
        pairs=_pairs(table, level),
    )


def _pairs(table: LabelTable, level: Level) -> pd.DataFrame:
    """Kappas where equality of labels, or steps between them, mean something."""
    import pandas as pd

    if level not in KAPPA_WEIGHTS or (level == "ordinal" and len(set(table.values)) > MOST_STEPS):
        return pd.DataFrame()
    weights = KAPPA_WEIGHTS[level]
    return pairwise_kappa(table.items, table.annotators, table.values, weights=weights)


def _line(row: Agreement) -> str:
    if isnan(row.se):
        return f"{row.name:24}{row.value:8.4f}{'':8}   {'no interval':18}{row.n_items:8d}"
    interval = f"[{row.ci_low:7.4f}, {row.ci_high:7.4f}]"
    return f"{row.name:24}{row.value:8.4f}{row.se:8.4f}   {interval:18}{row.n_items:8d}"
