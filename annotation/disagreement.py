"""Who and what pulls the agreement of a question down."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from annotation.frames import judgment_frame
from annotation.models import Candidate, Question, Submission
from annotation.units import JudgedUnits, Level, judged_units
from stats.agreement import krippendorff_alpha
from stats.annotators import annotator_quality
from stats.arguments import Column

if TYPE_CHECKING:
    import pandas as pd


# Neighbours on a scale of five steps are a quarter of it apart, and no dispute; two steps are.
SCALE_SHARE = 0.25
# 0.55 - 0.3 is a quarter, and in binary a little more.
DECIMALS = 12


def default_threshold(question: Question) -> float:
    """The spread beyond which judgments are in dispute: any difference between categories, and
    on a scale more than a quarter of it, or of few ordered steps more than one step."""
    if question.level == Question.Level.NOMINAL:
        return 0.0
    n_steps = question.highest - question.scale_min
    if question.level == Question.Level.ORDINAL and 1 < n_steps < 1 / SCALE_SHARE:
        # Upwards to two decimals, which is what a form holds.
        return ceil(100 / n_steps) / 100
    return SCALE_SHARE


def unit_table(
    question: Question, *, round: int = 1, frame: pd.DataFrame | None = None
) -> pd.DataFrame:
    """A row a candidate that two or more judged, least agreement first.

    Columns: `item_id, item, condition, candidate_id, candidate, system, n_judgments, mean, low,
    high, spread, agreement`. `frame` is the study's judgment frame, where the caller has it.
    """
    judged = _judged(question, round, frame)
    values = judged.values.groupby(judged.units.to_numpy())
    table = judged.keys.assign(
        n_judgments=values.size(),
        mean=values.mean(),
        low=values.min(),
        high=values.max(),
        spread=_spreads(question, judged),
        agreement=judged.agreements(),
    )
    named = _candidates(question).merge(table, on=["item", "candidate"])
    paired = named[named["n_judgments"] > 1]
    return paired.sort_values("agreement", kind="stable", ignore_index=True)


def _spreads(question: Question, judged: JudgedUnits) -> pd.Series[float]:
    """How far apart the judgments of each unit lie, as a share: `UnitAgreement` says of what."""
    units = judged.units.to_numpy()
    if question.level == question.Level.NOMINAL:
        counts = judged.values.groupby([units, judged.values.to_numpy()]).size().groupby(level=0)
        return (1 - counts.max() / counts.sum()).round(DECIMALS)
    values = judged.values.groupby(units)
    spreads = (values.max() - values.min()) / (question.highest - question.scale_min)
    return spreads.round(DECIMALS)


def annotator_table(
    question: Question, *, round: int = 1, frame: pd.DataFrame | None = None
) -> pd.DataFrame:
    """A row an annotator, those who pull agreement down first.

    `alpha_change` is alpha without the annotator less alpha with everyone: above zero, the
    annotator pulls it down. `n_flagged` counts their flagged submissions. The other columns are
    those of `stats.annotators.annotator_quality`, which says what they mean.
    """
    judged = _judged(question, round, frame)
    quality = annotator_quality(
        judged.units,
        judged.annotators,
        judged.values,
        level=judged.level,
        order=_order(question, round, judged),
        seconds=judged.frame["seconds"],
    )
    with_all = _alpha(judged.units, judged.annotators, judged.values, judged.level)
    without = _alpha_without_each(judged, list(quality["annotator"]))
    flagged = _flagged(question, round)
    table = quality.rename(columns={"n_labels": "n_judgments"}).assign(
        alpha_without=without,
        alpha_change=[value - with_all for value in without],
        n_flagged=[flagged.get(name, 0) for name in quality["annotator"]],
    )
    return table.sort_values("alpha_change", ascending=False, kind="stable", ignore_index=True)


def _judged(question: Question, round: int, frame: pd.DataFrame | None) -> JudgedUnits:
    if frame is None:
        frame = judgment_frame(question.study, question=question)
    return judged_units(question, frame[frame["round"] == round])


def _candidates(question: Question) -> pd.DataFrame:
    import pandas as pd

    columns = {
        "item_id": "item",
        "item": "item__key",
        "condition": "item__condition",
        "candidate_id": "pk",
        "candidate": "key",
        "system": "system",
    }
    rows = Candidate.objects.filter(item__study=question.study_id)
    ordered = rows.order_by("item__position", "position", "pk").values_list(*columns.values())
    return pd.DataFrame.from_records(list(ordered), columns=list(columns))


def _order(question: Question, round: int, judged: JudgedUnits) -> list[float] | None:
    """When each judgment was given, where that is known of all."""
    submissions = Submission.objects.of(question.study).accepted().filter(round=round)
    rows = submissions.values_list("item__key", "annotator__pseudonym", "submitted_at")
    when = {(item, name): time for item, name, time in rows if time is not None}
    keys = list(zip(judged.clusters, judged.annotators, strict=True))
    if not keys or any(key not in when for key in keys):
        return None
    return [when[key].timestamp() for key in keys]


def _alpha_without_each(judged: JudgedUnits, annotators: Sequence[str]) -> list[float]:
    """Alpha of the others, for each of the annotators left out."""
    import pandas as pd

    units, values = judged.units.to_numpy(), judged.values.to_numpy()
    who = pd.Index(annotators).get_indexer(pd.Index(judged.annotators))
    return [
        _alpha(units[who != code], who[who != code], values[who != code], judged.level)
        for code in range(len(annotators))
    ]


def _alpha(units: Column, annotators: Column, values: Column, level: Level) -> float:
    return krippendorff_alpha(units, annotators, values, level=level).value


def _flagged(question: Question, round: int) -> dict[str, int]:
    import pandas as pd

    submissions = Submission.objects.of(question.study).accepted().flagged().filter(round=round)
    names = submissions.values_list("annotator__pseudonym", flat=True)
    return dict(pd.Series(list(names), dtype=str).value_counts())
