"""What an audit counted, kind of finding by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from presentation.theme import BLUE, FILLING, ORANGE, RED, Picture, axis_title, height_of_rows
from results.kinds import Chart

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {"refused": RED, "defect": ORANGE, "note": BLUE}


def counted_findings(rows: pd.DataFrame) -> Picture:
    """A bar for each kind of finding, as long as it was found often, over all files.

    `rows` has the columns severity, finding, file and n.
    """
    import altair as alt

    names = {"refused": _("refused"), "defect": _("defects"), "note": _("notes")}
    drawn = rows.assign(part=[names[one] for one in rows["severity"]])
    there = [one for one in COLOURS if one in set(rows["severity"])]
    scale = alt.Scale(domain=[names[one] for one in there], range=[COLOURS[one] for one in there])
    findings = list(dict.fromkeys(rows["finding"]))
    tips = [
        alt.Tooltip("file:N", title=_("File")),
        alt.Tooltip("finding:N", title=_("Finding")),
        alt.Tooltip("n:Q", format=",", title=_("Count")),
    ]
    bars = (
        alt.Chart(drawn)
        .mark_bar()
        .encode(
            x=alt.X("n:Q", title=axis_title(_("Count")), axis=alt.Axis(tickMinStep=1, tickCount=6)),
            y=alt.Y("finding:N", title=None, sort=findings, axis=alt.Axis(labelLimit=220)),
            color=alt.Color(
                "part:N", title=None, scale=scale, legend=alt.Legend(orient="top", columns=3)
            ),
            detail="file:N",
            tooltip=tips,
        )
    )
    height = height_of_rows(len(findings), 1, step=22)
    picture: Picture = bars.properties(width="container", height=height, autosize=FILLING)
    return picture


def findings_in_words(rows: pd.DataFrame) -> str:
    counts = rows.groupby("finding", sort=False)["n"].sum()
    return ", ".join(f"{name}: {int(n):,}" for name, n in counts.items()) + "."


HEIGHT = 220


def left_out_forest(rows: pd.DataFrame, *, measure: str) -> Picture:
    """The change of each run's value when its system, or its group, is left out of the pool.

    `rows` has the columns run, unit (system or group), change, ci_low and ci_high.
    """
    import altair as alt

    names = {"system": _("The system left out"), "group": _("Its group left out")}
    drawn = rows.assign(part=[names[unit] for unit in rows["unit"]])
    parts = [name for unit, name in names.items() if unit in set(rows["unit"])]
    runs = list(dict.fromkeys(drawn["run"]))
    base = alt.Chart(drawn).encode(y=alt.Y("run:N", title=None, sort=runs))
    if len(parts) > 1:
        colour = alt.Color(
            "part:N",
            title=None,
            scale=alt.Scale(domain=parts, range=[BLUE, ORANGE]),
            legend=alt.Legend(orient="top", columns=1),
        )
        base = base.encode(yOffset=alt.YOffset("part:N", sort=parts), color=colour)
    title = axis_title(_("Change of %(measure)s, with its interval") % {"measure": measure})
    x = alt.X("change:Q", title=title, axis=alt.Axis(tickCount=6))
    tips = [
        alt.Tooltip("run:N", title=_("Run")),
        alt.Tooltip("part:N", title=_("Without")),
        alt.Tooltip("change:Q", format="+.4f", title=_("Change")),
        alt.Tooltip("ci_low:Q", format="+.4f", title=_("Interval from")),
        alt.Tooltip("ci_high:Q", format="+.4f", title=_("to")),
    ]
    spans = base.transform_filter("isValid(datum.ci_low)").mark_rule(strokeWidth=2)
    zero = alt.Chart().mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    points = base.mark_point(opacity=1).encode(x=x, tooltip=tips)
    height = height_of_rows(len(runs), len(parts), step=16)
    layers = [zero, spans.encode(x=alt.X("ci_low:Q", title=title), x2="ci_high:Q"), points]
    return alt.layer(*layers).properties(width="container", height=height, autosize=FILLING)


def relevant_by_depth(rows: pd.DataFrame) -> Picture:
    """Relevant documents in the pool to each depth; a curve still rising says more lie below.

    `rows` has the columns depth, n_judged, n_relevant and n_new_relevant.
    """
    import altair as alt

    tips = [
        alt.Tooltip("depth:Q", title=_("Pool depth")),
        alt.Tooltip("n_relevant:Q", format=",", title=_("Relevant documents")),
        alt.Tooltip("n_new_relevant:Q", format=",", title=_("First found at this rank")),
        alt.Tooltip("n_judged:Q", format=",", title=_("Judged documents")),
    ]
    curve = (
        alt.Chart(rows)
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("depth:Q", title=axis_title(_("Pool depth")), axis=alt.Axis(tickMinStep=1)),
            y=alt.Y(
                "n_relevant:Q",
                title=axis_title(_("Relevant documents")),
                scale=alt.Scale(zero=True),
                axis=alt.Axis(tickMinStep=1),
            ),
            tooltip=tips,
        )
    )
    picture: Picture = curve.properties(width="container", height=HEIGHT, autosize=FILLING)
    return picture


def left_out_in_words(rows: pd.DataFrame, measure: str) -> str:
    """The least and the greatest change."""
    changes = rows["change"].to_numpy()
    low, high = rows.iloc[int(changes.argmin())], rows.iloc[int(changes.argmax())]
    lowest, highest = (
        f"{row['change']:+.3f}".replace("-", "\N{MINUS SIGN}") for row in (low, high)
    )
    values = {"measure": measure, "low": lowest, "low_run": low["run"]}
    values |= {"high": highest, "high_run": high["run"]}
    text = _(
        "Change of %(measure)s when a run is left out of the pool: from %(low)s (%(low_run)s) to "
        "%(high)s (%(high_run)s)."
    )
    return text % values


def depths_in_words(rows: pd.DataFrame) -> str:
    """The relevant documents of the whole pool, and those of its last rank."""
    last = rows.iloc[-1]
    text = _(
        "%(n_relevant)s relevant documents to rank %(depth)s, %(n_new)s of them first found there."
    )
    return text % {
        "n_relevant": f"{int(last['n_relevant']):,}",
        "depth": int(last["depth"]),
        "n_new": int(last["n_new_relevant"]),
    }


def left_out_chart(rows: Sequence[Mapping[str, Any]], measure: str) -> list[Chart]:
    """What each run loses outside the pool; no chart if nothing is known."""
    import pandas as pd

    columns = ["run", "unit", "change", "ci_low", "ci_high"]
    frame = pd.DataFrame([one for one in rows if one["change"] is not None], columns=columns)
    if frame.empty:
        return []
    title, words = _("What each run loses outside the pool"), left_out_in_words(frame, measure)
    draw = partial(left_out_forest, frame, measure=measure)
    return [Chart("left-out", title, words, frame, draw)]


def depths_chart(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Relevant documents by the pool's depth; no chart without a pool."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["depth", "n_judged", "n_relevant", "n_new_relevant"])
    if frame.empty:
        return []
    title, draw = _("Relevant documents by the pool's depth"), partial(relevant_by_depth, frame)
    return [Chart("depths", title, depths_in_words(frame), frame, draw)]
