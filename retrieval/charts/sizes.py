"""How power, or an interval's width, follows from how many there are, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from presentation.theme import FILLING, ORANGE, Picture, axis_title

if TYPE_CHECKING:
    import pandas as pd


HEIGHT = 240


def size_curve(rows: pd.DataFrame, *, of: str, wanted: float, n: int) -> Picture:
    """Power or width (`of`) of each number in `rows`; what is wanted as a line, the answer as a
    point on the curve's safe side."""
    import altair as alt
    import pandas as pd

    title = _("Power") if of == "power" else _("Width of the interval")
    scale = alt.Scale(domain=[0, 1]) if of == "power" else alt.Scale(zero=True)
    y = alt.Y(f"{of}:Q", title=axis_title(title), scale=scale)
    x = alt.X(
        "n:Q",
        title=axis_title(_("How many")),
        scale=alt.Scale(zero=False, nice=False),
        axis=alt.Axis(tickCount=5, tickMinStep=1),
    )
    tips = [
        alt.Tooltip("n:Q", format=",.0f", title=_("How many")),
        alt.Tooltip(f"{of}:Q", format=".4f", title=title),
    ]
    curve = alt.Chart(rows).mark_line(strokeWidth=2).encode(x=x, y=y, tooltip=tips)
    limit = alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(wanted))
    answer = pd.DataFrame({"n": [n], of: [float(nearest(rows, of, n))]})
    point = alt.Chart(answer).mark_point(opacity=1, color=ORANGE, size=90).encode(x=x, y=y)
    return alt.layer(limit, curve, point).properties(
        width="container", height=HEIGHT, autosize=FILLING
    )


def nearest(rows: pd.DataFrame, of: str, n: int) -> float:
    """The curve's value at `n`, between its two neighbours."""
    ordered = rows.sort_values("n")
    left = ordered[ordered["n"] <= n].iloc[-1]
    right = ordered[ordered["n"] >= n].iloc[0]
    if right["n"] == left["n"]:
        return float(left[of])
    share = (n - left["n"]) / (right["n"] - left["n"])
    return float(left[of] + share * (right[of] - left[of]))
