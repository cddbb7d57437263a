"""People's values beside a metric's, candidate by candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from django.utils.translation import gettext as _

from presentation.theme import FILLING, Picture, axis_title
from stats.arguments import Floats
from validation.charts.sizes import MOST_POINTS, N_BINS

if TYPE_CHECKING:
    import pandas as pd


HEIGHT = 320


def human_metric_scatter(cells: pd.DataFrame, *, human: str, metric: str) -> Picture:
    """A point for each candidate, or the number of candidates in each part of the plane.

    `cells` has the columns human and score, a row a candidate; or those of `density`, which is
    what becomes of more than 2,000 candidates. `human` and `metric` are the axes' titles.
    """
    bounded = points_or_parts(cells)
    draw = _counts if "n" in bounded else _points
    drawn = draw(bounded, axis_title(human), axis_title(metric))
    sized: Picture = drawn.properties(width="container", height=HEIGHT, autosize=FILLING)
    return sized


def points_or_parts(cells: pd.DataFrame) -> pd.DataFrame:
    """The candidates with both values, or counts of them where they are too many to draw."""
    if "n" in cells:
        return cells
    known = cells.dropna(subset=["human", "score"])
    return density(known) if len(known) > MOST_POINTS else known


def density(cells: pd.DataFrame, n_bins: int = N_BINS) -> pd.DataFrame:
    """How many candidates lie in each part: human_low, human_high, score_low, score_high, n."""
    import pandas as pd

    known = cells.dropna(subset=["human", "score"])
    edges = [_edges(known[name].to_numpy(), n_bins) for name in ("human", "score")]
    n, human, score = np.histogram2d(known["human"], known["score"], bins=edges)
    rows, columns = np.nonzero(n)
    return pd.DataFrame(
        {
            "human_low": human[rows],
            "human_high": human[rows + 1],
            "score_low": score[columns],
            "score_high": score[columns + 1],
            "n": n[rows, columns].astype(int),
        }
    )


def _edges(values: Floats, n_bins: int) -> Floats:
    """Equal parts, or one around each value where there are few values."""
    different = np.unique(values)
    if not 1 < len(different) <= n_bins:
        return np.histogram_bin_edges(values, bins=n_bins)
    middles = (different[:-1] + different[1:]) / 2
    first, last = 2 * different[0] - middles[0], 2 * different[-1] - middles[-1]
    return np.concatenate([[first], middles, [last]])


def _points(cells: pd.DataFrame, human: list[str], metric: list[str]) -> Picture:
    import altair as alt

    names = [name for name in ("item", "candidate", "system") if name in cells]
    drawn: Picture = (
        alt.Chart(cells)
        .mark_point(size=28, opacity=0.35)
        .encode(
            x=alt.X("human:Q", title=human, scale=alt.Scale(zero=False, nice=False, padding=8)),
            y=alt.Y("score:Q", title=metric, scale=alt.Scale(zero=False, nice=False, padding=8)),
            tooltip=[
                *(alt.Tooltip(f"{name}:N", title=name.title()) for name in names),
                alt.Tooltip("human:Q", format=".2f", title=_("People")),
                alt.Tooltip("score:Q", format=".3f", title=_("Score")),
            ],
        )
    )
    return drawn


def _counts(parts: pd.DataFrame, human: list[str], metric: list[str]) -> Picture:
    # The root lets the thin edge of a cloud show beside its heart.
    import altair as alt

    shade = alt.Scale(type="sqrt", range=[0.12, 1], domainMin=0)
    drawn: Picture = (
        alt.Chart(parts)
        .mark_rect()
        .encode(
            x=alt.X("human_low:Q", title=human, scale=alt.Scale(zero=False, nice=False)),
            x2="human_high:Q",
            y=alt.Y("score_low:Q", title=metric, scale=alt.Scale(zero=False, nice=False)),
            y2="score_high:Q",
            opacity=alt.Opacity("n:Q", title=_("Candidates"), scale=shade),
            tooltip=[alt.Tooltip("n:Q", format=",", title=_("Candidates"))],
        )
    )
    return drawn
