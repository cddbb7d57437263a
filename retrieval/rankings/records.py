from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from presentation.records import plain_values
from retrieval.evaluated_runs import SIGNIFICANT, Evaluation, Settings
from stats.agreement import Agreement
from stats.agreement.specific import LabelOverlap
from stats.inference.crossed_means import MeanOfCells
from stats.ranking import Measure
from stats.ranking.rank_biased_overlap import Overlap, RankTies
from stats.ranking.rank_similarity import RandomAssessors
from stats.ranking.resampled_topics import RankingSimilarity

Kind = Literal["given", "machine", "assessor", "derived"]
Change = Literal["kept", "lost", "gained", "reversed", "neither"]


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """How qrels are compared.

    `evaluation` is how runs are evaluated under each. `truth` names the qrels that others are
    held against, where one is; `top` how many of the best systems are compared by themselves;
    `machines` the qrels that no person made, which nothing is derived of. `judgments` name whose
    judgments qrels were made of, where that is known: several rules of the same count as one
    assessor.
    """

    evaluation: Settings
    truth: str | None = None
    top: int | None = None
    rbo_p: float = 0.9
    rbo_ties: RankTies = "b"
    n_resamples: int = 2000
    n_draws: int = 1000
    machines: tuple[str, ...] = ()
    judgments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelSet:
    name: str
    kind: Kind
    rule: str
    n_topics: int
    n_topics_left_out: int
    n_judged: int
    n_relevant: int
    n_unjudged: int


@dataclass(frozen=True)
class RankedSystem:
    """A system under a set of labels; `rank` is that of the first of those it ties with."""

    run: str
    rank: int
    mean: float
    ci_low: float
    ci_high: float
    n_topics: int


@dataclass(frozen=True)
class Ranking:
    qrels: str
    measure: Measure
    systems: tuple[RankedSystem, ...]
    groups: list[list[str]]

    def record(self) -> dict[str, Any]:
        return {
            "qrels": self.qrels,
            "measure": self.measure.name,
            "systems": [plain_values(vars(each)) for each in self.systems],
            "groups": self.groups,
        }


@dataclass(frozen=True)
class PairOfSystems:
    """Two systems under two sets of labels: their differences, and whether they are significant.

    The differences are means over the topics that both have. `a` is the better under the first
    set; `p_first` and `p_second` are corrected.
    """

    a: str
    b: str
    delta_first: float
    delta_second: float
    p_first: float
    p_second: float

    @property
    def is_swapped(self) -> bool:
        return self.delta_first * self.delta_second < 0

    @property
    def change(self) -> Change:
        first, second = self.p_first < SIGNIFICANT, self.p_second < SIGNIFICANT
        if first and second:
            return "reversed" if self.is_swapped else "kept"
        if first:
            return "lost"
        return "gained" if second else "neither"

    def record(self) -> dict[str, Any]:
        return plain_values({**vars(self), "change": self.change})


@dataclass(frozen=True)
class RankingComparison:
    """The rankings of the systems by a measure under two sets of labels.

    `rbo_bounds` are what is known of the overlap of the rankings as prefixes of longer ones;
    `top` is tau-b of the best systems alone.
    """

    first: str
    second: str
    measure: Measure
    tau_b: RankingSimilarity
    tau_ap: RankingSimilarity
    rbo: RankingSimilarity
    rbo_bounds: Overlap
    pairs: tuple[PairOfSystems, ...]
    top: RankingSimilarity | None = None
    top_systems: tuple[str, ...] = ()

    @property
    def swapped(self) -> list[PairOfSystems]:
        return [pair for pair in self.pairs if pair.is_swapped]

    @property
    def n_swapped_significantly(self) -> int:
        return sum(pair.change != "neither" for pair in self.swapped)

    def changes(self) -> dict[Change, int]:
        order: tuple[Change, ...] = ("kept", "lost", "gained", "reversed", "neither")
        of_pairs = [pair.change for pair in self.pairs]
        return {change: of_pairs.count(change) for change in order}

    def record(self) -> dict[str, Any]:
        rbo = {
            **_similarity(self.rbo),
            "min": self.rbo_bounds.min,
            "residual": self.rbo_bounds.residual,
        }
        return {
            "first": self.first,
            "second": self.second,
            "measure": self.measure.name,
            "tau_b": _similarity(self.tau_b),
            "tau_ap": _similarity(self.tau_ap),
            "rbo": rbo,
            "top": None
            if self.top is None
            else {**_similarity(self.top), "systems": list(self.top_systems)},
            "n_pairs": len(self.pairs),
            "n_swapped": len(self.swapped),
            "n_swapped_significantly": self.n_swapped_significantly,
            "significance": self.changes(),
            "swapped": [pair.record() for pair in self.swapped],
            "changed": [
                pair.record() for pair in self.pairs if pair.change not in ("kept", "neither")
            ],
        }


@dataclass(frozen=True)
class QrelsComparison:
    qrels: tuple[LabelSet, ...]
    evaluations: dict[str, Evaluation]
    rankings: tuple[Ranking, ...]
    pairs: tuple[RankingComparison, ...]
    labels: tuple[LabelComparison, ...]
    assessors: AssessorsAgreement | None
    random_assessor: tuple[RandomDesign, ...]
    crossed: tuple[CrossedMean, ...]
    n_topics: int
    settings: ComparisonSettings
    notes: tuple[str, ...] = field(default=())

    def record(self) -> dict[str, Any]:
        one = self.settings
        primary = one.evaluation.primary or one.evaluation.measures
        return {
            "qrels": [vars(each) for each in self.qrels],
            "rankings": [each.record() for each in self.rankings],
            "pairs": [each.record() for each in self.pairs],
            "labels": [each.record() for each in self.labels],
            "assessors": None if self.assessors is None else self.assessors.record(),
            "random_assessor": [each.record() for each in self.random_assessor],
            "crossed": [each.record() for each in self.crossed],
            "n_topics": self.n_topics,
            "settings": {
                "primary": [each.name for each in primary],
                "truth": one.truth,
                "top": one.top,
                "machines": list(one.machines),
                "rbo_p": one.rbo_p,
                "rbo_ties": one.rbo_ties,
                "n_resamples": one.n_resamples,
                "n_draws": one.n_draws,
                "ties": one.evaluation.ties,
                "single_precision": one.evaluation.single_precision,
                "missing": one.evaluation.missing,
                "leave_out_without_relevant": one.evaluation.leave_out_without_relevant,
                "confidence": one.evaluation.confidence,
                "seed": one.evaluation.seed,
            },
            "notes": list(self.notes),
            "note_codes": [getattr(note, "code", "") for note in self.notes],
        }


def _similarity(one: RankingSimilarity) -> dict[str, Any]:
    return plain_values(
        {
            "coefficient": one.name,
            "value": one.value,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "ci_method": one.method,
            "n_systems": one.n_systems,
            "n_topics": one.n_topics,
            "reason": one.reason,
        }
    )


@dataclass(frozen=True)
class LabelComparison:
    """Labels of two sets on the documents that both judged, with intervals for new topics.

    `counts` are documents by the grade that the first set gives, a row each, and the second.
    """

    first: str
    second: str
    overlap: LabelOverlap
    kappa: Agreement
    kappa_of_grades: Agreement | None
    weighted_kappa: Agreement | None
    n_topics: int
    grades: list[int]
    counts: list[list[int]]

    def record(self) -> dict[str, Any]:
        one = self.overlap
        return {
            "first": self.first,
            "second": self.second,
            "n_topics": self.n_topics,
            "n_documents": one.n_items,
            "n_both_relevant": one.n_both,
            "n_either_relevant": one.n_either,
            "overlap": _overlap(one),
            "kappa": _agreement(self.kappa),
            "kappa_of_grades": None
            if self.kappa_of_grades is None
            else _agreement(self.kappa_of_grades),
            "weighted_kappa": None
            if self.weighted_kappa is None
            else _agreement(self.weighted_kappa),
            "grades": self.grades,
            "counts": self.counts,
            "warnings": [*one.warnings, *self.kappa.warnings],
        }


@dataclass(frozen=True)
class AssessorsAgreement:
    """Agreement of any two assessors of a document; its overlap counts pairs of assessors."""

    n_assessors: int
    overlap: LabelOverlap
    alpha: Agreement

    def record(self) -> dict[str, Any]:
        return {
            "n_assessors": self.n_assessors,
            "n_pairs_of_labels": self.overlap.n_items,
            "n_documents": self.alpha.n_items,
            "overlap": _overlap(self.overlap),
            "alpha": _agreement(self.alpha),
            "warnings": [*self.overlap.warnings, *self.alpha.warnings],
        }


@dataclass(frozen=True)
class RandomDesign:
    measure: Measure
    merged: str
    runs: tuple[str, ...]
    drawn: RandomAssessors

    def swaps(self) -> Iterator[tuple[str, str, float]]:
        shares = self.drawn.swapped
        for a, b in np.argwhere(shares > 0):
            yield self.runs[a], self.runs[b], float(shares[a, b])

    def record(self) -> dict[str, Any]:
        tau = self.drawn.tau[~np.isnan(self.drawn.tau)]
        shares = dict.fromkeys(("mean", "sd", "min", "q05", "median", "q95", "max"), float("nan"))
        if len(tau):
            low, middle, high = (float(each) for each in np.quantile(tau, [0.05, 0.5, 0.95]))
            shares = {
                "mean": float(tau.mean()),
                "sd": float(tau.std()),
                "min": float(tau.min()),
                "q05": low,
                "median": middle,
                "q95": high,
                "max": float(tau.max()),
            }
        return {
            "measure": self.measure.name,
            "merged": self.merged,
            "n_draws": len(self.drawn.tau),
            "n_undefined": len(self.drawn.tau) - len(tau),
            "n_topics_with_choice": self.drawn.n_topics_with_choice,
            "tau_b": plain_values(shares),
            "swaps": [{"a": a, "b": b, "share": share} for a, b, share in self.swaps()],
        }


@dataclass(frozen=True)
class CrossedMean:
    run: str
    measure: Measure
    mean: MeanOfCells
    bootstrap_low: float
    bootstrap_high: float
    reason: str | None

    def record(self) -> dict[str, Any]:
        one = self.mean
        row = {
            "run": self.run,
            "measure": self.measure.name,
            "mean": one.value,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "ci_method": one.method,
            "bootstrap_low": self.bootstrap_low,
            "bootstrap_high": self.bootstrap_high,
            "n_topics": one.n_items,
            "n_assessors": one.n_annotators,
            "n_assessments": one.n,
            "reason": self.reason,
        }
        return plain_values(row)


def _overlap(one: LabelOverlap) -> dict[str, Any]:
    return plain_values(
        {
            "value": one.value,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "ci_method": one.method,
            "reason": one.reason,
        }
    )


def _agreement(one: Agreement) -> dict[str, Any]:
    return plain_values(
        {
            "value": one.value,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "ci_method": one.ci_method.value,
            "reason": one.reason.value if one.reason else None,
        }
    )
