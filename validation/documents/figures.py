"""The pictures of a report, each from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from validation.charts.forest import correlation_forest
from validation.charts.heat_map import correlation_heat_map
from validation.charts.ranks import PEOPLE, system_rank_bump
from validation.charts.sample_size import power_curve
from validation.charts.scatter import human_metric_scatter, points_or_parts
from validation.charts.significance import significance_matrix
from validation.charts.words import (
    curve_in_words,
    forest_in_words,
    heat_map_in_words,
    ranks_in_words,
    scatter_in_words,
    significance_in_words,
)
from validation.documents.content import ALL, CONDITION, Content, Record
from validation.documents.documents import Figure
from validation.documents.wording import reason_in_words, statistic

NUMBERS = ["value", "ci_low", "ci_high", "ceiling"]


def forest_figure(
    content: Content, question: str, *, level: str = "", coefficient: str = "", by: str = ""
) -> Figure:
    """Every metric's correlation with one question, in all conditions or one."""
    level, coefficient = level or content.level, coefficient or content.coefficient
    rows = _correlation_rows(
        content,
        question=question,
        scope=CONDITION if by else ALL,
        by=by,
        level=level,
        coefficient=coefficient,
    )
    rows = rows.sort_values("value", ascending=False, kind="stable", na_position="last")
    named = statistic(coefficient, level)
    return Figure(
        name=_name("forest", content, question),
        caption=f"{_of(question, by)}: agreement of metrics with people",
        words=forest_in_words(rows, named),
        chart=correlation_forest(
            rows, statistic=named, confidence=float(content.settings["confidence"])
        ),
        rows=_plain(rows),
    )


def heat_map_figure(
    content: Content, *, level: str = "", coefficient: str = "", by: str = ""
) -> Figure:
    """Every metric against every question; against conditions where there is one question."""
    level, coefficient = level or content.level, coefficient or content.coefficient
    over_conditions = len(content.questions) == 1 and bool(content.conditions) and not by
    place: dict[str, Any] = {"scope": CONDITION} if over_conditions or by else {"scope": ALL}
    place |= {"by": by} if by else {}
    rows = _correlation_rows(content, level=level, coefficient=coefficient, **place)
    across = rows["part"] if over_conditions else rows["question"]
    rows = rows.assign(question=across)
    named = statistic(coefficient, level)
    kind = "condition" if over_conditions else "question"
    return Figure(
        name="heat-map",
        caption=f"Agreement of metrics with people, by {kind}",
        words=heat_map_in_words(rows, named),
        chart=correlation_heat_map(rows, statistic=named),
        rows=_plain(rows),
    )


def significance_figure(
    content: Content, question: str, *, level: str = "", coefficient: str = "", by: str = ""
) -> Figure:
    """Which metrics differ beyond chance in one question."""
    level, coefficient = level or content.level, coefficient or content.coefficient
    place = {"question": question, "scope": CONDITION if by else ALL, "by": by}
    measure = {"level": level, "coefficient": coefficient}
    tests = [
        dict(row)
        | {"metric_a": content.label(row, "_a"), "metric_b": content.label(row, "_b")}
        | {"reason": reason_in_words(row["reason"])}
        for row in content.records("comparisons", **place, **measure)
    ]
    names = ["metric_a", "metric_b", "delta", "ci_low", "ci_high", "test", "p", "p_holm", "p_bh"]
    rows = _frame(tests, [*names, "reason"], ["delta", "p", "p_holm", "p_bh"])
    values = _correlation_rows(content, **place, **measure)
    ordered = values.sort_values("value", ascending=False, kind="stable", na_position="last")
    alpha = float(content.settings["alpha"])
    return Figure(
        name=_name("significance", content, question),
        caption=f"{_of(question, by)}: which metrics differ beyond chance, "
        f"{statistic(coefficient, level)}",
        words=significance_in_words(rows, alpha=alpha),
        chart=significance_matrix(rows, order=list(dict.fromkeys(ordered["metric"]))),
        rows=_plain(rows),
    )


def ranks_figure(content: Content, question: str, *, by: str = "") -> Figure:
    """The systems' ranks by people and by every metric."""
    place = {"question": question, "scope": CONDITION if by else ALL, "by": by}
    found = sorted(content.records("systems", **place), key=lambda row: row["rank"])
    of_people: list[Record] = [
        {"system": row["system"], "by": PEOPLE, "rank": row["rank"], "mean": row["mean"]}
        for row in found
    ]
    of_metrics: list[Record] = [
        {
            "system": row["system"],
            "by": content.label(metric),
            "rank": metric["rank"],
            "mean": metric["mean"],
        }
        for number in range(len(found[0]["metrics"]) if found else 0)
        for row in found
        for metric in [row["metrics"][number]]
    ]
    rows = _frame([*of_people, *of_metrics], ["system", "by", "rank", "mean"], ["rank", "mean"])
    rows = rows[rows["rank"].notna()]
    return Figure(
        name=_name("ranks", content, question),
        caption=f"{_of(question, by)}: the systems' ranks by people and by metrics",
        words=ranks_in_words(rows),
        chart=system_rank_bump(rows),
        rows=_plain(rows),
    )


def scatter_words(question: str, metric: str, cells: pd.DataFrame) -> str:
    """What the scatter of all those candidates shows."""
    return scatter_in_words(cells, **_scatter_titles(question, metric))


def scatter_figure(
    content: Content, question: str, metric: str, cells: pd.DataFrame, words: str = ""
) -> Figure:
    """People's values of the candidates against a metric's; `cells` as of `candidate_cells`.

    Of the parts of a plane, which hold the candidates no more, `words` must be handed in.
    """
    shown = points_or_parts(cells)
    return Figure(
        name=_name("scatter", content, question),
        caption=f"{question}: human value and score of {metric}, candidate by candidate",
        words=words or scatter_words(question, metric, cells),
        chart=human_metric_scatter(shown, **_scatter_titles(question, metric)),
        rows=_plain(shown),
    )


def _of(question: str, condition: str) -> str:
    return f"{question}, {condition}" if condition else question


def _scatter_titles(question: str, metric: str) -> dict[str, str]:
    return {"human": f"{question}, human value", "metric": f"{metric}, score"}


def curve_figure(content: Content, number: int, curve: Sequence[Record]) -> Figure:
    """How many items would tell two metrics apart; the records of one pair and measure."""
    names = ["n_items", "n_annotators", "delta", "se", "power"]
    rows = _frame([{name: row[name] for name in names} for row in curve], names, names)
    plan = curve[0]
    pair = {"metric_a": content.label(plan, "_a"), "metric_b": content.label(plan, "_b")}
    named = statistic(plan["coefficient"], plan["level"])
    return Figure(
        name=f"sample-size-{number}",
        caption=f"{plan['question']}: items needed to tell {pair['metric_a']} from "
        f"{pair['metric_b']}, {named}",
        words=curve_in_words(rows, plan["power_wanted"]),
        chart=power_curve(rows, **pair, power=plan["power_wanted"]),
        rows=_plain(rows),
    )


def _correlation_rows(content: Content, **place: Any) -> pd.DataFrame:
    """Correlations as the pictures take them."""
    rows = [
        {
            "metric": content.label(row),
            "question": row["question"],
            "part": row["by"],
            "value": row["value"],
            "ci_low": row["ci_low"],
            "ci_high": row["ci_high"],
            "ceiling": row.get("attainable"),
            "reason": reason_in_words(row["reason"]),
            "n_used": row["n_used"],
        }
        for row in content.records("correlations", **place)
    ]
    return _frame(rows, ["metric", "question", "part", *NUMBERS, "reason", "n_used"], NUMBERS)


def _frame(rows: list[Any], columns: list[str], numbers: list[str]) -> pd.DataFrame:
    """A frame with those columns even of no rows, whose numbers are NaN where undefined."""
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(numbers, "float64"))


def _plain(rows: pd.DataFrame) -> list[Mapping[str, Any]]:
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in rows.to_dict(orient="records")
    ]


def _name(kind: str, content: Content, question: str) -> str:
    return f"{kind}-q{content.questions.index(question) + 1}"
