from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isnan
from typing import Literal

from stats.aggregation.bradley_terry import bradley_terry
from stats.inference.crossed_means import mean_over_items_and_annotators
from stats.libraries import np, pd, scipy
from validation.analysis.rated_systems import Scale, rated_records
from validation.analysis.records import RatedPairRecord, RatedSystemRecord

Measure = Literal["mean", "share", "preferred", "counts"]
# Maps judgments to winner, loser, weight, judgment, item, annotator.
Wins = Callable[["pd.DataFrame"], "pd.DataFrame"]
MEAN, SHARE, PREFERRED, COUNTS = "mean", "share", "preferred", "counts"
COMPARISONS = ("preference", "best_worst", "ranking")
AGAINST_THE_MEAN, AGAINST_THE_OTHER = "bradley-terry", "bradley-terry-pair"
ALL, UNFLAGGED, CONDITION, PROTOCOL = "all", "unflagged", "condition", "protocol"
MOST_STEPS = 12
N_BINS = 10
N_LOWEST = 5
MAJORITY = 0.5


@dataclass(frozen=True)
class QuestionScale:
    question: str
    kind: str
    level: str
    low: float
    high: float
    categories: tuple[str, ...] = ()

    @property
    def measure(self) -> Measure:
        if self.kind in COMPARISONS:
            return "preferred"
        if self.level == "nominal":
            return "share" if len(self.categories) == 2 else "counts"
        return "mean"

    @property
    def comparison(self) -> Scale:
        if self.measure == "share":
            return "binary"
        return "ordinal" if self.level == "ordinal" or self.measure == "preferred" else "interval"


@dataclass(frozen=True)
class Bin:
    question: str
    system: str
    position: int
    label: str
    n: int


@dataclass(frozen=True)
class LowestCandidate:
    question: str
    system: str
    rank: int
    item: str
    candidate: str
    mean: float
    n: int


@dataclass(frozen=True)
class PartResult:
    scope: str
    by: str
    systems: Sequence[RatedSystemRecord]
    pairs: Sequence[RatedPairRecord]


@dataclass(frozen=True)
class QuestionRecord:
    """What was judged on a question: `n_judgments` counts a preference once, for all its
    candidates; `n_items_with` the items with a candidate that most annotators say yes to."""

    question: str
    measure: Measure
    comparison: Scale
    scale_low: float
    scale_high: float
    n_judgments: int
    n_items: int
    n_annotators: int
    n_items_with: int | None


@dataclass(frozen=True)
class QuestionResult:
    summary: QuestionRecord
    parts: Sequence[PartResult]
    bins: Sequence[Bin]
    lowest: Sequence[LowestCandidate]


def question_result(
    scale: QuestionScale,
    frame: pd.DataFrame,
    parts: Sequence[tuple[str, str, pd.DataFrame]],
    wins: Wins | None = None,
) -> QuestionResult:
    """`parts` are the scope, name and judgments of each part."""
    are_two = _of_named(frame)["system"].nunique() == 2
    whole = part_result(scale, frame, ALL, "", wins, are_two=are_two)
    others = [
        part_result(scale, rows, scope, by, wins, are_two=are_two) for scope, by, rows in parts
    ]
    return QuestionResult(
        summary=QuestionRecord(
            question=scale.question,
            measure=scale.measure,
            comparison=scale.comparison,
            scale_low=scale.low,
            scale_high=scale.high,
            n_judgments=_n_judgments(scale, frame),
            n_items=frame["item"].nunique(),
            n_annotators=frame["annotator"].nunique(),
            n_items_with=_items_with(frame) if scale.measure == SHARE else None,
        ),
        parts=[whole, *(_of_leaders(other, whole) for other in others)],
        bins=list(_bins(scale, frame)),
        lowest=list(_lowest(scale.question, frame)) if scale.measure in (MEAN, SHARE) else [],
    )


def _n_judgments(scale: QuestionScale, frame: pd.DataFrame) -> int:
    """A preference has one value per candidate and counts as one judgment, as in agreement."""
    if scale.kind == "preference":
        return len(frame[["item", "annotator"]].drop_duplicates())
    return len(frame)


def part_result(
    scale: QuestionScale,
    frame: pd.DataFrame,
    scope: str,
    by: str,
    wins: Wins | None = None,
    *,
    are_two: bool = False,
) -> PartResult:
    """If `are_two`, the question has two systems in total: each is compared with the other."""
    if scale.measure == COUNTS or frame.empty:
        return PartResult(scope, by, (), ())
    named = _of_named(frame)
    systems, pairs = rated_records(scale.question, named, scale.comparison)
    if scale.measure == PREFERRED:
        systems = systems if wins is None else _by_strength(systems, wins(named), are_two)
    elif not systems:
        systems = [_mean_of(scale.question, named if len(named) else frame)]
    return PartResult(scope, by, systems, pairs)


def _of_named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["system"].astype(str) != ""]


def _mean_of(question: str, rows: pd.DataFrame) -> RatedSystemRecord:
    item, annotator = (rows[name].astype(str) for name in ("item", "annotator"))
    mean = mean_over_items_and_annotators(item, annotator, rows["value"])
    names = rows["system"].astype(str).unique()
    low, high = (None if isnan(limit) else limit for limit in (mean.ci_low, mean.ci_high))
    return RatedSystemRecord(
        question=question,
        system=str(names[0]) if len(names) == 1 else "",
        mean=mean.value,
        ci_low=low,
        ci_high=high,
        method=mean.method,
        rank_low=1,
        rank_high=1,
        n_items=mean.n_items,
        n_annotators=mean.n_annotators,
        n_ratings=mean.n,
        busiest_share=mean.busiest_share,
    )


def _by_strength(
    systems: Sequence[RatedSystemRecord], wins: pd.DataFrame, are_two: bool
) -> list[RatedSystemRecord]:
    """Systems by Bradley-Terry: the probability of being preferred to a system of mean strength,
    or, of two, to the other. If one group never won against another, by the share of comparisons
    won."""
    if wins.empty:
        return list(systems)
    fit = bradley_terry(
        wins["winner"],
        wins["loser"],
        weights=wins["weight"],
        judgments=wins["judgment"],
        items=wins["item"],
        annotators=wins["annotator"],
    )
    if fit.reason is not None:
        return _by_wins(systems, wins)
    known = {str(row["item"]): row for row in fit.labels.to_dict(orient="records")}
    method = AGAINST_THE_OTHER if are_two else AGAINST_THE_MEAN
    # Log strengths have mean 0: two of them lie as far from each other as twice from 0, limits too.
    apart = 2.0 if are_two else 1.0
    records = []
    for system in systems:
        row = known.get(system.system, {})
        mean, low, high = (_chance(row.get(name), apart) for name in ("label", "ci_low", "ci_high"))
        records.append(replace(system, mean=mean, ci_low=low, ci_high=high, method=method))
    return _best_first(records)


def _by_wins(systems: Sequence[RatedSystemRecord], wins: pd.DataFrame) -> list[RatedSystemRecord]:
    won, lost = (wins.groupby(side)["weight"].sum() for side in ("winner", "loser"))
    records = []
    for system in systems:
        total = won.get(system.system, 0.0) + lost.get(system.system, 0.0)
        mean = float(won.get(system.system, 0.0) / total) if total else None
        records.append(replace(system, mean=mean, ci_low=None, ci_high=None, method="wins"))
    return _best_first(records)


def _best_first(records: list[RatedSystemRecord]) -> list[RatedSystemRecord]:
    return sorted(records, key=lambda one: 1.0 if one.mean is None else -one.mean)


def _chance(log_strength: float | None, apart: float) -> float | None:
    if log_strength is None or isnan(log_strength):
        return None
    return float(scipy.special.expit(apart * log_strength))


def _of_leaders(part: PartResult, whole: PartResult) -> PartResult:
    leaders = {system.system for system in whole.systems[:2]}
    return replace(part, pairs=[pair for pair in part.pairs if {pair.a, pair.b} == leaders])


def _items_with(frame: pd.DataFrame) -> int | None:
    """Items with a candidate to which more than half of its annotators say yes; None where each
    item has one alone, such as a text that was labelled."""
    shares = frame.groupby(["item", "candidate"], observed=True)["value"].mean()
    if shares.index.get_level_values("item").is_unique:
        return None
    return int((shares > MAJORITY).groupby(level="item", observed=True).any().sum())


def _bins(scale: QuestionScale, frame: pd.DataFrame) -> Iterator[Bin]:
    edges, labels = _edges(scale, frame)
    for system, rows in frame.groupby("system", observed=True, sort=True):
        counts, _ = np.histogram(rows["value"].to_numpy(dtype="float64"), bins=edges)
        for position, (label, n) in enumerate(zip(labels, counts, strict=True)):
            yield Bin(scale.question, str(system), position, label, int(n))


def _edges(scale: QuestionScale, frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    if scale.categories:
        return np.arange(len(scale.categories) + 1) - 0.5, list(scale.categories)
    values = np.unique(frame["value"].to_numpy(dtype="float64"))
    width = scale.high - scale.low
    # Whatever the level: tenths of a scale of seven whole numbers would have gaps of their own.
    is_stepped = width.is_integer() and width < MOST_STEPS
    if is_stepped and (values == np.round(values)).all():
        steps = np.arange(scale.low, scale.high + 1)
        return np.append(steps - 0.5, scale.high + 0.5), [f"{step:g}" for step in steps]
    if len(values) and len(values) <= MOST_STEPS and scale.measure == PREFERRED:
        between = (values[1:] + values[:-1]) / 2
        ends = (values[0] - 0.5, values[-1] + 0.5)
        return np.array([ends[0], *between, ends[1]]), [f"{value:g}" for value in values]
    edges = np.linspace(scale.low, scale.high, N_BINS + 1)
    return edges, [f"{a:g}–{b:g}" for a, b in pairwise(edges)]


def _lowest(question: str, frame: pd.DataFrame) -> Iterator[LowestCandidate]:
    values = _of_named(frame).groupby(["system", "item", "candidate"], observed=True)["value"]
    table = values.agg(["mean", "size"]).reset_index()
    ordered = table.sort_values(["system", "mean", "item"], kind="stable")
    for system, rows in ordered.groupby("system", observed=True):
        for rank, row in enumerate(rows.head(N_LOWEST).to_dict(orient="records"), start=1):
            yield LowestCandidate(
                question=question,
                system=str(system),
                rank=rank,
                item=str(row["item"]),
                candidate=str(row["candidate"]),
                mean=float(row["mean"]),
                n=int(row["size"]),
            )
