"""Which metric agrees with human ratings better than which other, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from presentation.theme import BLUE, SKY, Picture
from validation.charts.sizes import MOST_WITH_NUMBERS, column_axis

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


PALE = "#c6e3f5"
DARK, LIGHT = "#1d2329", "#ffffff"
NOT, UNDEFINED = "p ≥ .05", "– undefined"
# How sure, the cell's colour, and that of the text on it.
DEGREES = [(0.001, "p < .001", BLUE, LIGHT), (0.01, "p < .01", SKY, DARK)]
DEGREES += [(0.05, "p < .05", PALE, DARK)]


def significance_matrix(
    comparisons: pd.DataFrame, *, order: Sequence[str], p: str = "p_holm"
) -> Picture:
    """Each metric in a row tested against those below it in a column, by adjusted p.

    `comparisons` has the columns metric_a, metric_b, delta (a less b), reason and the one named
    by `p`; `order` names the metrics, the one that agrees best first.
    """
    import altair as alt

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
            symbolStrokeColor="#9aa5b1",
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
    filled = base.mark_rect(stroke="#9aa5b1", strokeWidth=0.5).encode(color=colour, tooltip=tips)
    kinds_of_text = _kinds_of_text() if has_room else [(UNDEFINED, None)]
    width, height = (56, 28) if has_room else (18, 18)
    layers = [filled, *(_texts(base, kind) for kind in kinds_of_text)]
    return alt.layer(*layers).properties(width=alt.Step(width), height=alt.Step(height))


ADJUSTED = {
    "p": gettext_lazy("Unadjusted"),
    "p_holm": gettext_lazy("Adjusted (Holm)"),
    "p_bh": gettext_lazy("Adjusted (B.–H.)"),
}


def upper_cells(comparisons: pd.DataFrame, *, order: Sequence[str], p: str) -> pd.DataFrame:
    """A row a pair: the metric earlier in the order, the later one, their difference and p."""
    import pandas as pd

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
    import altair as alt

    return alt.Scale(domain=list(names))


def _degree(p: float) -> str:
    import pandas as pd

    if pd.isna(p):
        return UNDEFINED
    return next((name for limit, name, *_ in DEGREES if p < limit), NOT)


def p_text(p: float) -> str:
    """As papers print it; a dash where there is none."""
    import pandas as pd

    if pd.isna(p):
        return "–"
    return "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _kinds_of_text() -> list[tuple[str, str | None]]:
    return [(name, ink) for _, name, _, ink in DEGREES] + [(NOT, None), (UNDEFINED, None)]


def _texts(base: alt.Chart, kind: tuple[str, str | None]) -> alt.Chart:
    """The p of one degree; without an ink of its own, text has the theme's."""
    import altair as alt

    degree, ink = kind
    chosen = base.transform_filter(alt.datum.degree == degree)
    mark = chosen.mark_text(fontSize=12, color=alt.Undefined if ink is None else ink)
    texts: alt.Chart = mark.encode(text="text:N")
    return texts
