from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from django.utils.translation import gettext as _, ngettext

from presentation.libraries import alt
from presentation.theme import (
    BLUE,
    FILLING,
    OCHRE,
    ORANGE,
    SERIES,
    Picture,
    axis_title,
    height_of_rows,
)
from results.kinds import Chart
from stats.libraries import np, pd

COLOURS = {"refused": ORANGE, "defect": OCHRE, "note": BLUE}


def counted_findings(rows: pd.DataFrame) -> Picture:
    """A bar for each kind of finding, as long as it was found often, over all files.

    `rows` has the columns severity, finding, file and n.
    """
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
    last = rows.iloc[-1]
    return _(
        "%(n_relevant)s relevant documents to rank %(depth)s, %(n_new)s of them first found there."
    ) % {
        "n_relevant": f"{int(last['n_relevant']):,}",
        "depth": int(last["depth"]),
        "n_new": int(last["n_new_relevant"]),
    }


def left_out_chart(rows: Sequence[Mapping[str, Any]], measure: str) -> list[Chart]:
    columns = ["run", "unit", "change", "ci_low", "ci_high"]
    frame = pd.DataFrame([one for one in rows if one["change"] is not None], columns=columns)
    if frame.empty:
        return []
    title, words = _("What each run loses outside the pool"), left_out_in_words(frame, measure)
    return [
        Chart("left-out", title, words, frame, partial(left_out_forest, frame, measure=measure))
    ]


def depths_chart(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    frame = pd.DataFrame(rows, columns=["depth", "n_judged", "n_relevant", "n_new_relevant"])
    if frame.empty:
        return []
    title, draw = _("Relevant documents by the pool's depth"), partial(relevant_by_depth, frame)
    return [Chart("depths", title, depths_in_words(frame), frame, draw)]


# The most qrels in one chart.
MOST_DRAWN = 5
MEANS = ("run", "qrels", "rank", "mean", "ci_low", "ci_high")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
LEGEND_WIDTH = 260
# The most characters of a name that fit in the legend.
LONGEST_NAME = 32


def means_by_qrels(rows: pd.DataFrame, *, measure: str) -> Picture:
    """Each run's mean with its interval under each of the qrels, which have colour and shape.

    `rows` has the columns run, qrels, rank, mean, ci_low and ci_high.
    """
    names = legend_names(list(dict.fromkeys(rows["qrels"])))
    rows = rows.assign(qrels=[names[name] for name in rows["qrels"]])
    qrels = list(names.values())
    scale = alt.Scale(domain=qrels, range=SERIES)
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
    orders = {
        str(name): " > ".join(
            f"{run} {mean:.3f}" for run, mean in zip(of.run, of["mean"], strict=True)
        )
        for name, of in rows.sort_values("rank", kind="stable").groupby("qrels", sort=False)
    }
    return _("Mean %(measure)s of the runs by the qrels. %(said)s.") % {
        "measure": measure,
        "said": "; ".join(f"{name}: {order}" for name, order in orders.items()),
    }


def means_chart(
    name: str, title: str, measure: str, rows: Sequence[tuple[object, ...]]
) -> list[Chart]:
    frame = pd.DataFrame(rows, columns=list(MEANS)).dropna(subset=["mean"])
    if frame.empty:
        return []
    words = means_in_words(frame, measure)
    return [Chart(name, title, words, frame, partial(means_by_qrels, frame, measure=measure))]


TOPICS_HEIGHT = 260
# Beyond so many bars some are thinner than a pixel: then as many of them, evenly spaced, are drawn.
MOST_BARS = 500


def differences(a: dict[str, float], b: dict[str, float]) -> pd.DataFrame:
    """The topics that both runs have, by how much better the first is: topic, a, b, difference."""
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
        height=TOPICS_HEIGHT,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )
    return sized


def _thinned(frame: pd.DataFrame) -> pd.DataFrame:
    if len(frame) <= MOST_BARS:
        return frame
    return frame.iloc[np.linspace(0, len(frame) - 1, MOST_BARS).round().astype(int)]


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
