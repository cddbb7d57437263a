"""Runs' means under several qrels, and by a machine beside people's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from presentation.theme import BLUE, FILLING, OKABE_ITO, ORANGE, Picture, axis_title, height_of_rows
from results.kinds import Chart

if TYPE_CHECKING:
    import pandas as pd


MOST_DRAWN = 5
"""Qrels that a chart can tell apart."""
MEANS = ("run", "qrels", "rank", "mean", "ci_low", "ci_high")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
LEGEND_WIDTH = 260
LONGEST_NAME = 32
"""Characters that a legend's width surely has room for."""


def means_by_qrels(rows: pd.DataFrame, *, measure: str) -> Picture:
    """Each run's mean with its interval under each of the qrels, which have colour and shape.

    `rows` has the columns run, qrels, rank, mean, ci_low and ci_high.
    """
    import altair as alt

    names = legend_names(list(dict.fromkeys(rows["qrels"])))
    rows = rows.assign(qrels=[names[name] for name in rows["qrels"]])
    qrels = list(names.values())
    colours = [BLUE, ORANGE] if len(qrels) == 2 else OKABE_ITO
    scale = alt.Scale(domain=qrels, range=colours[: len(qrels)])
    shapes = alt.Scale(domain=qrels, range=list(SHAPES[: len(qrels)]))
    legend = alt.Legend(orient="top", columns=1, labelLimit=LEGEND_WIDTH)
    title = axis_title(_("Mean %(measure)s, with its interval") % {"measure": measure})
    tips = [
        alt.Tooltip("run:N", title=_("Run")),
        alt.Tooltip("qrels:N", title=_("Qrels")),
        alt.Tooltip("rank:Q", title=_("Rank")),
        alt.Tooltip("mean:Q", format=".4f", title=_("Mean")),
        alt.Tooltip("ci_low:Q", format=".4f", title=_("Interval from")),
        alt.Tooltip("ci_high:Q", format=".4f", title=_("to")),
    ]
    runs = list(dict.fromkeys(rows["run"]))
    base = alt.Chart(rows).encode(
        y=alt.Y("run:N", title=None, sort=runs),
        yOffset=alt.YOffset("qrels:N", sort=qrels),
        color=alt.Color("qrels:N", title=None, scale=scale, legend=legend),
    )
    spans = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2)
    points = base.mark_point(opacity=1, filled=True, size=60).encode(
        x=alt.X("mean:Q", title=title, axis=alt.Axis(tickCount=6)),
        shape=alt.Shape("qrels:N", title=None, scale=shapes, legend=legend),
        tooltip=tips,
    )
    layers = [spans.encode(x=alt.X("ci_low:Q", title=title), x2="ci_high:Q"), points]
    height = height_of_rows(len(runs), len(qrels), step=16)
    return alt.layer(*layers).properties(width="container", height=height, autosize=FILLING)


def legend_names(names: Sequence[str]) -> dict[str, str]:
    """Each name as a legend can show it; of long ones that begin alike, what they differ in.

    A legend cuts the ends of names, where those of one study's qrels differ.
    """
    long = [name for name in names if len(name) > LONGEST_NAME]
    columns = zip(*long, strict=False) if len(long) > 1 else ()
    alike = "".join(first for first, *_ in takewhile(lambda one: len(set(one)) == 1, columns))
    begins = alike.rfind(", ") + 2 if ", " in alike else alike.rfind(" ") + 1
    shown = {
        name: f"… {name[begins:]}" if name.startswith(alike) and begins else name for name in names
    }
    cut = {name: _with_both_ends(one) for name, one in shown.items()}
    if len(set(cut.values())) == len(names):
        return cut
    return {name: _with_both_ends(f"{n}: {one}") for n, (name, one) in enumerate(cut.items(), 1)}


def _with_both_ends(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    half = (LONGEST_NAME - 1) // 2
    return f"{name[:half].rstrip()}…{name[-half:].lstrip()}"


def means_in_words(rows: pd.DataFrame, measure: str) -> str:
    """The order of the runs under each of the qrels."""
    orders = {
        str(name): " > ".join(
            f"{run} {mean:.3f}" for run, mean in zip(of.run, of["mean"], strict=True)
        )
        for name, of in rows.sort_values("rank", kind="stable").groupby("qrels", sort=False)
    }
    said = "; ".join(f"{name}: {order}" for name, order in orders.items())
    return _("Mean %(measure)s of the runs by the qrels. %(said)s.") % {
        "measure": measure,
        "said": said,
    }


def means_chart(
    name: str, title: str, measure: str, rows: Sequence[tuple[object, ...]]
) -> list[Chart]:
    """The runs' means under several qrels; none where there is no mean."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(MEANS)).dropna(subset=["mean"])
    if frame.empty:
        return []
    words = means_in_words(frame, measure)
    return [Chart(name, title, words, frame, partial(means_by_qrels, frame, measure=measure))]
