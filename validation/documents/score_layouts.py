"""Ready-made tables of scores alone: the LMStyle Benchmark's Table 2, and E2E's comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from presentation.documents import Cell, Column, Number, P, Row, Table
from validation.documents.cells import UNKNOWN
from validation.documents.layouts import OVERALL
from validation.documents.signatures import plain_signature
from validation.documents.tables import SYSTEM
from validation.documents.terms import percent_text, reason_in_words
from validation.results import labels_of

Record = Mapping[str, Any]


def lmstyle_scores(scores: Sequence[Record]) -> Table:
    """LMStyle's Table 2: the systems' mean scores by metric, over all responses and by condition.

    `scores` are the records of `metrics.prompts.system_scores`.
    """
    conditions = list(dict.fromkeys(row["condition"] for row in scores))
    titles = labels_of((row["metric"], row["signature"]) for row in scores)
    pairs = [(run, condition) for condition in conditions for run in titles]
    records = {
        (row["metric"], row["signature"], row["condition"], row["system"]): row for row in scores
    }
    systems = list(dict.fromkeys(row["system"] for row in scores))
    rows: list[Row] = [
        (
            system,
            *(_score_mean(records.get((*run, by, system))) for run, by in pairs),
        )
        for system in systems
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

    `effects` are the records of `metrics.prompts.prompt_effects`; a system of no name there
    stands for all of them.
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
