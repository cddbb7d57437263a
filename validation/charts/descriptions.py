from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _, ngettext

from error_codes import CodedText
from stats.libraries import pd
from validation.charts.metrics import MOST_POINTS
from validation.charts.systems import ratings_text

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
    n_undefined = len(rows) - len(defined)
    pair = _("%(metric)s for %(question)s")
    named = defined.assign(metric=[pair % row for row in defined.to_dict(orient="records")])
    values = {"statistic": statistic, "range": _range(named) + _undefined(n_undefined)}
    sizes = {"metrics": rows["metric"].nunique(), "questions": rows["question"].nunique()}
    return _("%(statistic)s, metrics by questions: %(metrics)d by %(questions)d, %(range)s.") % (
        values | sizes
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
        len(tested),
    ) % {"n": len(sure), "total": len(tested), "alpha": f"{alpha:g}"}
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
    order = by_all[first].sort_values(kind="stable").index
    systems = ", ".join(map(str, order))
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
