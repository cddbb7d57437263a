"""Bonuses as a CSV file lists them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from hits.exceptions import BonusFileRefused

COLUMNS = ("assignment_id", "amount_usd", "reason")


@dataclass(frozen=True)
class BonusLine:
    """One bonus to pay."""

    assignment_id: str
    amount_usd: Decimal
    reason: str


def read_bonuses(path: Path) -> list[BonusLine]:
    """Every line of the file, or BonusFileRefused with what is wrong and where."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or [])]
            if missing:
                raise BonusFileRefused(f"{path.name} lacks the column {', '.join(missing)}.")
            lines = [_line(path, number, row) for number, row in enumerate(rows, start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BonusFileRefused(f"{path.name} cannot be read: {error}.") from error
    repeated = {(line.assignment_id, line.reason) for line in lines}
    if len(repeated) < len(lines):
        raise BonusFileRefused(f"{path.name} names an assignment twice for the same reason.")
    return lines


def _line(path: Path, number: int, row: dict[str, str]) -> BonusLine:
    try:
        amount = Decimal((row["amount_usd"] or "").strip().removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        problem = f"'{row['amount_usd']}' is not an amount of dollars"
        raise BonusFileRefused(f"Line {number} of {path.name}: {problem}. Nothing was paid.")
    return BonusLine(row["assignment_id"].strip(), amount, (row["reason"] or "").strip())
