from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from presentation.numbers import plain_values
from retrieval.evaluated_runs import SIGNIFICANT, Evaluation, Settings
from stats.agreement import Agreement
from stats.agreement.specific import LabelOverlap
from stats.ranking import Measure
from stats.ranking.rank_biased_overlap import Overlap, RankTies
from stats.ranking.resampled_topics import RankingSimilarity

Row = dict[str, Any]
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
    """All that is compared; rows are as `compare_qrels --json` prints them."""

    qrels: Sequence[Row]
    evaluations: dict[str, Evaluation]
    rankings: Sequence[Row]
    pairs: tuple[RankingComparison, ...]
    labels: Sequence[Row]
    assessors: Row | None
    random_assessor: Sequence[Row]
    crossed: Sequence[Row]
    n_topics: int
    settings: ComparisonSettings
    notes: tuple[str, ...] = field(default=())

    def record(self) -> dict[str, Any]:
        one = self.settings
        primary = one.evaluation.primary or one.evaluation.measures
        return {
            "qrels": list(self.qrels),
            "rankings": list(self.rankings),
            "pairs": [each.record() for each in self.pairs],
            "labels": list(self.labels),
            "assessors": self.assessors,
            "random_assessor": list(self.random_assessor),
            "crossed": list(self.crossed),
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


def overlap_record(one: LabelOverlap) -> dict[str, Any]:
    return plain_values(
        {
            "value": one.value,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "ci_method": one.method,
            "reason": one.reason,
        }
    )


def agreement_record(one: Agreement) -> dict[str, Any]:
    return plain_values(
        {
            "value": one.value,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "ci_method": one.ci_method.value,
            "reason": one.reason.value if one.reason else None,
        }
    )
