"""How large a study must be to tell two metrics apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from presentation.theme import (
    BLUE,
    FILLING,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Picture,
    axis_title,
)

if TYPE_CHECKING:
    import pandas as pd


COLOURS = [BLUE, RED, GREEN, PURPLE, ORANGE, SKY]
HEIGHT = 280


def power_curve(
    curve: pd.DataFrame, *, metric_a: str, metric_b: str, power: float = 0.8
) -> Picture:
    """The power to distinguish two metrics by the number of items, a line a number of annotators.

    `curve` is a frame of `stats.sample_size.sample_size_curve`; `power` is the one wished for.
    """
    import altair as alt

    drawn = curve[curve["power"].notna()].assign(ratings=curve["n_annotators"].map(ratings_text))
    kinds = list(dict.fromkeys(drawn["ratings"]))
    base = alt.Chart(drawn).encode(
        x=alt.X(
            "n_items:Q",
            title=_("Items in the study"),
            scale=alt.Scale(zero=True, nice=False),
        ),
        y=alt.Y(
            "power:Q",
            title=axis_title(
                _("Power to tell %(one)s from %(other)s") % {"one": metric_a, "other": metric_b}
            ),
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format=".0%", tickCount=5),
        ),
        color=alt.Color(
            "ratings:N",
            title=None,
            # Not names at the lines' ends: these meet where the power comes near to 1.
            legend=alt.Legend(orient="top", columns=2) if any(kinds) else None,
            scale=alt.Scale(domain=kinds, range=COLOURS[: len(kinds)]),
        ),
    )
    tips = [
        alt.Tooltip("n_items:Q", format=",", title=_("Items")),
        alt.Tooltip("ratings:N", title=_("Ratings")),
        alt.Tooltip("power:Q", format=".0%", title=_("Power")),
        alt.Tooltip("delta:Q", format="+.3f", title=_("Difference")),
    ]
    target = alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(power))
    lines = base.mark_line(strokeWidth=2.5)
    points = base.mark_point(opacity=1).encode(tooltip=tips)
    return alt.layer(target, lines, points).properties(
        width="container", height=HEIGHT, autosize=FILLING
    )


def ratings_text(n_annotators: float) -> str:
    """How many ratings each candidate has; nothing where that is unknown."""
    import pandas as pd

    if pd.isna(n_annotators):
        return ""
    n = 1 if n_annotators == 1 else 2  # a mean, as 2.5, has the plural
    text = ngettext("%(n)s rating each", "%(n)s ratings each", n)
    return text % {"n": f"{n_annotators:.3g}"}
