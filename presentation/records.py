"""Records of numbers grouped, and as plain values for JSON and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isnan
from typing import Any, TypeVar

import numpy as np

from presentation.libraries import pd

K = TypeVar("K")
T = TypeVar("T")


def group_by(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The rows of each key, in the order of their first appearance."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def plain_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record for JSON: None where a number is undefined."""
    return {name: _plain(value) for name, value in record.items()}


def plain_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows = table.to_dict(orient="records")
    return [plain_values({str(name): value for name, value in row.items()}) for row in rows]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and isnan(value) else value
