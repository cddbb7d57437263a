"""Ready-made tables, laid out as papers of the field do, of any study.

The LMStyle Benchmark's Tables 1 and 3 and G-Eval's, of a validation. `score_layouts` has those
of scores alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from validation.documents.cells import best_in_columns, correlation, signed
from validation.documents.content import ALL, CONDITION, MEAN, Content, Record
from validation.documents.documents import Column, Number, Row, Table
from validation.documents.system_tables import human_mean
from validation.documents.tables import METRIC, QUESTION, SYSTEM
from validation.documents.wording import LEVELS_TOLD, SYMBOLS

OVERALL = "Overall"
G_EVAL_COEFFICIENTS = ("pearson", "spearman", "kendall")
LMSTYLE_COEFFICIENTS = ("pearson", "kendall")


def lmstyle_correlations(
    content: Content, coefficients: Sequence[str] = LMSTYLE_COEFFICIENTS
) -> Table:
    """LMStyle's Table 1: metrics by conditions and coefficients, sample level, times 100."""
    places = [(CONDITION, name, name) for name in content.conditions]
    places += [(MEAN, "", OVERALL)] if content.conditions else [(ALL, "", OVERALL)]
    cells = [
        (scope, by, title, coefficient)
        for scope, by, title in places
        for coefficient in coefficients
    ]
    columns = [QUESTION, METRIC]
    columns += [Column(SYMBOLS[of], group=title) for _, _, title, of in cells]
    sample = content.records("correlations", level="item")
    found = {(*_source(row), row["scope"], row["by"], row["coefficient"]): row for row in sample}
    rows: list[Row] = [
        (
            source[0],
            content.label({"metric": source[1], "signature": source[2]}),
            *(
                _of_sample(content, found.get((*source, scope, by, coefficient)))
                for scope, by, _, coefficient in cells
            ),
        )
        for source in dict.fromkeys(map(_source, sample))
    ]
    return Table(
        name="lmstyle-1",
        caption="Correlation of metrics with people, × 100",
        columns=columns,
        rows=best_in_columns(rows, keys=1),
        note=f"Correlations are {LEVELS_TOLD['item']}. {OVERALL} is the mean of the conditions. "
        "The greatest of a question and column is in bold."
        if content.conditions
        else f"Correlations are {LEVELS_TOLD['item']}.",
    )


def _source(row: Record) -> tuple[str, str, str]:
    return row["question"], row["metric"], row["signature"]


def _of_sample(content: Content, record: Record | None) -> Number:
    return correlation(content, record, scale=100, decimals=1, with_interval=False)


def lmstyle_people(content: Content, with_interval: bool = False) -> Table:
    """LMStyle's Table 3: the systems' mean human values by question and condition."""
    places = [(CONDITION, name, name) for name in content.conditions] + [(ALL, "", OVERALL)]
    found = {
        (row["question"], row["system"], row["scope"], row["by"]): row
        for row in content.records("systems")
    }
    rows: list[Row] = [
        (
            question,
            system,
            *(
                _human(content, found.get((question, system, scope, by)), with_interval)
                for scope, by, _ in places
            ),
        )
        for question, system in dict.fromkeys((question, system) for question, system, *_ in found)
    ]
    return Table(
        name="lmstyle-3",
        caption="The systems' mean human values",
        columns=[QUESTION, SYSTEM, *(Column(title) for *_, title in places)],
        rows=best_in_columns(rows, keys=1),
        note="The greatest of a question and column is in bold.",
    )


def _human(content: Content, record: Record | None, with_interval: bool) -> Number:
    if record is None:
        return Number(None, reason="nobody judged the system there")
    found = human_mean(content, record, decimals=1)
    return found if with_interval else _without_interval(found)


def _without_interval(number: Number) -> Number:
    return Number(number.value, number.decimals, reason=number.reason, signature=number.signature)


def g_eval(content: Content, level: str) -> Table:
    """G-Eval's table: metrics by questions, each with r, rho and tau, at one level."""
    of_level = content.records("correlations", level=level, scope=ALL)
    found = {(*_source(row), row["coefficient"]): row for row in of_level}
    sets = list(dict.fromkeys(_source(row)[1:] for row in of_level))
    asked = [(question, of) for question in content.questions for of in G_EVAL_COEFFICIENTS]
    rows: list[Row] = [
        (
            content.label({"metric": run[0], "signature": run[1]}),
            *(_bare(content, found.get((question, *run, of))) for question, of in asked),
            *(_average(content, found, run, of) for of in G_EVAL_COEFFICIENTS),
        )
        for run in sets
    ]
    columns = [Column(SYMBOLS[of], group=question) for question, of in asked]
    columns += [Column(SYMBOLS[of], group="Average") for of in G_EVAL_COEFFICIENTS]
    return Table(
        name=f"g-eval-{level}",
        caption=f"Correlation of metrics with people, {LEVELS_TOLD.get(level, level)}",
        columns=[METRIC, *columns],
        rows=best_in_columns(rows),
        note="The greatest of a column is in bold. Average: the mean of the questions, where all "
        "are defined.",
    )


def _bare(content: Content, record: Record | None) -> Number:
    return correlation(content, record, decimals=3, with_interval=False)


def _average(
    content: Content, found: dict[Any, Record], run: tuple[str, str], coefficient: str
) -> Number:
    """The mean over questions, undefined where one is."""
    records = [found.get((question, *run, coefficient)) for question in content.questions]
    values = [None if record is None else record["value"] for record in records]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return Number(None, reason="undefined for a question")
    first = next(record for record in records if record is not None)
    place = {name: first[name] for name in ("scope", "level", "coefficient", "signature")}
    signature = signed(content, "mean_of_questions", place)
    return Number(sum(known) / len(known), 3, signature=signature)
