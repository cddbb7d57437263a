from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from presentation.records import plain_values
from retrieval.evaluated_runs import Settings
from stats.inference.powered_means import PredictionPowered
from stats.ranking import Measure
from stats.ranking.pool_bias import OutsideEstimate
from stats.ranking.topic_means import TopicDifference, TopicMean

Row = dict[str, Any]
Unit = Literal["system", "group"]
JUDGED_AT = 10
# If a smaller share of what runs list to the pool's depth is in the qrels, the pool was hardly so
# deep.
LEAST_IN_QRELS = 0.8
# A pool is incomplete if its last rank brought at least this share of the relevant documents.
RISING_FROM = 0.01


class Provenance(NamedTuple):
    """What a pool's own record says of where its documents came from.

    Attributes
    ----------
    depths : mapping
        To which rank each pooled run was taken, by run and topic.
    elsewhere : collection of (topic, document)
        What other sources brought too, such as embeddings or a draw: it stays, whoever is left out.
    """

    depths: Mapping[str, Mapping[str, int]]
    elsewhere: Collection[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A run under a measure, with all judgments and without those of what is left out.

    `change` is the second less the first, with an interval over topics for runs that are left
    out (`is_left_out`). Ranks count from 1; runs with the same mean share the better one.
    """

    run: str
    measure: Measure
    is_left_out: bool
    mean: float
    mean_without: float
    change: float
    ci_low: float
    ci_high: float
    rank: int
    rank_without: int
    judged: float
    judged_without: float


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    name: str
    unit: Unit
    runs: tuple[str, ...]
    n_judged_lost: int
    n_relevant_lost: int
    n_topics_without_relevant: int
    effects: tuple[Effect, ...]

    def own(self, measure: Measure) -> list[Effect]:
        return [row for row in self.effects if row.is_left_out and row.measure == measure]

    def record(self) -> dict[str, Any]:
        effects = [plain_values(vars(row) | {"measure": row.measure.name}) for row in self.effects]
        return vars(self) | {"runs": list(self.runs), "effects": effects}


def expectation_record(one: OutsideEstimate, measure: Measure, unit: Unit) -> Row:
    row = {
        "measure": measure.name,
        "unit": unit,
        "underestimate": one.value,
        "ci_low": one.ci_low,
        "ci_high": one.ci_high,
        "n_left_out": one.n,
        "reason": one.reason,
        "sentence": f"Evaluating an outside system: {_expect(one, measure.name, unit)}.",
    }
    return plain_values(row)


def _expect(one: OutsideEstimate, measure: str, unit: Unit) -> str:
    if one.value != one.value:
        return f"nothing is known of {measure}: {one.reason}"
    change = (
        f"an underestimate of {measure} of {one.value:.4f}"
        if one.value >= 0
        else f"an overestimate of {measure} of {-one.value:.4f}"
    )
    if one.reason is not None:
        return f"expect {change} (no interval: {one.reason})"
    return (
        f"expect {change}; for one further {unit} "
        f"{one.ci_low:+.4f} to {one.ci_high:+.4f}, by {one.n} left out"
    )


@dataclass(frozen=True, kw_only=True)
class Reusability:
    """How far judgments of pooled runs may be used for systems that were not pooled.

    `measures` are those asked for and, beside them, bpref and the condensed forms;
    `share_in_qrels` is the share of the pooled runs' documents to the pool's depth that are there.
    """

    qrels: str
    pool_depth: int
    is_depth_inferred: bool
    has_provenance: bool
    share_in_qrels: float
    groups: Mapping[str, tuple[str, ...]]
    measures: tuple[Measure, ...]
    systems: Sequence[Row]
    depths: Sequence[Row]
    sources: Sequence[Row]
    left_out: tuple[LeftOut, ...]
    expectations: Sequence[Row]
    n_topics: int
    n_judged: int
    n_relevant: int
    settings: Settings
    notes: tuple[str, ...] = field(default=())

    @property
    def last_share(self) -> float:
        last = self.depths[-1]
        return float(last["n_new_relevant"] / last["n_relevant"]) if last["n_relevant"] else 0.0

    @property
    def is_rising(self) -> bool:
        return not self.has_provenance and self.last_share >= RISING_FROM

    def record(self) -> dict[str, Any]:
        return {
            "qrels": self.qrels,
            "pool_depth": self.pool_depth,
            "is_depth_inferred": self.is_depth_inferred,
            "has_provenance": self.has_provenance,
            "share_in_qrels": self.share_in_qrels,
            "groups": {name: list(runs) for name, runs in self.groups.items()},
            "measures": [each.name for each in self.measures],
            "systems": list(self.systems),
            "depths": list(self.depths),
            "last_share": self.last_share,
            "is_rising": self.is_rising,
            "sources": list(self.sources),
            "left_out": [each.record() for each in self.left_out],
            "expectations": list(self.expectations),
            "n_topics": self.n_topics,
            "n_judged": self.n_judged,
            "n_relevant": self.n_relevant,
            "settings": {
                "ties": self.settings.ties,
                "single_precision": self.settings.single_precision,
                "missing": self.settings.missing,
                "leave_out_without_relevant": self.settings.leave_out_without_relevant,
                "confidence": self.settings.confidence,
            },
            "notes": list(self.notes),
            "note_codes": [getattr(note, "code", "") for note in self.notes],
        }


Sample = Literal["topics", "labels"]


@dataclass(frozen=True, kw_only=True)
class CalibratedMean:
    """A run's mean under the machine's labels, under people's, and people's by both.

    `machine` is of all topics, `people` of the sample alone; `gap` is the machine's less people's
    where both judged. `powered` is None with a `reason` where a measure cannot be calibrated;
    `n_others` counts what people judged whose value is not the commonest.
    """

    run: str
    measure: Measure
    machine: TopicMean
    people: TopicMean
    gap: TopicDifference
    powered: PredictionPowered | None
    n_others: int
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        row: dict[str, Any] = {"run": self.run, "measure": self.measure.name}
        for name, one in (("machine", self.machine), ("people", self.people)):
            row |= {
                f"{name}_mean": one.value,
                f"{name}_ci_low": one.ci_low,
                f"{name}_ci_high": one.ci_high,
                f"{name}_n_topics": one.n_topics,
            }
        row |= {"gap": self.gap.delta, "gap_ci_low": self.gap.ci_low}
        row |= {"gap_ci_high": self.gap.ci_high, "gap_n_topics": self.gap.n_topics}
        if (powered := self.powered) is not None:
            row |= {
                "calibrated": powered.value,
                "calibrated_ci_low": powered.ci_low,
                "calibrated_ci_high": powered.ci_high,
                "lambda": powered.power,
                "n_labelled": powered.n_labelled,
                "n": powered.n,
                "effective_n": powered.effective_n,
                "notes": list(powered.notes),
            }
        return plain_values(row | {"reason": self.reason})


@dataclass(frozen=True, kw_only=True)
class MachineComparison:
    qrels: str
    machine: str
    sharing: tuple[str, ...]
    sample: Sample
    n_topics_people: int
    n_topics_machine: int
    n_topics_both: int
    estimates: tuple[CalibratedMean, ...]
    biases: Sequence[Row]
    notes: tuple[str, ...] = field(default=())

    def record(self) -> dict[str, Any]:
        return vars(self) | {
            "sharing": list(self.sharing),
            "estimates": [row.record() for row in self.estimates],
            "biases": list(self.biases),
            "notes": list(self.notes),
            "note_codes": [getattr(note, "code", "") for note in self.notes],
        }
