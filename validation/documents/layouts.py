"""Ready-made tables, laid out as papers of the field do, of any study.

The LMStyle Benchmark's Tables 1 and 3 and G-Eval's, of a validation. `score_layouts` has those
of scores alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from presentation.documents import Cell, Column, Number, P, Row, Table
from presentation.numbers import group_values
from validation.analysis.records import CorrelationRecord, SystemRecord
from validation.documents.metric_tables import METRIC, QUESTION, SYSTEM
from validation.documents.system_tables import human_mean
from validation.documents.terms import (
    LEVEL_DESCRIPTIONS,
    SYMBOLS,
    UNKNOWN,
    correlation,
    percent_text,
    plain_signature,
    reason_in_words,
    signed,
)
from validation.results import ALL, CONDITION, MEAN, Results, labels_of

OVERALL = "Overall"
G_EVAL_COEFFICIENTS = ("pearson", "spearman", "kendall")
LMSTYLE_COEFFICIENTS = ("pearson", "kendall")


def lmstyle_correlations(
    results: Results, coefficients: Sequence[str] = LMSTYLE_COEFFICIENTS
) -> Table:
    """LMStyle's Table 1: metrics by conditions and coefficients, sample level, times 100."""
    parts = [(CONDITION, name, name) for name in results.conditions]
    parts += [(MEAN, "", OVERALL)] if results.conditions else [(ALL, "", OVERALL)]
    cells = [
        (scope, by, title, coefficient)
        for scope, by, title in parts
        for coefficient in coefficients
    ]
    columns = [QUESTION, METRIC]
    columns += [Column(SYMBOLS[of], group=title) for _, _, title, of in cells]
    sample = results.rows(CorrelationRecord, level="item")
    records = {(*_source(row), row.scope, row.by, row.coefficient): row for row in sample}
    rows: list[Row] = [
        (
            source[0],
            results.labels[source[1:]],
            *(
                correlation(
                    results,
                    records.get((*source, scope, by, coefficient)),
                    scale=100,
                    decimals=1,
                    with_interval=False,
                )
                for scope, by, _, coefficient in cells
            ),
        )
        for source in dict.fromkeys(map(_source, sample))
    ]
    return Table(
        name="lmstyle-1",
        caption="Correlation of metrics with human ratings, × 100",
        columns=columns,
        rows=mark_best(rows, keys=1),
        note=f"Correlations are {LEVEL_DESCRIPTIONS['item']}. {OVERALL} is the mean of the "
        "conditions. The greatest of a question and column is in bold."
        if results.conditions
        else f"Correlations are {LEVEL_DESCRIPTIONS['item']}.",
    )


def _source(row: CorrelationRecord) -> tuple[str, str, str]:
    return row.question, row.metric, row.signature


def lmstyle_ratings(results: Results, with_interval: bool = False) -> Table:
    parts = [(CONDITION, name, name) for name in results.conditions] + [(ALL, "", OVERALL)]
    records = {
        (row.question, row.system, row.scope, row.by): row for row in results.rows(SystemRecord)
    }
    rows: list[Row] = [
        (
            question,
            system,
            *(
                _human(results, records.get((question, system, scope, by)), with_interval)
                for scope, by, _ in parts
            ),
        )
        for question, system in dict.fromkeys(
            (question, system) for question, system, *_ in records
        )
    ]
    return Table(
        name="lmstyle-3",
        caption="The systems' mean human values",
        columns=[QUESTION, SYSTEM, *(Column(title) for *_, title in parts)],
        rows=mark_best(rows, keys=1),
        note="The greatest of a question and column is in bold.",
    )


def _human(results: Results, record: SystemRecord | None, with_interval: bool) -> Number:
    if record is None:
        return Number(None, reason="no judgment of the system there")
    mean = human_mean(results, record, decimals=1)
    return (
        mean
        if with_interval
        else Number(mean.value, mean.decimals, reason=mean.reason, signature=mean.signature)
    )


def g_eval(results: Results, level: str) -> Table:
    of_level = results.rows(CorrelationRecord, level=level, scope=ALL)
    records = {(*_source(row), row.coefficient): row for row in of_level}
    sets = list(dict.fromkeys(_source(row)[1:] for row in of_level))
    pairs = [(question, of) for question in results.questions for of in G_EVAL_COEFFICIENTS]
    rows: list[Row] = [
        (
            results.labels[run],
            *(
                correlation(
                    results, records.get((question, *run, of)), decimals=3, with_interval=False
                )
                for question, of in pairs
            ),
            *(_average(results, records, run, of) for of in G_EVAL_COEFFICIENTS),
        )
        for run in sets
    ]
    columns = [Column(SYMBOLS[of], group=question) for question, of in pairs]
    columns += [Column(SYMBOLS[of], group="Average") for of in G_EVAL_COEFFICIENTS]
    return Table(
        name=f"g-eval-{level}",
        caption="Correlation of metrics with human ratings, "
        f"{LEVEL_DESCRIPTIONS.get(level, level)}",
        columns=[METRIC, *columns],
        rows=mark_best(rows),
        note="The greatest of a column is in bold. Average: the mean of the questions, where all "
        "are defined.",
    )


def _average(
    results: Results,
    records_by_key: dict[Any, CorrelationRecord],
    run: tuple[str, str],
    coefficient: str,
) -> Number:
    records = [records_by_key.get((question, *run, coefficient)) for question in results.questions]
    values = [None if record is None else record.value for record in records]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return Number(None, reason="undefined for a question")
    first = next(record for record in records if record is not None)
    names = ("scope", "level", "coefficient", "signature")
    fields = {name: getattr(first, name) for name in names}
    signature = signed(results, "mean_of_questions", None, **fields)
    return Number(sum(known) / len(known), 3, signature=signature)


def mark_best(rows: Sequence[Row], *, keys: int = 0) -> list[Row]:
    marked = [list(row) for row in rows]
    for block in group_values((row[:keys], number) for number, row in enumerate(rows)).values():
        for column in range(len(rows[block[0]])):
            _mark(marked, block, column)
    return [tuple(row) for row in marked]


def _mark(rows: list[list[Cell]], block: list[int], column: int) -> None:
    numbers = {at: cell for at in block if isinstance(cell := rows[at][column], Number)}
    known = {at: cell.value for at, cell in numbers.items() if cell.value is not None}
    if len(known) < 2:
        return
    greatest = max(known.values())
    for at, value in known.items():
        if value == greatest:
            rows[at][column] = replace(numbers[at], is_best=True)


Record = Mapping[str, Any]


def lmstyle_scores(scores: Sequence[Record]) -> Table:
    """LMStyle's Table 2: the systems' mean scores by metric, over all responses and by condition.

    `scores` are the records of `metrics.score_comparisons.system_scores`.
    """
    conditions = list(dict.fromkeys(row["condition"] for row in scores))
    titles = labels_of((row["metric"], row["signature"]) for row in scores)
    pairs = [(run, condition) for condition in conditions for run in titles]
    records = {
        (row["metric"], row["signature"], row["condition"], row["system"]): row for row in scores
    }
    rows: list[Row] = [
        (
            system,
            *(_score_mean(records.get((*run, by, system))) for run, by in pairs),
        )
        for system in dict.fromkeys(row["system"] for row in scores)
    ]
    columns = [Column(titles[run], group=condition or OVERALL) for run, condition in pairs]
    return Table(
        name="lmstyle-2",
        caption="The systems' mean scores by metric",
        columns=[SYSTEM, *columns],
        rows=rows,
        note=f"{OVERALL} is over the responses of all conditions.",
    )


def _score_mean(record: Record | None) -> Number:
    if record is None:
        return Number(None, reason="the system has no response there")
    signature = plain_signature(
        "score_mean",
        system=record["system"],
        condition=record["condition"],
        metric=record["signature"],
        n=record["n"],
    )
    return Number(record["mean"], reason="no score is defined", signature=signature)


def e2e(effects: Sequence[Record], prompts: tuple[str, str]) -> Table:
    """E2E's comparison: each system under two prompts, by each metric, and what differs.

    `effects` are the records of `metrics.score_comparisons.prompt_effects`; a system of no
    name there stands for all of them.
    """
    titles = labels_of((row["metric"], row["signature"]) for row in effects)
    records = {(row["metric"], row["signature"], row["system"]): row for row in effects}
    systems = sorted(dict.fromkeys(row["system"] for row in effects), key=lambda name: name == "")
    rows: list[Row] = [
        (
            system or "all systems",
            *(
                cell
                for run in titles
                for cell in _effect_cells(records.get((*run, system)), prompts)
            ),
        )
        for system in systems
    ]
    titles_of_one = (*prompts, "difference", "p (Holm)")
    columns = [Column(title, group=group) for group in titles.values() for title in titles_of_one]
    return Table(
        name="e2e",
        caption=f"What the prompt “{prompts[1]}” changes from “{prompts[0]}”",
        columns=[SYSTEM, *columns],
        rows=rows,
        note="Means over the questions answered under both prompts; their difference with its "
        "bootstrap interval; p of a paired t-test, adjusted by Holm's method over all rows.",
    )


def _effect_cells(effect: Record | None, prompts: tuple[str, str]) -> tuple[Cell, ...]:
    if effect is None:
        return tuple(Number(None, reason=UNKNOWN) for _ in range(4))
    reason = reason_in_words(effect["reason"]) or "undefined"
    signatures = [
        _effect_signature(kind, effect, by)
        for kind, by in [
            ("paired_mean", prompts[0]),
            ("paired_mean", prompts[1]),
            ("paired_difference", " - ".join(reversed(prompts))),
            ("paired_t.p_holm", " - ".join(reversed(prompts))),
        ]
    ]
    return (
        Number(effect["mean_first"], 3, reason=reason, signature=signatures[0]),
        Number(effect["mean_second"], 3, reason=reason, signature=signatures[1]),
        Number(effect["mean"], 3, effect["ci_low"], effect["ci_high"], reason, signatures[2]),
        P(
            effect["t_p_holm"],
            reason if effect["t_p"] is None else "a variant, which no correction is of",
            signatures[3],
        ),
    )


def _effect_signature(kind: str, effect: Record, by: str) -> str:
    drawn = {"ci": effect["ci_method"], "confidence": effect["confidence"]}
    drawn |= {"draws": effect["n_resamples"], "seed": effect["seed"]}
    return plain_signature(
        kind,
        system=effect["system"] or "all",
        prompt=by,
        metric=effect["signature"],
        n=effect["n_pairs"],
        **(drawn if kind == "paired_difference" else {}),
    )


def e2e_methods(effects: Sequence[Record], prompts: tuple[str, str]) -> str:
    """How E2E's comparison was made, from the settings its records hold."""
    first = effects[0]
    return (
        f"Each system's answer under the prompt “{prompts[1]}” was paired with its answer to the "
        f"same question under “{prompts[0]}”. Differences are tested by Student's paired t, "
        "two-sided, with p adjusted by Holm's method over all primary metrics and systems; "
        f"intervals at {percent_text(first['confidence'])} are percentiles of "
        f"{first['n_resamples']:,} bootstrap resamples of questions, from seed {first['seed']}. "
        "For all systems together a question counts once, with the mean over systems."
    )
