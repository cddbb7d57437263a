"""Who and what pulls the agreement of a question down: pairs of annotators, units, positions.

Two annotators have a kappa, or a correlation if they are among those who judged most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from annotation.frames import judgment_frame
from annotation.models import Candidate, Protocol, Question, Study, Submission
from annotation.protocols.documents import read_document
from annotation.units import KAPPA_WEIGHTS, JudgedUnits, Level, judged_units
from stats.agreement import krippendorff_alpha
from stats.annotators import annotator_quality
from stats.arguments import Column
from stats.inference.crossed_means import mean_over_items_and_annotators
from stats.libraries import pd

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
    named = _candidates(question).merge(
        judged.keys.assign(
            n_judgments=values.size(),
            mean=values.mean(),
            low=values.min(),
            high=values.max(),
            spread=_spreads(question, judged),
            agreement=judged.agreements(),
        ),
        on=["item", "candidate"],
    )
    return named[named["n_judgments"] > 1].sort_values(
        "agreement", kind="stable", ignore_index=True
    )


def _spreads(question: Question, judged: JudgedUnits) -> pd.Series[float]:
    units = judged.units.to_numpy()
    if question.level == question.Level.NOMINAL:
        counts = judged.values.groupby([units, judged.values.to_numpy()]).size().groupby(level=0)
        return (1 - counts.max() / counts.sum()).round(DECIMALS)
    values = judged.values.groupby(units)
    return ((values.max() - values.min()) / (question.highest - question.scale_min)).round(DECIMALS)


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
    return (
        quality.rename(columns={"n_labels": "n_judgments"})
        .assign(
            alpha_without=without,
            alpha_change=[value - with_all for value in without],
            n_flagged=[flagged.get(name, 0) for name in quality["annotator"]],
        )
        .sort_values("alpha_change", ascending=False, kind="stable", ignore_index=True)
    )


def _judged(question: Question, round: int, frame: pd.DataFrame | None) -> JudgedUnits:
    if frame is None:
        frame = judgment_frame(question.study, question=question)
    return judged_units(question, frame[frame["round"] == round])


def _candidates(question: Question) -> pd.DataFrame:
    columns = {
        "item_id": "item",
        "item": "item__key",
        "condition": "item__condition",
        "candidate_id": "pk",
        "candidate": "key",
        "system": "system",
    }
    return pd.DataFrame.from_records(
        list(
            Candidate.objects.filter(item__study=question.study_id)
            .order_by("item__position", "position", "pk")
            .values_list(*columns.values())
        ),
        columns=list(columns),
    )


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
    units, values = judged.units.to_numpy(), judged.values.to_numpy()
    who = pd.Index(annotators).get_indexer(pd.Index(judged.annotators))
    return [
        _alpha(units[who != code], who[who != code], values[who != code], judged.level)
        for code in range(len(annotators))
    ]


def _alpha(units: Column, annotators: Column, values: Column, level: Level) -> float:
    return krippendorff_alpha(units, annotators, values, level=level).value


def _flagged(question: Question, round: int) -> dict[str, int]:
    submissions = Submission.objects.of(question.study).accepted().flagged().filter(round=round)
    names = submissions.values_list("annotator__pseudonym", flat=True)
    return dict(pd.Series(list(names), dtype=str).value_counts())


# More would be cells too small to distinguish, on a page as in a paper.
MOST_ANNOTATORS = 40
LEAST_SHARED = 3
STATISTICS = {"nominal": "Cohen's kappa", "ordinal": "Cohen's kappa, linear weights"}
COLUMNS = (
    *("annotator_a", "annotator_b", "n_shared", "observed", "expected", "value"),
    *("se", "ci_low", "ci_high", "reason", "in_matrix"),
)


@dataclass(frozen=True)
class PairTable:
    statistic: str
    n_annotators: int
    n_in_matrix: int
    rows: pd.DataFrame


def pair_table(question: Question, frame: pd.DataFrame, kappas: pd.DataFrame) -> PairTable:
    """The pairs of the annotators of a judgment frame.

    `kappas` is the table of `AgreementReport.pairs`, of which the question's rows are taken.
    """
    judgments = frame[frame["question"] == question.name]
    if judgments.empty:
        return PairTable("", 0, 0, pd.DataFrame(columns=COLUMNS))
    counts = judgments["annotator"].astype(str).value_counts()
    most = set(counts.index[:MOST_ANNOTATORS])
    if question.level in KAPPA_WEIGHTS:
        rows = _kappas(question, kappas)
    else:
        rows = _correlations(question, judgments, most)
    in_matrix = rows["annotator_a"].isin(most) & rows["annotator_b"].isin(most)
    statistic = STATISTICS.get(question.level, "Pearson's r")
    rows = rows.assign(in_matrix=in_matrix).reindex(columns=COLUMNS)
    return PairTable(statistic, len(counts), len(most), rows)


def _kappas(question: Question, kappas: pd.DataFrame) -> pd.DataFrame:
    return kappas[kappas["question"] == question.name].rename(
        columns={"kappa": "value", "n_overlap": "n_shared"}
    )


def _correlations(question: Question, judgments: pd.DataFrame, most: set[str]) -> pd.DataFrame:
    judged = judged_units(question, judgments[judgments["annotator"].astype(str).isin(most)])
    wide = pd.DataFrame(
        {"unit": judged.units, "annotator": judged.annotators, "value": judged.values}
    ).pivot(index="unit", columns="annotator", values="value")
    correlations, rated = wide.corr(min_periods=LEAST_SHARED), wide.notna().astype(int)
    shared = rated.T @ rated
    first, second = np.triu_indices(len(wide.columns), k=1)
    names = wide.columns.to_numpy()
    table = pd.DataFrame(
        {
            "annotator_a": names[first],
            "annotator_b": names[second],
            "n_shared": shared.to_numpy()[first, second],
            "value": correlations.to_numpy()[first, second],
        }
    )
    table = table[table["n_shared"] > 0]
    few, constant = table["n_shared"] < LEAST_SHARED, table["value"].isna()
    reasons = np.select([few, constant], ["too_few", "constant"], default="")
    return table.assign(reason=pd.Series(reasons, index=table.index).replace("", None))


@dataclass(frozen=True)
class PositionRecord:
    """What being shown first adds to an answer under one question, compared with being shown last.

    `annotator` is empty for all of them together; `first` and `last` are means over pages.
    """

    annotator: str
    n_pages: int
    n_annotators: int
    first: float
    last: float
    value: float
    ci_low: float
    ci_high: float


def random_positions(study: Study, frame: pd.DataFrame) -> pd.Series[float]:
    """The frame's positions, NaN for submissions whose protocol does not draw the order of the
    candidates at random: there a position cannot be separated from what is shown in it."""
    drawn = [
        protocol.pk
        for protocol in Protocol.objects.of(study)
        if read_document(protocol.document).order.policy != "fixed"
    ]
    keys = pd.MultiIndex.from_tuples(
        Submission.objects.of(study)
        .filter(protocol__in=drawn)
        .order_by()
        .values_list("annotator__pseudonym", "item__key", "round"),
        names=["annotator", "item", "round"],
    )
    own = pd.MultiIndex.from_arrays(
        [frame["annotator"].astype(object), frame["item"].astype(object), frame["round"]]
    )
    return frame["position"].where(own.isin(keys))


def position_effects(question: Question, rows: pd.DataFrame) -> Iterator[PositionRecord]:
    """The effect over all annotators of a question's judgments in one round, and of each; nothing
    if no page has two candidates in a random order, or if the answers have no order."""
    if question.level == Question.Level.NOMINAL and len(question.categories) > 2:
        return
    table = (
        rows[rows["position"].notna()]
        .sort_values("position", kind="stable")
        .groupby(["annotator", "item"], observed=True, sort=True)["value"]
        .agg(["first", "last", "size"])
        .reset_index()
    )
    table = table[table["size"] > 1]
    if table.empty:
        return
    yield _record("", table)
    for annotator, own in table.groupby("annotator", observed=True):
        yield _record(str(annotator), own)


def _record(annotator: str, pages: pd.DataFrame) -> PositionRecord:
    mean = mean_over_items_and_annotators(
        pages["item"], pages["annotator"], pages["first"] - pages["last"]
    )
    is_known = mean.se > 0
    return PositionRecord(
        annotator=annotator,
        n_pages=len(pages),
        n_annotators=int(pages["annotator"].nunique()),
        first=float(pages["first"].mean()),
        last=float(pages["last"].mean()),
        value=mean.value,
        ci_low=mean.ci_low if is_known else np.nan,
        ci_high=mean.ci_high if is_known else np.nan,
    )
