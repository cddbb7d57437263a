from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from presentation.documents import Figure
from stats.libraries import pd
from validation.analysis.records import (
    ComparisonRecord,
    CorrelationRecord,
    PlanRecord,
    SystemRecord,
    plain,
)
from validation.charts.metrics import correlation_forest, correlation_heat_map, significance_matrix
from validation.charts.systems import (
    HUMAN_RATINGS,
    curve_in_words,
    forest_in_words,
    heat_map_in_words,
    human_metric_scatter,
    points_or_parts,
    power_curve,
    ranks_in_words,
    scatter_in_words,
    significance_in_words,
    system_rank_bump,
)
from validation.documents.terms import reason_in_words, statistic
from validation.results import ALL, CONDITION, Results, ScatterRows

NUMBERS = ["value", "ci_low", "ci_high", "ceiling"]


def forest_figure(
    results: Results, question: str, *, level: str = "", coefficient: str = "", by: str = ""
) -> Figure:
    level, coefficient = level or results.level, coefficient or results.coefficient
    rows = _correlation_rows(
        results,
        question=question,
        scope=CONDITION if by else ALL,
        by=by,
        level=level,
        coefficient=coefficient,
    )
    rows = rows.sort_values("value", ascending=False, kind="stable", na_position="last")
    named = statistic(coefficient, level)
    return Figure(
        name=_name("forest", results, question),
        caption=_("%(question)s: agreement of metrics with human ratings")
        % {"question": _of(question, by)},
        words=forest_in_words(rows, named),
        draw=partial(
            correlation_forest, rows, statistic=named, confidence=results.settings.confidence
        ),
        rows=_plain(rows),
    )


def heat_map_figure(
    results: Results, *, level: str = "", coefficient: str = "", by: str = ""
) -> Figure:
    """Metrics by questions; by conditions if there is one question."""
    level, coefficient = level or results.level, coefficient or results.coefficient
    over_conditions = len(results.questions) == 1 and bool(results.conditions) and not by
    selection = (
        {"scope": CONDITION} if over_conditions else {"scope": CONDITION if by else ALL, "by": by}
    )
    rows = _correlation_rows(results, level=level, coefficient=coefficient, **selection)
    rows = rows.assign(question=rows["part"] if over_conditions else rows["question"])
    named = statistic(coefficient, level)
    by_conditions = _("Agreement of metrics with human ratings, by condition")
    by_questions = _("Agreement of metrics with human ratings, by question")
    return Figure(
        name="heat-map",
        caption=by_conditions if over_conditions else by_questions,
        words=heat_map_in_words(rows, named),
        draw=partial(correlation_heat_map, rows, statistic=named),
        rows=_plain(rows),
    )


def significance_figure(
    results: Results, question: str, *, level: str = "", coefficient: str = "", by: str = ""
) -> Figure:
    level, coefficient = level or results.level, coefficient or results.coefficient
    selection = {"question": question, "scope": CONDITION if by else ALL, "by": by}
    measure = {"level": level, "coefficient": coefficient}
    tests = [
        plain(row)
        | dict(zip(("metric_a", "metric_b"), results.pair_labels(row), strict=True))
        | {"reason": reason_in_words(row.reason)}
        for row in results.rows(ComparisonRecord, **selection, **measure)
    ]
    names = ["metric_a", "metric_b", "delta", "ci_low", "ci_high", "test", "p", "p_holm", "p_bh"]
    rows = _frame(tests, [*names, "reason"], ["delta", "p", "p_holm", "p_bh"])
    values = _correlation_rows(results, **selection, **measure)
    ordered = values.sort_values("value", ascending=False, kind="stable", na_position="last")
    return Figure(
        name=_name("significance", results, question),
        caption=_("%(question)s: which metrics differ beyond chance, %(statistic)s")
        % {"question": _of(question, by), "statistic": statistic(coefficient, level)},
        words=significance_in_words(rows, alpha=results.settings.alpha),
        draw=partial(significance_matrix, rows, order=list(dict.fromkeys(ordered["metric"]))),
        rows=_plain(rows),
    )


def ranks_figure(results: Results, question: str, *, by: str = "") -> Figure:
    selection = {"question": question, "scope": CONDITION if by else ALL, "by": by}
    systems = sorted(results.rows(SystemRecord, **selection), key=lambda row: row.rank or 0.0)
    human_ranks = [
        {"system": row.system, "by": HUMAN_RATINGS, "rank": row.rank, "mean": row.mean}
        for row in systems
    ]
    of_metrics = [
        {
            "system": row.system,
            "by": results.label(metric),
            "rank": metric.rank,
            "mean": metric.mean,
        }
        for number in range(len(systems[0].metrics) if systems else 0)
        for row in systems
        for metric in [row.metrics[number]]
    ]
    rows = _frame([*human_ranks, *of_metrics], ["system", "by", "rank", "mean"], ["rank", "mean"])
    rows = rows[rows["rank"].notna()]
    return Figure(
        name=_name("ranks", results, question),
        caption=_("%(question)s: the systems' ranks by human ratings and by metrics")
        % {"question": _of(question, by)},
        words=ranks_in_words(rows),
        draw=partial(system_rank_bump, rows),
        rows=_plain(rows),
    )


def scatter_rows(question: str, metric: str, cells: pd.DataFrame) -> ScatterRows:
    """`cells` has the columns human and score. The words describe all candidates, even if bins are
    drawn."""
    words = scatter_in_words(cells, **_scatter_titles(question, metric))
    return ScatterRows(words, tuple(map(dict, _plain(points_or_parts(cells)))))


def scatter_figure(results: Results, question: str, metric: str, scatter: ScatterRows) -> Figure:
    titles = _scatter_titles(question, metric)
    return Figure(
        name=_name("scatter", results, question),
        caption=scatter_caption(question, metric),
        words=scatter.words,
        draw=lambda: human_metric_scatter(pd.DataFrame(list(scatter.rows)), **titles),
        rows=scatter.rows,
    )


def scatter_caption(question: str, metric: str) -> str:
    return _("%(question)s: human value and score of %(metric)s, candidate by candidate") % {
        "question": question,
        "metric": metric,
    }


def _of(question: str, condition: str) -> str:
    return f"{question}, {condition}" if condition else question


def _scatter_titles(question: str, metric: str) -> dict[str, str]:
    return {
        "human": _("%(question)s, human value") % {"question": question},
        "metric": _("%(metric)s, score") % {"metric": metric},
    }


def curve_figure(results: Results, number: int, curve: Sequence[PlanRecord]) -> Figure:
    names = ["n_items", "n_annotators", "delta", "se", "power"]
    rows = _frame([plain(row) for row in curve], names, names)
    plan = curve[0]
    pair = dict(zip(("metric_a", "metric_b"), results.pair_labels(plan), strict=True))
    named = statistic(plan.coefficient, plan.level)
    return Figure(
        name=f"sample-size-{number}",
        caption=_(
            "%(question)s: items needed to tell %(metric_a)s from %(metric_b)s, %(statistic)s"
        )
        % (pair | {"question": plan.question, "statistic": named}),
        words=curve_in_words(rows, plan.power_wanted),
        draw=partial(power_curve, rows, **pair, power=plan.power_wanted),
        rows=_plain(rows),
    )


def _correlation_rows(
    results: Results, *, coefficient: str, question: str | None = None, **selection: str
) -> pd.DataFrame:
    """Queried by level and selection only, so that the charts of a page share a query."""
    rows = [
        {
            "metric": results.label(row),
            "question": row.question,
            "part": row.by,
            "value": row.value,
            "ci_low": row.ci_low,
            "ci_high": row.ci_high,
            "ceiling": row.attainable,
            "reason": reason_in_words(row.reason),
            "n_used": row.n_used,
        }
        for row in results.rows(CorrelationRecord, **selection)
        if row.coefficient == coefficient and question in (None, row.question)
    ]
    return _frame(rows, ["metric", "question", "part", *NUMBERS, "reason", "n_used"], NUMBERS)


def _frame(rows: list[Any], columns: list[str], numbers: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(numbers, "float64"))


def _plain(rows: pd.DataFrame) -> list[Mapping[str, Any]]:
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in rows.to_dict(orient="records")
    ]


def _name(kind: str, results: Results, question: str) -> str:
    return f"{kind}-q{results.questions.index(question) + 1}"
