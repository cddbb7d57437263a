"""Records of numbers grouped, and as plain values for JSON and pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import isnan
from typing import Any, TypeVar

from presentation.libraries import np, pd

K = TypeVar("K")
T = TypeVar("T")


def group_values(pairs: Iterable[tuple[K, T]]) -> defaultdict[K, list[T]]:
    """The values of each key; keys and values are in the order of the pairs."""
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
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
