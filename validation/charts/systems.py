from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from django.utils.translation import gettext as _, ngettext

from error_codes import CodedText
from presentation.libraries import alt
from presentation.theme import (
    FILLING,
    SERIES,
    ZERO,
    Picture,
    axis_title,
    height_of_rows,
)
from stats.arguments import Floats
from stats.libraries import np, pd
from validation.charts.metrics import MOST_COLOURS, MOST_POINTS, N_BINS

HUMAN_RATINGS = "human ratings"
ROW_HEIGHT = 30
# So many characters of systems' names stand beside a line's end.
ROOM_FOR_NAMES = 30


def rating_means(rows: pd.DataFrame, *, title: str, ends: tuple[float, float]) -> Picture:
    """A point for each system's mean with its interval, on the whole scale.

    `rows` has the columns system, value, ci_low and ci_high, in the order to be drawn.
    """
    base = alt.Chart(rows).encode(
        y=alt.Y("system:N", title=None, sort=list(rows["system"])),
    )
    x = alt.X("value:Q", title=axis_title(title), scale=alt.Scale(domain=ends, nice=False))
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("ci_low:Q"), x2="ci_high:Q")
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=x)
    height = height_of_rows(len(rows), 1, step=16)
    return alt.layer(spans, points).properties(width="container", height=height, autosize=FILLING)


def system_rank_bump(ranks: pd.DataFrame) -> Picture:
    """A line for each system through its rank by human ratings and by each metric, best on top.

    `ranks` has the columns system, by ("human ratings" or a metric), rank (1 is best; ties share
    one) and mean, in the order to be drawn. Beyond five systems, colour is for those whose
    ranks differ most.
    """
    columns = list(dict.fromkeys(ranks["by"]))
    bold = most_moved(ranks)
    rest = [name for name in dict.fromkeys(ranks["system"]) if name not in bold]
    colours = SERIES[: len(bold)] + [ZERO] * len(rest)
    n_ranks = int(ranks["rank"].max()) if len(ranks) else 1
    base = alt.Chart(ranks).encode(
        x=alt.X(
            "by:N",
            title=None,
            sort=columns,
            scale=alt.Scale(domain=columns, type="point", padding=0.25),
            axis=alt.Axis(orient="top", labelAngle=-90 if len(columns) > 4 else 0, grid=True),
        ),
        y=alt.Y(
            "rank:Q",
            title=None,
            scale=alt.Scale(domain=[n_ranks + 0.5, 0.5], nice=False),
            axis=_named_axis(ranks, columns[:1], "left"),
        ),
        color=alt.Color(
            "system:N", legend=None, scale=alt.Scale(domain=[*bold, *rest], range=colours)
        ),
    )
    tips = [
        alt.Tooltip("system:N", title=_("System")),
        alt.Tooltip("by:N", title=_("Ranked by")),
        alt.Tooltip("rank:Q", title=_("Rank")),
        alt.Tooltip("mean:Q", format=".3f", title=_("Mean")),
    ]
    is_bold = alt.FieldOneOfPredicate(field="system", oneOf=bold)
    width = alt.condition(is_bold, alt.value(2.5), alt.value(1))
    lines = base.mark_line().encode(detail="system:N", strokeWidth=width)
    points = base.mark_point(size=90, opacity=1).encode(tooltip=tips)
    # A scale of its own lets the names at the other end be an axis too.
    far_end = base.mark_point(opacity=0).encode(
        y=alt.Y(
            "rank:Q",
            title=None,
            scale=alt.Scale(domain=[n_ranks + 0.5, 0.5], nice=False),
            axis=_named_axis(ranks, columns[1:][-1:], "right"),
        )
    )
    drawn = alt.layer(alt.layer(lines, points), far_end).resolve_scale(y="independent")
    height = max(4, n_ranks) * ROW_HEIGHT
    sized: Picture = drawn.properties(width="container", height=height, autosize=FILLING)
    return sized


def most_moved(ranks: pd.DataFrame) -> list[str]:
    spread = ranks.groupby("system", sort=False)["rank"].agg(lambda of: of.max() - of.min())
    moved = set(spread.sort_values(ascending=False, kind="stable").index[:MOST_COLOURS])
    return [str(name) for name in dict.fromkeys(ranks["system"]) if name in moved]


def _named_axis(
    ranks: pd.DataFrame, by: list[str], side: Literal["left", "right"]
) -> alt.Axis | None:
    of_one = ranks[ranks["by"].isin(by)]
    if of_one.empty:
        return None
    names = of_one.groupby("rank", sort=True)["system"].agg(_joined)
    labels = {
        f"{rank:g}": f"{name} {rank:g}" if side == "left" else f"{rank:g} {name}"
        for rank, name in names.items()
    }
    return alt.Axis(
        orient=side,
        values=[float(str(rank)) for rank in names.index],
        labelExpr=f"{json.dumps(labels)}[datum.value]",
        labelLimit=240,
        grid=False,
        domain=False,
        ticks=False,
    )


def _joined(names: pd.Series[str]) -> str:
    joined = ", ".join(names)
    return joined if len(joined) <= ROOM_FOR_NAMES else f"{joined[: ROOM_FOR_NAMES - 1]}…"


HEIGHT = 320


def human_metric_scatter(cells: pd.DataFrame, *, human: str, metric: str) -> Picture:
    """A point for each candidate, or the number of candidates in each part of the plane.

    `cells` has the columns human and score, a row a candidate; or those of `density`, which is
    what becomes of more than 2,000 candidates. `human` and `metric` are the axes' titles.
    """
    bounded = points_or_parts(cells)
    draw = _counts if "n" in bounded else _points
    drawn = draw(bounded, axis_title(human), axis_title(metric))
    sized: Picture = drawn.properties(width="container", height=HEIGHT, autosize=FILLING)
    return sized


def points_or_parts(cells: pd.DataFrame) -> pd.DataFrame:
    if "n" in cells:
        return cells
    known = cells.dropna(subset=["human", "score"])
    return density(known) if len(known) > MOST_POINTS else known


def density(cells: pd.DataFrame, n_bins: int = N_BINS) -> pd.DataFrame:
    known = cells.dropna(subset=["human", "score"])
    edges = [_edges(known[name].to_numpy(), n_bins) for name in ("human", "score")]
    n, human, score = np.histogram2d(known["human"], known["score"], bins=edges)
    rows, columns = np.nonzero(n)
    return pd.DataFrame(
        {
            "human_low": human[rows],
            "human_high": human[rows + 1],
            "score_low": score[columns],
            "score_high": score[columns + 1],
            "n": n[rows, columns].astype(int),
        }
    )


def _edges(values: Floats, n_bins: int) -> Floats:
    different = np.unique(values)
    if not 1 < len(different) <= n_bins:
        return np.histogram_bin_edges(values, bins=n_bins)
    middles = (different[:-1] + different[1:]) / 2
    first, last = 2 * different[0] - middles[0], 2 * different[-1] - middles[-1]
    return np.concatenate([[first], middles, [last]])


def _points(cells: pd.DataFrame, human: list[str], metric: list[str]) -> Picture:
    names = [name for name in ("item", "candidate", "system") if name in cells]
    drawn: Picture = (
        alt.Chart(cells)
        .mark_point(size=28, opacity=0.35)
        .encode(
            x=alt.X("human:Q", title=human, scale=alt.Scale(zero=False, nice=False, padding=8)),
            y=alt.Y("score:Q", title=metric, scale=alt.Scale(zero=False, nice=False, padding=8)),
            tooltip=[
                *(alt.Tooltip(f"{name}:N", title=name.title()) for name in names),
                alt.Tooltip("human:Q", format=".2f", title=_("People")),
                alt.Tooltip("score:Q", format=".3f", title=_("Score")),
            ],
        )
    )
    return drawn


def _counts(parts: pd.DataFrame, human: list[str], metric: list[str]) -> Picture:
    # The root lets the thin edge of a cloud show beside its heart.
    shade = alt.Scale(type="sqrt", range=[0.12, 1], domainMin=0)
    drawn: Picture = (
        alt.Chart(parts)
        .mark_rect()
        .encode(
            x=alt.X("human_low:Q", title=human, scale=alt.Scale(zero=False, nice=False)),
            x2="human_high:Q",
            y=alt.Y("score_low:Q", title=metric, scale=alt.Scale(zero=False, nice=False)),
            y2="score_high:Q",
            opacity=alt.Opacity("n:Q", title=_("Candidates"), scale=shade),
            tooltip=[alt.Tooltip("n:Q", format=",", title=_("Candidates"))],
        )
    )
    return drawn


CURVE_HEIGHT = 280


def power_curve(
    curve: pd.DataFrame, *, metric_a: str, metric_b: str, power: float = 0.8
) -> Picture:
    """The power to distinguish two metrics by the number of items, a line a number of annotators.

    `curve` is a frame of `stats.power_curves.sample_size_curve`; `power` is the one wished for.
    """
    drawn = curve[curve["power"].notna()].assign(ratings=curve["n_annotators"].map(ratings_text))
    kinds = list(dict.fromkeys(drawn["ratings"]))
    base = alt.Chart(drawn).encode(
        x=alt.X(
            "n_items:Q",
            title=_("Items in the study"),
            scale=alt.Scale(zero=True, nice=False),
        ),
        y=alt.Y(
            "power:Q",
            title=axis_title(
                _("Power to tell %(one)s from %(other)s") % {"one": metric_a, "other": metric_b}
            ),
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format=".0%", tickCount=5),
        ),
        color=alt.Color(
            "ratings:N",
            title=None,
            # Not names at the lines' ends: these meet where the power comes near to 1.
            legend=alt.Legend(orient="top", columns=2) if any(kinds) else None,
            scale=alt.Scale(domain=kinds, range=SERIES),
        ),
    )
    tips = [
        alt.Tooltip("n_items:Q", format=",", title=_("Items")),
        alt.Tooltip("ratings:N", title=_("Ratings")),
        alt.Tooltip("power:Q", format=".0%", title=_("Power")),
        alt.Tooltip("delta:Q", format="+.3f", title=_("Difference")),
    ]
    target = alt.Chart().mark_rule(strokeDash=[4, 3]).encode(y=alt.datum(power))
    return alt.layer(
        target, base.mark_line(strokeWidth=2.5), base.mark_point(opacity=1).encode(tooltip=tips)
    ).properties(width="container", height=CURVE_HEIGHT, autosize=FILLING)


def ratings_text(n_annotators: float) -> str:
    if pd.isna(n_annotators):
        return ""
    n = 1 if n_annotators == 1 else 2  # a mean, as 2.5, has the plural
    return ngettext("%(n)s rating each", "%(n)s ratings each", n) % {"n": f"{n_annotators:.3g}"}


MOST_LISTED = 6


def forest_in_words(rows: pd.DataFrame, statistic: str) -> str:
    defined = rows[rows["value"].notna()]
    if defined.empty:
        return CodedText(
            _("%(statistic)s is defined for no metric.") % {"statistic": statistic},
            code="undefined",
        )
    if len(defined) > MOST_LISTED:
        n = len(defined)
        sentence = ngettext("%(n)d correlation, %(range)s", "%(n)d correlations, %(range)s", n) % {
            "n": n,
            "range": _range(defined),
        }
    else:
        sentence = "; ".join(_with_interval(row) for row in defined.to_dict(orient="records"))
    ceilings = rows["ceiling"].dropna().unique()
    if len(ceilings):
        low, high = min(ceilings), max(ceilings)
        ceiling = _("Ceiling %(low)s to %(high)s") if high > low else _("Ceiling %(low)s")
        sentence += ". " + ceiling % {"low": f"{low:.2f}", "high": f"{high:.2f}"}
    return f"{statistic}: {sentence}{_undefined(len(rows) - len(defined))}."


def heat_map_in_words(rows: pd.DataFrame, statistic: str) -> str:
    defined = rows[rows["value"].notna()]
    if defined.empty:
        return CodedText(
            _("%(statistic)s is defined for no metric and question.") % {"statistic": statistic},
            code="undefined",
        )
    pair = _("%(metric)s for %(question)s")
    named = defined.assign(metric=[pair % row for row in defined.to_dict(orient="records")])
    values = {"statistic": statistic, "range": _range(named) + _undefined(len(rows) - len(defined))}
    return _("%(statistic)s, metrics by questions: %(metrics)d by %(questions)d, %(range)s.") % (
        values | {"metrics": rows["metric"].nunique(), "questions": rows["question"].nunique()}
    )


def scatter_in_words(cells: pd.DataFrame, human: str, metric: str) -> str:
    known = cells.dropna(subset=["human", "score"])
    sentence = ngettext(
        "%(metric)s against %(human)s, %(n)s candidate",
        "%(metric)s against %(human)s, %(n)s candidates",
        len(known),
    ) % {"metric": metric, "human": human, "n": f"{len(known):,}"}
    if len(known) > MOST_POINTS:
        sentence += _(", counted by part")
    if min(known["human"].nunique(), known["score"].nunique()) > 1:
        r = f"{known['human'].corr(known['score']):.2f}"
        sentence += _("; their correlation is r = %(r)s") % {"r": r}
    return f"{sentence}."


def significance_in_words(comparisons: pd.DataFrame, p: str = "p_holm", alpha: float = 0.05) -> str:
    tested = comparisons[comparisons[p].notna()]
    if tested.empty:
        return CodedText(_("No two metrics could be tested."), code="undefined")
    sure = tested[tested[p] < alpha]
    sentence = ngettext(
        "%(n)d of %(total)d pair of metrics differs at %(alpha)s, by adjusted p",
        "%(n)d of %(total)d pairs of metrics differ at %(alpha)s, by adjusted p",
        len(comparisons),
    ) % {"n": len(sure), "total": len(comparisons), "alpha": f"{alpha:g}"}
    pairs = [_over(row) for row in sure.to_dict(orient="records")]
    if 0 < len(pairs) <= MOST_LISTED:
        sentence += f": {'; '.join(pairs)}"
    return f"{sentence}."


def _over(row: Mapping[Any, Any]) -> str:
    better, worse = row["metric_a"], row["metric_b"]
    if not row["delta"] > 0:
        better, worse = worse, better
    return _("%(better)s over %(worse)s") % {"better": better, "worse": worse}


def ranks_in_words(ranks: pd.DataFrame) -> str:
    if ranks.empty:
        return CodedText(_("There are no systems to rank."), code="undefined")
    by_all = ranks.pivot(index="system", columns="by", values="rank")
    first, *metrics = list(dict.fromkeys(ranks["by"]))
    systems = ", ".join(map(str, by_all[first].sort_values(kind="stable").index))
    sentence = _("By %(by)s, from best to worst: %(systems)s") % {"by": first, "systems": systems}
    nearness = CodedText("", code="no_metrics")
    if metrics:
        nearness = _nearness(by_all[metrics].sub(by_all[first], axis=0).abs().mean())
    return CodedText(f"{sentence}{nearness}.", code=nearness.code)


def _nearness(moved: pd.Series[float]) -> CodedText:
    if moved.max() == 0:
        return CodedText(
            ngettext(". %(metrics)s has this order", ". %(metrics)s have this order", len(moved))
            % {"metrics": ", ".join(map(str, moved.index))},
            code="same_order",
        )
    if len(moved) > 1 and moved.min() == moved.max():
        return CodedText(_(". The metrics are equally far from this order"), code="equally_far")
    nearest, farthest = (moved.index[moved == end] for end in (moved.min(), moved.max()))
    sentence = ngettext(
        ". %(metrics)s is nearest to this order",
        ". %(metrics)s are nearest to this order",
        len(nearest),
    ) % {"metrics": ", ".join(map(str, nearest))}
    if len(moved) > 1:
        sentence += _(", %(metrics)s farthest from it") % {"metrics": ", ".join(map(str, farthest))}
    return CodedText(sentence, code="nearest")


def curve_in_words(curve: pd.DataFrame, power: float = 0.8) -> str:
    known = curve[curve["power"].notna()]
    if known.empty:
        return CodedText(_("The power is undefined at every size."), code="undefined")
    sentences = [_reached(part, power) for _, part in known.groupby("n_annotators", dropna=False)]
    return f"{'. '.join(sentences)}."


def _reached(curve: pd.DataFrame, power: float) -> str:
    ratings_each = ratings_text(curve["n_annotators"].iloc[0])
    ratings = f"With {ratings_each}, " if ratings_each else ""
    enough = curve.loc[curve["power"] >= power, "n_items"]
    if enough.empty:
        most = curve.sort_values("n_items").iloc[-1]
        return f"{ratings}{most['n_items']:,.0f} items reach a power of {most['power']:.0%} only"
    return f"{ratings}{enough.min():,.0f} items reach a power of {power:.0%}"


def _range(rows: pd.DataFrame) -> str:
    ordered = rows.sort_values("value", kind="stable")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    return _("from %(low)s (%(lowest)s) to %(high)s (%(highest)s)") % {
        "low": f"{low['value']:.2f}",
        "lowest": low["metric"],
        "high": f"{high['value']:.2f}",
        "highest": high["metric"],
    }


def _with_interval(row: Mapping[Any, Any]) -> str:
    part = f" ({row['part']})" if row["part"] else ""
    limits = "" if pd.isna(row["ci_low"]) else f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    return f"{row['metric']}{part} {row['value']:.2f}{limits}"


def _undefined(n: int) -> str:
    return ngettext("; %(n)d undefined", "; %(n)d undefined", n) % {"n": n} if n else ""
