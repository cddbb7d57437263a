"""Every metric against every question, as cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from presentation.theme import Picture, numbers, signed_colour
from validation.charts.sizes import MOST_WITH_NUMBERS, column_axis

if TYPE_CHECKING:
    import pandas as pd


def correlation_heat_map(rows: pd.DataFrame, *, statistic: str) -> Picture:
    """A cell for each metric and question, red below zero; an undefined one holds a dash.

    `rows` has the columns metric, question, value, ci_low, ci_high and reason, in the order to
    be drawn. `statistic` names the correlation.
    """
    import altair as alt

    metrics = list(dict.fromkeys(rows["metric"]))
    questions = list(dict.fromkeys(rows["question"]))
    names = alt.Axis(ticks=False, domain=False)
    has_room = len(questions) <= MOST_WITH_NUMBERS
    slanted = column_axis(has_room)
    base = alt.Chart(rows).encode(
        x=alt.X("question:N", title=None, sort=questions, axis=slanted),
        y=alt.Y("metric:N", title=None, sort=metrics, axis=names),
    )
    tips = [
        alt.Tooltip("metric:N", title=_("Metric")),
        alt.Tooltip("question:N", title=_("Question")),
        alt.Tooltip("value:Q", format=".3f", title=statistic),
        alt.Tooltip("ci_low:Q", format=".3f", title=_("Interval from")),
        alt.Tooltip("ci_high:Q", format=".3f", title=_("to")),
        alt.Tooltip("reason:N", title=_("Undefined because")),
    ]
    filled = base.transform_filter("isValid(datum.value)").mark_rect()
    layers = [filled.encode(color=signed_colour(statistic), tooltip=tips)]
    dashes = base.transform_filter("!isValid(datum.value)").mark_text()
    layers.append(dashes.encode(text=alt.value("–"), tooltip=tips))
    if has_room:
        layers += numbers(base, size=13)
    width = alt.Step(64 if has_room else 28)
    return alt.layer(*layers).properties(width=width, height=alt.Step(28))
