"""The values of a chart in a few words, for who does not see it: its accessible name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from presentation.numbers import format_interval, format_number

if TYPE_CHECKING:
    import pandas as pd


MOST_NAMED = 8
"""Values that may be listened to one by one; of more, the ends are named."""


def values_in_words(frame: pd.DataFrame) -> str:
    """Each `name` with its value and interval, or the lowest and the highest of many."""
    rows = frame.to_dict(orient="records")
    text = "{values}."
    if len(rows) > MOST_NAMED:
        rows = sorted(rows, key=lambda row: float(row["value"]))[:: len(rows) - 1]
        text = _("Of {n} values the lowest and the highest: {values}.")
    said = (f"{row['name']} {_with_interval(row)}" for row in rows)
    return text.format(n=f"{len(frame):,}", values="; ".join(said))


def _with_interval(row: Mapping[Hashable, Any]) -> str:
    import pandas as pd

    low, high = (None if pd.isna(row[name]) else row[name] for name in ("ci_low", "ci_high"))
    return f"{format_number(row['value'])} {format_interval(low, high)}".strip()


def range_in_words(values: pd.Series[Any]) -> str:
    """From the lowest to the highest, or the one value that all have; a dash where none has."""
    said = list(dict.fromkeys(format_number(one) for one in sorted(values.dropna())))
    if len(said) < 2:
        return said[0] if said else format_number(None)
    return _("{low} to {high}").format(low=said[0], high=said[-1])


def ranges_in_words(frame: pd.DataFrame) -> str:
    """Over users, the means of each `recommender`."""
    by_name = frame.groupby("recommender", sort=False)["mean"]
    said = (f"{name} {range_in_words(means)}" for name, means in by_name)
    return "; ".join(said)
