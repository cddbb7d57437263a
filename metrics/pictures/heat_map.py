"""Every metric against every question, as cells."""

from __future__ import annotations

import altair as alt
import pandas as pd

from annotation.pictures.theme import Picture
from metrics.pictures.sizes import MOST_WITH_NUMBERS, column_axis

# Where a cell is so dark that the text on it must be light, in either theme.
DARK_FROM = 0.8


def correlation_heat_map(rows: pd.DataFrame, *, statistic: str) -> Picture:
    """A cell for each metric and question, red below zero; an undefined one holds a dash.

    `rows` has the columns metric, question, value, ci_low, ci_high and reason, in the order to
    be drawn. `statistic` names the correlation.
    """
    metrics = list(dict.fromkeys(rows["metric"]))
    questions = list(dict.fromkeys(rows["question"]))
    names = alt.Axis(ticks=False, domain=False)
    has_room = max(len(metrics), len(questions)) <= MOST_WITH_NUMBERS
    slanted = column_axis(has_room)
    base = alt.Chart(rows).encode(
        x=alt.X("question:N", title=None, sort=questions, axis=slanted),
        y=alt.Y("metric:N", title=None, sort=metrics, axis=names),
    )
    colour = alt.Color(
        "value:Q",
        title=statistic,
        legend=alt.Legend(orient="bottom", values=[-1, 0, 1], titleLimit=320),
        scale=alt.Scale(domain=[-1, 0, 1], range="diverging", interpolate="rgb"),
    )
    tips = [
        alt.Tooltip("metric:N", title="Metric"),
        alt.Tooltip("question:N", title="Question"),
        alt.Tooltip("value:Q", format=".3f", title=statistic),
        alt.Tooltip("ci_low:Q", format=".3f", title="Interval from"),
        alt.Tooltip("ci_high:Q", format=".3f", title="to"),
        alt.Tooltip("reason:N", title="Undefined because"),
    ]
    filled = base.transform_filter("isValid(datum.value)").mark_rect()
    layers = [filled.encode(color=colour, tooltip=tips)]
    dashes = base.transform_filter("!isValid(datum.value)").mark_text()
    layers.append(dashes.encode(text=alt.value("–"), tooltip=tips))
    if has_room:
        for light in (False, True):
            layers.append(_numbers(base, light))
    width, height = (64, 28) if has_room else (18, 18)
    return alt.layer(*layers).properties(width=alt.Step(width), height=alt.Step(height))


def _numbers(base: alt.Chart, light: bool) -> alt.Chart:
    """The cells' values, in white where the cell is dark."""
    sign = ">" if light else "<="
    chosen = f"isValid(datum.value) && abs(datum.value) {sign} {DARK_FROM}"
    mark = base.transform_filter(chosen).mark_text(color="white" if light else alt.Undefined)
    numbers: alt.Chart = mark.encode(text=alt.Text("value:Q", format=".2f"))
    return numbers
