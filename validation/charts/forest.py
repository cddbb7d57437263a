"""How well each metric agrees with human ratings, with intervals and the ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from presentation.theme import FILLING, OKABE_ITO, RED, Picture, axis_title, height_of_rows

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


def correlation_forest(rows: pd.DataFrame, *, statistic: str, confidence: float = 0.95) -> Picture:
    """Each metric's correlation with its interval, a line at zero and ticks at the ceilings.

    `rows` has the columns metric, part, value, ci_low, ci_high, ceiling, reason and n_used, in
    the order to be drawn; `part` (a condition, say) tells rows of one metric apart. A metric
    without a defined value keeps its row, with the reason instead of a point. `statistic`
    names the correlation, `confidence` is that of the intervals.
    """
    import altair as alt

    drawn = rows.assign(
        explanation=[_explanation(reason) for reason in rows["reason"].fillna("").astype(str)]
    )
    parts = list(dict.fromkeys(drawn["part"]))
    base = alt.Chart(drawn).encode(y=_metric_axis(drawn))
    if len(parts) > 1:
        base = base.encode(
            yOffset=alt.YOffset("part:N", sort=parts),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=parts, range=OKABE_ITO[: len(parts)]),
                legend=alt.Legend(orient="top", columns=2),
            ),
        )
    title = statistic
    if _has_intervals(rows):
        sentence = _("%(statistic)s, with its %(percent)s\u00a0%% interval")
        title = sentence % {"statistic": statistic, "percent": f"{100 * confidence:g}"}
    x = alt.X(
        "value:Q",
        title=axis_title(title),
        scale=alt.Scale(domain=_reach(rows), nice=False),
        axis=alt.Axis(tickCount=6),
    )
    zero = alt.Chart().mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    layers = [zero, *_marks(base, x), *_ceilings(base, drawn)]
    height = height_of_rows(drawn["metric"].nunique(), len(parts), step=16)
    return alt.layer(*layers).properties(width="container", height=height, autosize=FILLING)


def _explanation(reason: str) -> str:
    return _("undefined: %(reason)s") % {"reason": reason}


def _metric_axis(rows: pd.DataFrame) -> alt.Y:
    import altair as alt

    metrics = list(dict.fromkeys(rows["metric"]))
    return alt.Y("metric:N", title=None, sort=metrics, scale=alt.Scale(domain=metrics))


def _has_intervals(rows: pd.DataFrame) -> bool:
    return bool(rows["ci_low"].notna().any())


def _reach(rows: pd.DataFrame) -> list[float]:
    """From the lowest mark, or zero, to the highest."""
    marks = rows[["value", "ci_low", "ci_high", "ceiling"]].astype("float64")
    low = min(0.0, float(marks.min().min())) if marks.notna().any(axis=None) else 0.0
    high = max(0.0, float(marks.max().max())) if marks.notna().any(axis=None) else 1.0
    span = (high - low) or 1.0
    return [low - 0.02 * span, high + 0.02 * span]


def _marks(base: alt.Chart, x: alt.X) -> list[alt.Chart]:
    """A line from limit to limit, a point at the value, and words where there is none."""
    import altair as alt

    tips = [
        alt.Tooltip("metric:N", title=_("Metric")),
        alt.Tooltip("part:N", title=_("In")),
        alt.Tooltip("value:Q", format=".3f", title=_("Correlation")),
        alt.Tooltip("ci_low:Q", format=".3f", title=_("Interval from")),
        alt.Tooltip("ci_high:Q", format=".3f", title=_("to")),
        alt.Tooltip("ceiling:Q", format=".3f", title=_("Ceiling")),
        alt.Tooltip("n_used:Q", format=",", title=_("Groups used")),
    ]
    with_value = base.transform_filter("isValid(datum.value)")
    spans = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2)
    room = alt.expr("width - scale('x', 0) - 6")
    undefined = base.transform_filter("!isValid(datum.value)")
    words = undefined.mark_text(align="left", dx=6, limit=room)
    return [
        spans.encode(x=alt.X("ci_low:Q"), x2="ci_high:Q"),
        with_value.mark_point(opacity=1).encode(x=x, tooltip=tips),
        words.encode(x=alt.datum(0), text="explanation:N", tooltip="explanation:N"),
    ]


def _ceilings(base: alt.Chart, rows: pd.DataFrame) -> list[alt.Chart]:
    """A tick at the ceiling of each row with a point, named above the first."""
    import altair as alt

    known = rows[rows["ceiling"].notna() & rows["value"].notna()]
    if known.empty:
        return []
    base = base.properties(data=known)
    align = alt.expr("scale('x', datum.ceiling) < width / 2 ? 'left' : 'right'")
    name = alt.Chart(known.head(1)).mark_text(align=align, dy=-8)
    return [
        base.mark_tick(thickness=3).encode(x="ceiling:Q", color=alt.value(RED)),
        name.encode(x="ceiling:Q", y=alt.value(0), text=alt.value("ceiling")),
    ]
