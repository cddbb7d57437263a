"""What a validation consists of: typed records, from computation to table, page, figure and file.

An undefined number is None, and `reason` says why. `validation.analysis` describes the fields.
"""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple


class Measure(NamedTuple):
    question: str
    scope: str
    by: str
    level: str
    coefficient: str


@dataclass(frozen=True, slots=True)
class PanelRecord:
    question: str
    scope: str
    by: str


@dataclass(frozen=True, slots=True)
class MeasureRecord(PanelRecord):
    level: str
    coefficient: str


@dataclass(frozen=True, slots=True)
class CorrelationRecord(PanelRecord):
    metric: str
    signature: str
    higher_is_better: bool
    is_primary: bool
    level: str
    coefficient: str
    value: float | None
    reason: str | None
    ci_low: float | None
    ci_high: float | None
    ci_method: str
    confidence: float
    n_resamples: int
    n_resamples_undefined: int
    seed: int | None
    n_units: int | None
    ci_reason: str | None
    new_systems_low: float | None
    new_systems_high: float | None
    new_systems_reason: str | None
    n_groups: int
    n_used: int
    n_undefined: int
    n_too_few: int
    n_constant_human: int
    n_constant_metric: int
    undefined: str
    n_zeroed: int
    n_items: int | None
    n_systems: int | None
    n_rows: int
    n_missing: int
    threshold: float | None
    n_candidates: int
    n_scored: int
    n_unscored: int
    n_undefined_scores: int
    n_unparsed: int
    n_items_of_one_score: int
    attainable: float | None
    share_of_ceiling: float | None
    share_low: float | None
    share_high: float | None
    leave_one_out: float | None
    rank: float | None
    cluster: int | None
    input: str


@dataclass(frozen=True, slots=True)
class MetricPairRecord(MeasureRecord):
    metric_a: str
    signature_a: str
    metric_b: str
    signature_b: str


@dataclass(frozen=True, slots=True)
class ComparisonRecord(MetricPairRecord):
    value_a: float | None
    value_b: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    estimand: str
    test: str
    p: float | None
    p_holm: float | None
    p_bh: float | None
    n_draws: int = 0
    seed: int | None = None
    reason: str | None = None
    new_systems_low: float | None = None
    new_systems_high: float | None = None
    new_systems_p: float | None = None
    new_systems_p_holm: float | None = None
    new_systems_reason: str | None = None


@dataclass(frozen=True, slots=True)
class CeilingRecord(MeasureRecord):
    split_half: float | None
    reliability: float | None
    attainable: float | None
    attainable_low: float | None
    attainable_high: float | None
    n_units: int | None
    leave_one_out: float | None
    icc_single: float | None
    icc_mean: float | None
    ratings_per_candidate: float | None
    n_splits: int
    seed: int | None
    reason: str | None
    warning: str | None


@dataclass(frozen=True, slots=True)
class SensitivityRecord(MeasureRecord):
    metric: str
    signature: str
    setting: str
    choice: str
    value: float | None
    rank: float | None
    base_choice: str
    base_value: float | None
    base_rank: float | None
    n_used: int
    n_zeroed: int
    reason: str | None
    delta: float | None
    moves_rank: bool


@dataclass(frozen=True, slots=True)
class SystemScoreRecord:
    metric: str
    signature: str
    higher_is_better: bool
    is_primary: bool
    mean: float | None
    n_scored: int
    rank: float | None
    rank_difference: float | None


@dataclass(frozen=True, slots=True)
class SystemRecord(PanelRecord):
    system: str
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    confidence: float
    ci_method: str
    n_resamples: int
    seed: int | None
    n_candidates: int
    rank: float | None
    metrics: tuple[SystemScoreRecord, ...]


@dataclass(frozen=True, slots=True)
class DisagreementRecord(PanelRecord):
    metric: str
    signature: str
    better: str
    worse: str
    human_delta: float
    metric_delta: float


@dataclass(frozen=True, slots=True)
class WorstRecord:
    question: str
    metric: str
    signature: str
    rank: int
    item: str
    candidate: str
    system: str
    condition: str
    human: float
    score: float
    z_human: float
    z_score: float
    residual: float


@dataclass(frozen=True, slots=True)
class PlanRecord(MetricPairRecord):
    n_items: int
    n_annotators: float | None
    delta: float | None
    se: float | None
    power: float | None
    is_pilot: bool
    items_needed: int | None
    power_wanted: float
    alpha: float
    n_studies: int
    seed: int


@dataclass(frozen=True, slots=True)
class ScoreSetRecord:
    metric: str
    signature: str
    higher_is_better: bool
    is_primary: bool
    n_scores: int
    n_undefined: int
    n_unparsed: int
    n_unscored: int
    digest: str


@dataclass(frozen=True, slots=True)
class LabelSourceRecord:
    question: str
    version: int
    signature: str
    n_labels: int
    n_adjudicated: int


@dataclass(frozen=True, slots=True)
class Inputs:
    n_judgments: int
    n_rejected: int
    n_counted: int
    n_annotators: int
    n_items: int
    n_candidates: int
    score_sets: tuple[ScoreSetRecord, ...]
    labels: tuple[LabelSourceRecord, ...] = ()

    @property
    def primary(self) -> tuple[ScoreSetRecord, ...]:
        return tuple(one for one in self.score_sets if one.is_primary)

    @property
    def variants(self) -> tuple[ScoreSetRecord, ...]:
        return tuple(one for one in self.score_sets if not one.is_primary)


@dataclass(frozen=True, slots=True)
class RatedSystemRecord:
    """What people rate a system on average, for new items and annotators; the best first.
    `n_items_off_end`: items most of whose ratings are not at the end of the scale that has more.
    `busiest_share`: the share of the ratings that one annotator gave, the busiest."""

    question: str
    system: str
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    method: str
    rank_low: int
    rank_high: int
    n_items: int
    n_annotators: int
    n_ratings: int
    n_items_off_end: int | None = None
    busiest_share: float | None = None


@dataclass(frozen=True, slots=True)
class RatedPairRecord:
    """Two systems as people rate them, and what would tell them apart.

    `freedom` and `p` are of the pair alone; `p_adjusted` is Holm's, of p with at most the degrees
    of freedom that all pairs together give.
    `items_needed` and `annotators_needed` are how many in all would show a difference as large
    as the one seen four times in five: either the one or the other; None where none would.
    `least_shown` is the least difference that the study shows so often as it is, and
    `least_shown_of_twice` with twice the items, by the same annotators; each by a test whose p is
    adjusted as here.
    """

    question: str
    a: str
    b: str
    delta: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    test: str
    freedom: float | None
    p: float | None
    p_adjusted: float | None
    estimand: str
    n_items: int
    n_annotators: int
    items_needed: int | None
    annotators_needed: int | None
    least_shown: float | None = None
    least_shown_of_twice: float | None = None


@dataclass(frozen=True, slots=True)
class EstimatedMeanRecord:
    """A system's mean rating over all scored items, from the rated ones and a metric's scores;
    `look` counts the drawn batches that have ratings, `confidence` is this look's own level."""

    question: str
    metric: str
    signature: str
    system: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    confidence: float
    look: int
    weight: float | None
    n_labelled: int
    n: int
    effective_n: float | None
    people: float | None
    people_low: float | None
    people_high: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class EstimatedDifferenceRecord:
    """Two systems' mean ratings over all items scored of both; `p_adjusted` over the pairs of a
    question and metric, for this look."""

    question: str
    metric: str
    signature: str
    a: str
    b: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None
    confidence: float
    look: int
    n_labelled: int
    n: int
    reason: str


Record = (
    CorrelationRecord
    | ComparisonRecord
    | CeilingRecord
    | SensitivityRecord
    | SystemRecord
    | DisagreementRecord
    | WorstRecord
    | PlanRecord
    | RatedSystemRecord
    | RatedPairRecord
    | EstimatedMeanRecord
    | EstimatedDifferenceRecord
)


def plain(record: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _plain(value: Any) -> Any:
    return [plain(one) for one in value] if isinstance(value, tuple) else value
