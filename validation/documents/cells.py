"""Records turned into the numbers of a table, each with its signature."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from django.utils.translation import gettext_noop as _

from presentation.documents import Cell, Number, P, Row
from validation.analysis.records import ComparisonRecord, CorrelationRecord
from validation.documents.signatures import number_signature
from validation.documents.terms import reason_in_words
from validation.results import Results

UNKNOWN = _("not computed")


def correlation(
    results: Results,
    record: CorrelationRecord | None,
    *,
    scale: float = 1,
    decimals: int = 2,
    with_interval: bool = True,
) -> Number:
    """A correlation's value times `scale`, with its interval if asked; a dash for no record."""
    if record is None:
        return Number(None, reason=UNKNOWN)
    low, high = (record.ci_low, record.ci_high) if with_interval else (None, None)
    return Number(
        _times(record.value, scale),
        decimals,
        _times(low, scale),
        _times(high, scale),
        reason_in_words(record.reason),
        signed(results, "correlation", record),
    )


def signed(results: Results, kind: str, record: object, **instead: object) -> str:
    """The signature of a record's value."""
    return number_signature(kind, record, results.settings, results.fingerprint, **instead)


def best_in_columns(rows: Sequence[Row], *, keys: int = 0) -> list[Row]:
    """The rows with the greatest number of each column marked, among those that share keys.

    The first `keys` cells of a row name its block (a question, say).
    """
    marked = [list(row) for row in rows]
    blocks: dict[tuple[Cell, ...], list[int]] = {}
    for number, row in enumerate(rows):
        blocks.setdefault(row[:keys], []).append(number)
    for block in blocks.values():
        for column in range(len(rows[block[0]])):
            _mark(marked, block, column)
    return [tuple(row) for row in marked]


def _mark(rows: list[list[Cell]], block: list[int], column: int) -> None:
    numbers = {at: cell for at in block if isinstance(cell := rows[at][column], Number)}
    known = {at: cell.value for at, cell in numbers.items() if cell.value is not None}
    if len(known) < 2:
        return
    greatest = max(known.values())
    for at, value in known.items():
        if value == greatest:
            rows[at][column] = replace(numbers[at], is_best=True)


def p_cell(results: Results, record: ComparisonRecord, name: Literal["p", "p_holm", "p_bh"]) -> P:
    reason = reason_in_words(record.reason)
    return P(getattr(record, name), reason, signed(results, f"comparison.{name}", record))


def _times(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
