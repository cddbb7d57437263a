"""Charts of a collection's results, as their pages and the addresses of pictures read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from presentation.theme import Picture
from retrieval.charts.rankings import means_by_qrels, means_in_words

if TYPE_CHECKING:
    import pandas as pd


MOST_DRAWN = 5
"""Qrels that a chart can tell apart."""
MEANS = ("run", "qrels", "rank", "mean", "ci_low", "ci_high")
Value = str | int | float | None


@dataclass(frozen=True)
class Chart:
    """A chart as `console/_chart.html` and the addresses of pictures read it."""

    name: str
    title: str
    words: str
    frame: pd.DataFrame
    draw: Callable[[], Picture]


def means_chart(
    name: str, title: str, measure: str, rows: Sequence[tuple[Value, ...]]
) -> list[Chart]:
    """The runs' means under several qrels; none where there is no mean."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(MEANS)).dropna(subset=["mean"])
    if frame.empty:
        return []
    words = means_in_words(frame, measure)
    return [Chart(name, title, words, frame, partial(means_by_qrels, frame, measure=measure))]
