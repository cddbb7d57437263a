from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _, gettext_lazy

from presentation.libraries import alt
from presentation.theme import (
    BLUE,
    FIFTH,
    FILLING,
    GOLD,
    GROUND,
    HALF,
    SERIES,
    TEXT,
    ZERO,
    Picture,
    axis_title,
    height_of_rows,
    numbers,
    signed_colour,
)
from stats.libraries import pd

# Beyond so many columns the numbers in the cells of a matrix would not fit.
MOST_WITH_NUMBERS = 14
# Beyond so many points a cloud says less than the counts of its parts, and weighs more.
MOST_POINTS = 2000
N_BINS = 40
# So many lines can be distinguished by colour.
MOST_COLOURS = 5


def column_axis(has_room: bool) -> alt.Axis:
    return alt.Axis(ticks=False, domain=False, orient="top", labelAngle=-30 if has_room else -90)


def correlation_heat_map(rows: pd.DataFrame, *, statistic: str) -> Picture:
    """A cell for each metric and question, red below zero; an undefined one holds a dash.

    `rows` has the columns metric, question, value, ci_low, ci_high and reason, in the order to
    be drawn. `statistic` names the correlation.
    """
    metrics = list(dict.fromkeys(rows["metric"]))
    questions = list(dict.fromkeys(rows["question"]))
    names = alt.Axis(ticks=False, domain=False)
    has_room = len(questions) <= MOST_WITH_NUMBERS
    base = alt.Chart(rows).encode(
        x=alt.X("question:N", title=None, sort=questions, axis=column_axis(has_room)),
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


def correlation_forest(rows: pd.DataFrame, *, statistic: str, confidence: float = 0.95) -> Picture:
    """Each metric's correlation with its interval, a line at zero and ticks at the ceilings.

    `rows` has the columns metric, part, value, ci_low, ci_high, ceiling, reason and n_used, in
    the order to be drawn; `part` (a condition, say) tells rows of one metric apart. A metric
    without a defined value keeps its row, with the reason instead of a point. `statistic`
    names the correlation, `confidence` is that of the intervals.
    """
    drawn = rows.assign(
        explanation=[
            (_("undefined: %(reason)s") % {"reason": reason})
            for reason in rows["reason"].fillna("").astype(str)
        ]
    )
    parts = list(dict.fromkeys(drawn["part"]))
    base = alt.Chart(drawn).encode(y=_metric_axis(drawn))
    if len(parts) > 1:
        base = base.encode(
            yOffset=alt.YOffset("part:N", sort=parts),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=parts, range=SERIES),
                legend=alt.Legend(orient="top", columns=2),
            ),
        )
    title = statistic
    if bool(rows["ci_low"].notna().any()):
        title = _("%(statistic)s, with its %(percent)s\u00a0%% interval") % {
            "statistic": statistic,
            "percent": f"{100 * confidence:g}",
        }
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


def _metric_axis(rows: pd.DataFrame) -> alt.Y:
    metrics = list(dict.fromkeys(rows["metric"]))
    return alt.Y("metric:N", title=None, sort=metrics, scale=alt.Scale(domain=metrics))


def _reach(rows: pd.DataFrame) -> list[float]:
    marks = rows[["value", "ci_low", "ci_high", "ceiling"]].astype("float64")
    low = min(0.0, float(marks.min().min())) if marks.notna().any(axis=None) else 0.0
    high = max(0.0, float(marks.max().max())) if marks.notna().any(axis=None) else 1.0
    span = (high - low) or 1.0
    return [low - 0.02 * span, high + 0.02 * span]


def _marks(base: alt.Chart, x: alt.X) -> list[alt.Chart]:
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
    words = base.transform_filter("!isValid(datum.value)").mark_text(align="left", dx=6, limit=room)
    return [
        spans.encode(x=alt.X("ci_low:Q"), x2="ci_high:Q"),
        with_value.mark_point(opacity=1).encode(x=x, tooltip=tips),
        words.encode(x=alt.datum(0), text="explanation:N", tooltip="explanation:N"),
    ]


def _ceilings(base: alt.Chart, rows: pd.DataFrame) -> list[alt.Chart]:
    """A tick at the ceiling of each row with a point; the first has a label."""
    known = rows[rows["ceiling"].notna() & rows["value"].notna()]
    if known.empty:
        return []
    base = base.properties(data=known)
    align = alt.expr("scale('x', datum.ceiling) < width / 2 ? 'left' : 'right'")
    name = alt.Chart(known.head(1)).mark_text(align=align, dy=-8)
    return [
        base.mark_tick(thickness=3).encode(x="ceiling:Q", color=alt.value(GOLD)),
        name.encode(x="ceiling:Q", y=alt.value(0), text=alt.value("ceiling")),
    ]


NOT, UNDEFINED = "p ≥ .05", "– undefined"
# How sure, the cell's colour, and that of the text on it.
DEGREES = [(0.001, "p < .001", BLUE, GROUND), (0.01, "p < .01", HALF, TEXT)]
DEGREES += [(0.05, "p < .05", FIFTH, TEXT)]


def significance_matrix(
    comparisons: pd.DataFrame, *, order: Sequence[str], p: str = "p_holm"
) -> Picture:
    """Each metric in a row tested against those below it in a column, by adjusted p.

    `comparisons` has the columns metric_a, metric_b, delta (a less b), reason and the one named
    by `p`; `order` names the metrics, the one that agrees best first.
    """
    cells = upper_cells(comparisons, order=order, p=p)
    rows, columns = list(order[:-1]), list(order[1:])
    names = alt.Axis(ticks=False, domain=False)
    has_room = len(order) <= MOST_WITH_NUMBERS
    slanted = column_axis(has_room)
    base = alt.Chart(cells).encode(
        x=alt.X("worse:N", title=_("… than"), sort=columns, axis=slanted, scale=_all(columns)),
        y=alt.Y("better:N", title=_("agrees better …"), sort=rows, axis=names, scale=_all(rows)),
    )
    # Both without a fill: a dash, named in the legend, tells the undefined.
    bare = [NOT, UNDEFINED] if cells["p"].isna().any() else [NOT]
    kinds = [name for _, name, *_ in DEGREES] + bare
    fills = [fill for *_, fill, _ in DEGREES] + ["transparent"] * len(bare)
    colour = alt.Color(
        "degree:N",
        title=f"{ADJUSTED.get(p, p)}",
        scale=alt.Scale(domain=kinds, range=fills),
        legend=alt.Legend(
            orient="bottom",
            columns=3,
            symbolStrokeColor=ZERO,
            symbolStrokeWidth=1,
            symbolType="square",
        ),
    )
    tips = [
        alt.Tooltip("better:N", title=_("Metric")),
        alt.Tooltip("worse:N", title=_("against")),
        alt.Tooltip("delta:Q", format="+.3f", title=_("Difference")),
        alt.Tooltip("p:Q", format=".4f", title=_("Adjusted p")),
        alt.Tooltip("reason:N", title=_("Not tested because")),
    ]
    filled = base.mark_rect(stroke=ZERO, strokeWidth=0.5).encode(color=colour, tooltip=tips)
    inks = {name: ink for _, name, _, ink in DEGREES} | {NOT: None} if has_room else {}
    width, height = (56, 28) if has_room else (18, 18)
    layers = [filled, *(_texts(base, kind) for kind in (inks | {UNDEFINED: None}).items())]
    return alt.layer(*layers).properties(width=alt.Step(width), height=alt.Step(height))


ADJUSTED = {
    "p": gettext_lazy("Unadjusted"),
    "p_holm": gettext_lazy("Adjusted (Holm)"),
    "p_bh": gettext_lazy("Adjusted (B.–H.)"),
}


def upper_cells(comparisons: pd.DataFrame, *, order: Sequence[str], p: str) -> pd.DataFrame:
    """One row per pair: the earlier metric, the later one, their difference and p."""
    position = {name: at for at, name in enumerate(order)}
    known = comparisons[
        comparisons["metric_a"].isin(position) & comparisons["metric_b"].isin(position)
    ]
    turned = known["metric_a"].map(position) > known["metric_b"].map(position)
    cells = pd.DataFrame(
        {
            "better": known["metric_a"].where(~turned, known["metric_b"]),
            "worse": known["metric_b"].where(~turned, known["metric_a"]),
            "delta": known["delta"].where(~turned, -known["delta"]).astype("float64"),
            "p": known[p].astype("float64"),
            "reason": known["reason"],
        }
    )
    return cells.assign(degree=cells["p"].map(_degree), text=cells["p"].map(p_text))


def _all(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names))


def _degree(p: float) -> str:
    if pd.isna(p):
        return UNDEFINED
    return next((name for limit, name, *_ in DEGREES if p < limit), NOT)


def p_text(p: float) -> str:
    if pd.isna(p):
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _texts(base: alt.Chart, kind: tuple[str, str | None]) -> alt.Chart:
    degree, ink = kind
    chosen = base.transform_filter(alt.datum.degree == degree)
    mark = chosen.mark_text(fontSize=12, color=alt.Undefined if ink is None else ink)
    texts: alt.Chart = mark.encode(text="text:N")
    return texts
