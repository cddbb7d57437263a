from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from django.utils.translation import gettext as _, ngettext

from presentation.theme import BLUE, FILLING, ORANGE, Picture, axis_title

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 260
# Beyond so many bars some are thinner than a pixel: then as many of them, evenly spaced, are drawn.
MOST_BARS = 500


def differences(a: dict[str, float], b: dict[str, float]) -> pd.DataFrame:
    """The topics that both runs have, by how much better the first is: topic, a, b, difference."""
    import pandas as pd

    topics = [topic for topic in a if topic in b]
    frame = pd.DataFrame(
        {
            "topic": topics,
            "a": [a[topic] for topic in topics],
            "b": [b[topic] for topic in topics],
        }
    )
    frame["difference"] = frame["a"].astype(float) - frame["b"].astype(float)
    frame = frame.sort_values(["difference", "topic"], ascending=[False, True])
    return frame.reset_index(drop=True)


def topic_differences(frame: pd.DataFrame, *, a: str, b: str, measure: str) -> Picture:
    import altair as alt

    drawn = _thinned(frame)
    drawn = drawn.assign(
        place=np.arange(1, len(drawn) + 1),
        leader=np.where(drawn["difference"] > 0, a, np.where(drawn["difference"] < 0, b, "=")),
    )
    chart = alt.Chart(drawn).mark_bar(size=max(1, min(16, 480 // max(len(drawn), 1))))
    encoded = chart.encode(
        x=alt.X(
            "place:Q",
            title=axis_title(_("Topics, by difference")),
            axis=alt.Axis(grid=False, tickMinStep=1, format="d"),
        ),
        y=alt.Y(
            "difference:Q",
            title=axis_title(_("{measure} of {a} less {b}").format(measure=measure, a=a, b=b)),
        ),
        color=alt.Color(
            "leader:N",
            title=axis_title(_("Better")),
            scale=alt.Scale(domain=[a, b], range=[BLUE, ORANGE]),
            legend=alt.Legend(orient="top"),
        ),
        tooltip=["topic:N", "a:Q", "b:Q", "difference:Q"],
    )
    sized: Picture = encoded.properties(
        width="container",
        height=HEIGHT,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )
    return sized


def _thinned(frame: pd.DataFrame) -> pd.DataFrame:
    if len(frame) <= MOST_BARS:
        return frame
    places = np.linspace(0, len(frame) - 1, MOST_BARS).round().astype(int)
    return frame.iloc[places]


def differences_in_words(frame: pd.DataFrame, *, a: str, b: str) -> str:
    n_a, n_b = int((frame["difference"] > 0).sum()), int((frame["difference"] < 0).sum())
    n = len(frame)
    text = ngettext(
        "Of %(n)s topic %(a)s is better in %(n_a)s and %(b)s in %(n_b)s; the rest are equal.",
        "Of %(n)s topics %(a)s is better in %(n_a)s and %(b)s in %(n_b)s; the rest are equal.",
        n,
    )
    if n_a + n_b == n:
        text = ngettext(
            "Of %(n)s topic %(a)s is better in %(n_a)s and %(b)s in %(n_b)s.",
            "Of %(n)s topics %(a)s is better in %(n_a)s and %(b)s in %(n_b)s.",
            n,
        )
    text %= {"n": f"{n:,}", "a": a, "b": b, "n_a": f"{n_a:,}", "n_b": f"{n_b:,}"}
    if n <= MOST_BARS:
        return text
    drawn = _("{n} of them are drawn, evenly spaced by difference.").format(n=MOST_BARS)
    return f"{text} {drawn}"


CURVE_HEIGHT = 240


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
        width="container", height=CURVE_HEIGHT, autosize=FILLING
    )


def nearest(rows: pd.DataFrame, of: str, n: int) -> float:
    ordered = rows.sort_values("n")
    left = ordered[ordered["n"] <= n].iloc[-1]
    right = ordered[ordered["n"] >= n].iloc[0]
    if right["n"] == left["n"]:
        return float(left[of])
    share = (n - left["n"]) / (right["n"] - left["n"])
    return float(left[of] + share * (right[of] - left[of]))
