"""What a picture shows, in words: for those who do not see it, and for a caption."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from validation.charts.sample_size import people_text
from validation.charts.sizes import MOST_POINTS

MOST_LISTED = 6


def forest_in_words(rows: pd.DataFrame, statistic: str) -> str:
    """Each metric's correlation with its interval, or the range of them where they are many."""
    defined = rows[rows["value"].notna()]
    if defined.empty:
        return f"{statistic} is defined for no metric."
    if len(defined) > MOST_LISTED:
        told = f"{len(defined)} correlations, {_range(defined)}"
    else:
        told = "; ".join(_with_interval(row) for row in defined.to_dict(orient="records"))
    ceilings = rows["ceiling"].dropna().unique()
    if len(ceilings):
        low, high = min(ceilings), max(ceilings)
        told += f". Ceiling {low:.2f}" + (f" to {high:.2f}" if high > low else "")
    n_undefined = len(rows) - len(defined)
    return f"{statistic}: {told}{_undefined(n_undefined)}."


def heat_map_in_words(rows: pd.DataFrame, statistic: str) -> str:
    """How many cells there are, and the least and the greatest."""
    defined = rows[rows["value"].notna()]
    if defined.empty:
        return f"{statistic} is defined for no metric and question."
    n_undefined = len(rows) - len(defined)
    named = defined.assign(metric=defined["metric"] + " for " + defined["question"])
    sizes = f"{rows['metric'].nunique()} metrics by {rows['question'].nunique()} questions"
    return f"{statistic} of {sizes}, {_range(named)}{_undefined(n_undefined)}."


def scatter_in_words(cells: pd.DataFrame, human: str, metric: str) -> str:
    """How many candidates there are, and how their two values go along."""
    whole = cells.dropna(subset=["human", "score"])
    told = f"{metric} against {human}, {len(whole):,} candidates"
    if len(whole) > MOST_POINTS:
        told += ", counted by part"
    if min(whole["human"].nunique(), whole["score"].nunique()) > 1:
        told += f"; their correlation is r = {whole['human'].corr(whole['score']):.2f}"
    return f"{told}."


def significance_in_words(comparisons: pd.DataFrame, p: str = "p_holm", alpha: float = 0.05) -> str:
    """How many pairs differ, and which."""
    tested = comparisons[comparisons[p].notna()]
    if tested.empty:
        return "No two metrics could be tested."
    sure = tested[tested[p] < alpha]
    told = f"{len(sure)} of {len(tested)} pairs of metrics differ at {alpha:g}, by adjusted p"
    pairs = [
        f"{row['metric_a']} over {row['metric_b']}"
        if row["delta"] > 0
        else f"{row['metric_b']} over {row['metric_a']}"
        for row in sure.to_dict(orient="records")
    ]
    if 0 < len(pairs) <= MOST_LISTED:
        told += f": {'; '.join(pairs)}"
    return f"{told}."


def ranks_in_words(ranks: pd.DataFrame) -> str:
    """People's order of the systems, and the metric that departs from it most."""
    if ranks.empty:
        return "There are no systems to rank."
    by_all = ranks.pivot(index="system", columns="by", values="rank")
    first, *metrics = list(dict.fromkeys(ranks["by"]))
    order = by_all[first].sort_values(kind="stable").index
    told = f"By {first}, from best to worst: {', '.join(map(str, order))}"
    if metrics:
        moved = by_all[metrics].sub(by_all[first], axis=0).abs().mean()
        least, most = moved.idxmin(), moved.idxmax()
        told += f". {least} is nearest to this order"
        if most != least:
            told += f", {most} farthest from it"
    return f"{told}."


def curve_in_words(curve: pd.DataFrame, power: float = 0.8) -> str:
    """The least number of items that reaches the power, for each number of ratings."""
    known = curve[curve["power"].notna()]
    if known.empty:
        return "The power is undefined at every size."
    told = [_reached(part, power) for _, part in known.groupby("n_annotators", dropna=False)]
    return f"{'. '.join(told)}."


def _reached(curve: pd.DataFrame, power: float) -> str:
    people = people_text(curve["n_annotators"].iloc[0])
    ratings = f"With {people}, " if people else ""
    enough = curve.loc[curve["power"] >= power, "n_items"]
    if enough.empty:
        most = curve.sort_values("n_items").iloc[-1]
        return f"{ratings}{most['n_items']:,.0f} items reach a power of {most['power']:.0%} only"
    return f"{ratings}{enough.min():,.0f} items reach a power of {power:.0%}"


def _range(rows: pd.DataFrame) -> str:
    ordered = rows.sort_values("value", kind="stable")
    low, high = ordered.iloc[0], ordered.iloc[-1]
    return f"from {low['value']:.2f} ({low['metric']}) to {high['value']:.2f} ({high['metric']})"


def _with_interval(row: Mapping[Any, Any]) -> str:
    part = f" ({row['part']})" if row["part"] else ""
    limits = "" if pd.isna(row["ci_low"]) else f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    return f"{row['metric']}{part} {row['value']:.2f}{limits}"


def _undefined(n: int) -> str:
    return f"; {n} undefined" if n else ""
