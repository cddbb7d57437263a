"""Pictures of agreement, each a function from a frame to a chart.

An undefined number is left out of a picture; the table beside it names it with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from presentation.libraries import alt
from presentation.theme import (
    BLUE,
    FILLING,
    ORANGE,
    Picture,
    axis_title,
    height_of_rows,
    numbers,
    signed_colour,
)
from stats.libraries import pd

INTERVAL_TITLE = gettext_lazy("Krippendorff's alpha, with its 95\u00a0% interval")
# Beyond so many annotators the numbers in the cells of a matrix would not fit.
MOST_WITH_NUMBERS = 14
X_TITLES = {
    "n_judgments": gettext_lazy("Judgments given"),
    "seconds": gettext_lazy("Median time for a judgment, s"),
}


def agreement_forest(rows: pd.DataFrame) -> Picture:
    """Alpha with its interval for each row, and a line at chance.

    `rows` has the columns label, part, value, ci_low, ci_high and n_items; `part` (with or
    without flagged submissions) distinguishes rows of one label.
    """
    defined = rows[rows["value"].notna()]
    parts = list(defined["part"].unique())
    scale = alt.Scale(domain=_reach(defined), nice=False)
    base = alt.Chart(defined).encode(
        y=alt.Y("label:N", title=None, sort=list(dict.fromkeys(rows["label"])))
    )
    if len(parts) > 1:
        colours = alt.Scale(domain=parts, range=[BLUE, ORANGE])
        base = base.encode(
            yOffset=alt.YOffset("part:N", sort=parts),
            color=alt.Color(
                "part:N", title=None, scale=colours, legend=alt.Legend(orient="top", columns=1)
            ),
        )
    chance = alt.Chart().mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    return alt.layer(
        chance,
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("ci_low:Q", title=str(INTERVAL_TITLE), scale=scale, axis=alt.Axis(tickCount=6)),
            x2="ci_high:Q",
        ),
        base.mark_point(opacity=1).encode(
            x=alt.X("value:Q", title=str(INTERVAL_TITLE), scale=scale), tooltip=_forest_tips()
        ),
    ).properties(
        width="container",
        height=height_of_rows(defined["label"].nunique(), len(parts), step=18),
        autosize=FILLING,
    )


def _forest_tips() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("label:N", title=_("Of")),
        alt.Tooltip("part:N", title=_("With")),
        alt.Tooltip("value:Q", format=".3f", title=_("Alpha")),
        alt.Tooltip("ci_low:Q", format=".3f", title=_("Interval from")),
        alt.Tooltip("ci_high:Q", format=".3f", title=_("to")),
        alt.Tooltip("n_items:Q", format=",", title=_("Candidates")),
    ]


def _reach(rows: pd.DataFrame) -> list[float]:
    lowest = rows[["value", "ci_low"]].min().min() if len(rows) else 0.0
    return [min(0.0, max(-1.0, float(lowest))) - 0.02, 1.02]


def pairwise_matrix(pairs: pd.DataFrame, *, statistic: str) -> Picture:
    """Every pair of annotators as a cell, who agree most first; red is below chance.

    `pairs` has the columns annotator_a, annotator_b, value and n_shared; a cell without a
    defined value stays empty. `statistic` names the value.
    """
    defined = pairs[pairs["value"].notna()]
    turned = {"annotator_a": "annotator_b", "annotator_b": "annotator_a"}
    both = pd.concat([defined, defined.rename(columns=turned)], ignore_index=True)
    order = list(both.groupby("annotator_a")["value"].mean().sort_values(ascending=False).index)
    names = alt.Axis(labelFontSize=12, ticks=False, domain=False)
    cells = alt.Chart(both).encode(
        x=alt.X("annotator_a:N", title=None, sort=order, axis=names),
        y=alt.Y("annotator_b:N", title=None, sort=order, axis=names),
    )
    filled = cells.mark_rect().encode(
        color=signed_colour(statistic),
        tooltip=[
            alt.Tooltip("annotator_a:N", title=_("Annotator")),
            alt.Tooltip("annotator_b:N", title=_("and")),
            alt.Tooltip("value:Q", format=".3f", title=statistic),
            alt.Tooltip("n_shared:Q", format=",", title=_("Shared candidates")),
        ],
    )
    if len(order) > MOST_WITH_NUMBERS:
        dense: Picture = filled.properties(width=alt.Step(14), height=alt.Step(14))
        return dense
    return alt.layer(filled, *numbers(cells, size=12)).properties(
        width=alt.Step(38), height=alt.Step(28)
    )


def annotator_scatter(
    annotators: pd.DataFrame, *, against: Literal["n_judgments", "seconds"], statistic: str
) -> Picture:
    """Each annotator's agreement with the others against how much or how fast they worked.

    `annotators` has the columns annotator, agreement, n_judgments, seconds and n_flagged;
    who agrees least and who agrees most are named. `statistic` names the agreement.
    """
    compared = annotators[annotators["agreement"].notna() & annotators[against].gt(0)]
    compared = compared.assign(
        doubt=compared["n_flagged"].gt(0).map({True: "flagged", False: "not flagged"})
    )
    base = alt.Chart(compared).encode(
        x=alt.X(
            f"{against}:Q",
            title=str(X_TITLES[against]),
            scale=alt.Scale(type="log", nice=False, domain=_span(compared[against])),
            axis=alt.Axis(tickCount=6, grid=False),
        ),
        y=alt.Y(
            "agreement:Q",
            title=axis_title(statistic),
            scale=alt.Scale(nice=False, domain=_around(compared["agreement"])),
            axis=alt.Axis(tickCount=6),
        ),
    )
    kinds = ["not flagged", "flagged"]
    has_flags = bool(compared["n_flagged"].gt(0).any())
    legend = alt.Legend(orient="top", title=_("Submissions")) if has_flags else None
    points = base.mark_point(opacity=1).encode(
        color=alt.Color(
            "doubt:N", scale=alt.Scale(domain=kinds, range=[BLUE, ORANGE]), legend=legend
        ),
        shape=alt.Shape(
            "doubt:N", scale=alt.Scale(domain=kinds, range=["circle", "triangle"]), legend=legend
        ),
        tooltip=[
            alt.Tooltip("annotator:N", title=_("Annotator")),
            alt.Tooltip("agreement:Q", format=".3f", title=statistic),
            alt.Tooltip("n_judgments:Q", format=",", title=_("Judgments")),
            alt.Tooltip("seconds:Q", format=".1f", title=_("Median seconds")),
            alt.Tooltip("n_flagged:Q", format=",", title=_("Flagged submissions")),
        ],
    )
    # Below the least and above the most no point lies that a name could cover.
    ordered = compared.sort_values("agreement", kind="stable")
    least, most = ordered[:1], ordered[1:][-1:]
    return alt.layer(
        alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(0)),
        points,
        _name(base, least, against, dy=14),
        _name(base, most, against, dy=-12),
    ).properties(width="container", height=260, autosize=FILLING)


def _name(base: alt.Chart, of_one: pd.DataFrame, against: str, *, dy: int) -> alt.Chart:
    named: alt.Chart = base.properties(data=of_one).mark_text(
        align=alt.expr(f"scale('x', datum.{against}) < width / 2 ? 'left' : 'right'"),
        dy=dy,
        fontSize=12,
    )
    return named.encode(text="annotator:N")


def _span(values: pd.Series[float]) -> list[float]:
    return [float(values.min()) * 0.85, float(values.max()) / 0.85] if len(values) else [1, 10]


def _around(values: pd.Series[float]) -> list[float]:
    least, most = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    least, most = min(least, 0.0), max(most, 0.0)
    margin = 0.12 * (most - least or 1.0)
    return [least - margin, most + margin]


MOST_LISTED = 6
# Of fewer annotators, a rank correlation below .65 can be chance.
LEAST_CORRELATED = 10
RANK_CORRELATIONS = {
    "n_judgments": gettext_lazy("its rank correlation with how much they worked is %(value)s"),
    "seconds": gettext_lazy("its rank correlation with how slowly they worked is %(value)s"),
}


def forest_in_words(rows: pd.DataFrame) -> str:
    defined = rows[rows["value"].notna()]
    if defined.empty:
        return _("No coefficient is defined.")
    if len(defined) > MOST_LISTED:
        n = len(defined)
        return ngettext("%(n)d coefficient, %(range)s.", "%(n)d coefficients, %(range)s.", n) % {
            "n": n,
            "range": _range(defined, "value", "label"),
        }
    return _("Alpha with its interval: %(values)s.") % {
        "values": "; ".join(_with_interval(row) for row in defined.to_dict(orient="records"))
    }


def matrix_in_words(pairs: pd.DataFrame, statistic: str) -> str:
    defined = pairs[pairs["value"].notna()]
    if defined.empty:
        return _("No two annotators share enough candidates.")
    pair = _("%(first)s and %(second)s")
    names = [
        pair % {"first": row["annotator_a"], "second": row["annotator_b"]}
        for row in defined.to_dict(orient="records")
    ]
    return ngettext(
        "%(statistic)s of %(n)d pair, %(range)s, median %(median)s.",
        "%(statistic)s of %(n)d pairs, %(range)s, median %(median)s.",
        len(defined),
    ) % {
        "statistic": statistic,
        "n": len(defined),
        "range": _range(defined.assign(pair=names), "value", "pair"),
        "median": f"{defined['value'].median():.2f}",
    }


def scatter_in_words(annotators: pd.DataFrame, against: str, statistic: str) -> str:
    compared = annotators[annotators["agreement"].notna() & annotators[against].gt(0)]
    if annotators["agreement"].isna().all():
        return _("No annotator shares candidates with others.")
    if compared.empty:
        return _("The times of judgments are unknown: the answers hold none.")
    text = ngettext(
        "%(statistic)s of %(n)d annotator, %(range)s",
        "%(statistic)s of %(n)d annotators, %(range)s",
        len(compared),
    )
    values = {"statistic": statistic, "n": len(compared)}
    sentence = text % (values | {"range": _range(compared, "agreement", "annotator")})
    if (
        len(compared) >= LEAST_CORRELATED
        and compared[against].nunique() > 1
        and compared["agreement"].nunique() > 1
    ):
        along = compared["agreement"].rank().corr(compared[against].rank())
        sentence += "; " + RANK_CORRELATIONS[against] % {"value": f"{along:.2f}"}
    return f"{sentence}."


def _with_interval(row: Mapping[Any, Any]) -> str:
    limits = "" if pd.isna(row["ci_low"]) else f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    return f"{row['label']} ({row['part']}) {row['value']:.2f}{limits}"


def _range(rows: pd.DataFrame, value: str, name: str) -> str:
    low, high = rows.iloc[rows[value].argmin()], rows.iloc[rows[value].argmax()]
    return _("from %(low)s (%(lowest)s) to %(high)s (%(highest)s)") % {
        "low": f"{low[value]:.2f}",
        "lowest": low[name],
        "high": f"{high[value]:.2f}",
        "highest": high[name],
    }
