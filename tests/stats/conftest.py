import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

WORKED_EXAMPLES = Path(__file__).resolve().parents[3] / "shared" / "reference" / "agreement"


@pytest.fixture
def worked_example() -> Callable[[str], tuple[pd.DataFrame, dict[str, Any]]]:
    """A published example by name: its long frame and the published values."""

    def read(name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
        path = WORKED_EXAMPLES / f"{name}.json"
        if not path.is_file():
            pytest.skip(f"worked examples are not at {WORKED_EXAMPLES}")
        example = json.loads(path.read_text())
        return pd.DataFrame(example["rows"], columns=example["columns"]), example["published"]

    return read


def long_frame(table: list[list[float | None]]) -> pd.DataFrame:
    """Rows of (item, annotator, value) from one list of values an annotator, None for none."""
    cells = [
        (item, annotator, value)
        for annotator, values in enumerate(table)
        for item, value in enumerate(values)
        if value is not None
    ]
    return pd.DataFrame(cells, columns=["item", "annotator", "value"])


def columns(frame: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series]:
    return frame["item"], frame["annotator"], frame["value"]


def random_crowd(
    rng: np.random.Generator,
    *,
    n_items: int = 40,
    n_annotators: int = 8,
    n_categories: int = 4,
    share: float = 0.5,
) -> pd.DataFrame:
    """A crowd that labels a share of the items, correctly about two times in three."""
    is_rated = rng.random((n_items, n_annotators)) < share
    item, annotator = np.nonzero(is_rated)
    truth = rng.integers(n_categories, size=n_items)[item]
    guess = rng.integers(n_categories, size=len(item))
    value = np.where(rng.random(len(item)) < 0.6, truth, guess)
    return pd.DataFrame({"item": item, "annotator": annotator, "value": value})


def from_counts(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """The two annotators' labels behind a table of counts, first annotator in rows."""
    cells = [
        (row, column)
        for row, counts in enumerate(table)
        for column, count in enumerate(counts)
        for _ in range(count)
    ]
    first, second = zip(*cells, strict=True)
    return list(first), list(second)
