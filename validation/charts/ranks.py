"""How human ratings rank the systems, and how each metric does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from django.utils.translation import gettext as _

from presentation.theme import BLUE, FILLING, GREEN, ORANGE, PURPLE, RED, SKY, Picture
from validation.charts.sizes import MOST_COLOURS

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


HUMAN_RATINGS = "human ratings"
COLOURS = [BLUE, RED, GREEN, PURPLE, ORANGE, SKY]
GREY = "#8a94a0"
ROW_HEIGHT = 30
# So many characters of systems' names stand beside a line's end.
ROOM_FOR_NAMES = 30


def system_rank_bump(ranks: pd.DataFrame) -> Picture:
    """A line for each system through its rank by human ratings and by each metric, best on top.

    `ranks` has the columns system, by ("human ratings" or a metric), rank (1 is best; ties share
    one) and mean, in the order to be drawn. Beyond six systems, colour is for those whose
    ranks differ most.
    """
    import altair as alt

    columns = list(dict.fromkeys(ranks["by"]))
    bold = most_moved(ranks)
    rest = [name for name in dict.fromkeys(ranks["system"]) if name not in bold]
    colours = COLOURS[: len(bold)] + [GREY] * len(rest)
    n_ranks = int(ranks["rank"].max()) if len(ranks) else 1
    base = alt.Chart(ranks).encode(
        x=alt.X(
            "by:N",
            title=None,
            sort=columns,
            scale=alt.Scale(domain=columns, type="point", padding=0.25),
            axis=alt.Axis(orient="top", labelAngle=-90 if len(columns) > 4 else 0, grid=True),
        ),
        y=alt.Y(
            "rank:Q",
            title=None,
            scale=alt.Scale(domain=[n_ranks + 0.5, 0.5], nice=False),
            axis=_named_axis(ranks, columns[:1], "left"),
        ),
        color=alt.Color(
            "system:N", legend=None, scale=alt.Scale(domain=[*bold, *rest], range=colours)
        ),
    )
    tips = [
        alt.Tooltip("system:N", title=_("System")),
        alt.Tooltip("by:N", title=_("Ranked by")),
        alt.Tooltip("rank:Q", title=_("Rank")),
        alt.Tooltip("mean:Q", format=".3f", title=_("Mean")),
    ]
    is_bold = alt.FieldOneOfPredicate(field="system", oneOf=bold)
    width = alt.condition(is_bold, alt.value(2.5), alt.value(1))
    lines = base.mark_line().encode(detail="system:N", strokeWidth=width)
    points = base.mark_point(size=90, opacity=1).encode(tooltip=tips)
    # A scale of its own lets the names at the other end be an axis too.
    far_end = base.mark_point(opacity=0).encode(
        y=alt.Y(
            "rank:Q",
            title=None,
            scale=alt.Scale(domain=[n_ranks + 0.5, 0.5], nice=False),
            axis=_named_axis(ranks, columns[1:][-1:], "right"),
        )
    )
    drawn = alt.layer(alt.layer(lines, points), far_end).resolve_scale(y="independent")
    height = max(4, n_ranks) * ROW_HEIGHT
    sized: Picture = drawn.properties(width="container", height=height, autosize=FILLING)
    return sized


def most_moved(ranks: pd.DataFrame) -> list[str]:
    """The systems whose ranks differ most, as many as colours can tell apart."""
    spread = ranks.groupby("system", sort=False)["rank"].agg(lambda of: of.max() - of.min())
    moved = set(spread.sort_values(ascending=False, kind="stable").index[:MOST_COLOURS])
    return [str(name) for name in dict.fromkeys(ranks["system"]) if name in moved]


def _named_axis(
    ranks: pd.DataFrame, by: list[str], side: Literal["left", "right"]
) -> alt.Axis | None:
    """Each rank and the systems that have it by one of the two, at an end of their lines."""
    import altair as alt

    of_one = ranks[ranks["by"].isin(by)]
    if of_one.empty:
        return None
    names = of_one.groupby("rank", sort=True)["system"].agg(_joined)
    labels = {
        f"{rank:g}": f"{name} {rank:g}" if side == "left" else f"{rank:g} {name}"
        for rank, name in names.items()
    }
    return alt.Axis(
        orient=side,
        values=[float(str(rank)) for rank in names.index],
        labelExpr=f"{json.dumps(labels)}[datum.value]",
        labelLimit=240,
        grid=False,
        domain=False,
        ticks=False,
    )


def _joined(names: pd.Series[str]) -> str:
    joined = ", ".join(names)
    return joined if len(joined) <= ROOM_FOR_NAMES else f"{joined[: ROOM_FOR_NAMES - 1]}…"
