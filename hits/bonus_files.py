"""Bonuses as a CSV file lists them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from django.utils.translation import gettext as _

from hits.exceptions import BonusFileRefused
from presentation.files import plain_file
from presentation.numbers import read_usd

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
        with plain_file(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing_columns = [name for name in COLUMNS if name not in (rows.fieldnames or [])]
            if missing_columns:
                raise BonusFileRefused(
                    _("{file} lacks the column {columns}.").format(
                        file=path.name, columns=", ".join(missing_columns)
                    ),
                    code="missing_column",
                )
            lines = [_line(path, rows.line_num, row) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BonusFileRefused(
            _("{file} cannot be read: {error}.").format(file=path.name, error=error),
            code="unreadable",
        ) from error
    distinct = {(line.assignment_id, line.reason) for line in lines}
    if len(distinct) < len(lines):
        raise BonusFileRefused(
            _("{file} names an assignment twice for the same reason.").format(file=path.name),
            code="named_twice",
        )
    return lines


def _line(path: Path, number: int, row: dict[str, str]) -> BonusLine:
    try:
        amount = read_usd(row["amount_usd"] or "")
    except ValueError as error:
        raise BonusFileRefused(
            _("Line {number} of {file}: {error} Nothing was paid.").format(
                number=number, file=path.name, error=error
            ),
            code="not_an_amount",
        ) from None
    return BonusLine((row["assignment_id"] or "").strip(), amount, (row["reason"] or "").strip())
