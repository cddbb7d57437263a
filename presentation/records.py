"""Records of numbers as plain values, for JSON and pages."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def plain_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record for JSON: None where a number is undefined."""
    return {name: _plain(value) for name, value in record.items()}


def plain_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table, each a record for JSON."""
    rows = table.to_dict(orient="records")
    return [plain_values({str(name): value for name, value in row.items()}) for row in rows]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and isnan(value) else value
