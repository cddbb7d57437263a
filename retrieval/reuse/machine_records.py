"""Systems under a machine's labels beside people's, and people's estimated with the machine's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from presentation.records import plain_values
from stats.inference.powered_result import PredictionPowered
from stats.ranking import Measure
from stats.ranking.topic_means import TopicDifference, TopicMean

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
        """As `evaluate_runs --machine --json` prints it."""
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
class SharedModelBias:
    """Whether the machine rates systems that share its model higher than it rates others.

    The gaps are the machine's value less people's, means over the runs of either kind;
    `difference` is the first less the second over the topics that both judged. Taus are of the
    systems' order by people and by the machine on those topics, with all runs and without those
    that share the model.
    """

    measure: Measure
    gap_sharing: float
    gap_others: float
    difference: TopicDifference
    tau: float
    tau_without: float

    def record(self) -> dict[str, Any]:
        """As `evaluate_runs --machine --json` prints it."""
        one = self.difference
        row = {
            "measure": self.measure.name,
            "gap_sharing": self.gap_sharing,
            "gap_others": self.gap_others,
            "difference": one.delta,
            "ci_low": one.ci_low,
            "ci_high": one.ci_high,
            "p": one.p,
            "n_topics": one.n_topics,
            "tau": self.tau,
            "tau_without": self.tau_without,
            "reason": one.reason,
        }
        return plain_values(row)


@dataclass(frozen=True, kw_only=True)
class MachineComparison:
    """A machine's labels beside people's: two columns, which are never one."""

    qrels: str
    machine: str
    sharing: tuple[str, ...]
    sample: Sample
    n_topics_people: int
    n_topics_machine: int
    n_topics_both: int
    estimates: tuple[CalibratedMean, ...]
    biases: tuple[SharedModelBias, ...]
    notes: tuple[str, ...] = field(default=())

    def record(self) -> dict[str, Any]:
        """As `evaluate_runs --machine --json` prints it."""
        return vars(self) | {
            "sharing": list(self.sharing),
            "estimates": [row.record() for row in self.estimates],
            "biases": [row.record() for row in self.biases],
            "notes": list(self.notes),
            "note_codes": [getattr(note, "code", "") for note in self.notes],
        }
