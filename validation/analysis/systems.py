from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import isnan, nan
from typing import Any

from presentation.numbers import plain_values
from stats.arguments import Floats, sum_by
from stats.correlation import CiMethod, bootstrap
from stats.correlation.bootstrap import standard
from stats.correlation.estimates import CI_METHODS
from stats.correlation.result import tail_of
from stats.inference.looks import confidence_at_look, p_of_look
from stats.inference.powered_means import PredictionPowered
from stats.inference.sampled_batches import sampled_mean
from stats.libraries import np, pd, scipy
from stats.significance import holm
from validation.analysis.material import Design, Material
from validation.analysis.rated_systems import MOST_SYSTEMS, untested_pairs
from validation.analysis.records import (
    DisagreementRecord,
    EstimatedDifferenceRecord,
    EstimatedMeanRecord,
    SystemRecord,
    SystemScoreRecord,
    WorstRecord,
)
from validation.analysis.settings import Metric, Panel, Settings


def system_records(panel: Panel, settings: Settings) -> list[SystemRecord]:
    """Each system's mean human value with its interval, and how every metric ranks it.

    The interval resamples items. A metric's mean is over the candidates it scored, turned back
    to the metric's own direction; its rank is 1 for the best.
    """
    part = panel.of_systems()
    if not len(part.human):
        return []
    names = _names(part)
    means, counts = _means(part, part.human, len(names))
    low, high = _interval(part, settings, len(names))
    seed = part.draws_seed(settings.seed)
    human_ranks = ranks(means.tolist())
    of_metrics = [_means(part, row, len(names)) for row in part.scores]
    metric_ranks = [ranks(metric_means.tolist()) for metric_means, _ in of_metrics]
    return [
        SystemRecord(
            **plain_values(
                {
                    "question": panel.question,
                    "scope": panel.scope,
                    "by": panel.condition,
                    "system": name,
                    "mean": means[number],
                    "ci_low": low[number],
                    "ci_high": high[number],
                    "confidence": settings.confidence,
                    **_drawn(bool(np.isnan(low[number])), settings.n_resamples, seed),
                    "n_candidates": int(counts[number]),
                    "rank": human_ranks[number],
                }
            ),
            metrics=tuple(
                SystemScoreRecord(
                    **plain_values(
                        metric.record()
                        | {
                            "mean": metric_means[number] * (1 if metric.higher_is_better else -1),
                            "n_scored": int(scored[number]),
                            "rank": of_metric[number],
                            "rank_difference": of_metric[number] - human_ranks[number],
                        }
                    )
                )
                for metric, (metric_means, scored), of_metric in zip(
                    part.metrics, of_metrics, metric_ranks, strict=True
                )
            ),
        )
        for number, name in enumerate(names)
    ]


def ranks(values: Sequence[float]) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    ranking = np.full(len(numbers), nan)
    known = ~np.isnan(numbers)
    ranking[known] = scipy.stats.rankdata(-numbers[known])
    return ranking


def _drawn(is_undefined: bool, n_resamples: int, seed: int) -> dict[str, Any]:
    if is_undefined:
        return {"ci_method": str(CiMethod.NONE), "n_resamples": 0, "seed": None}
    return {"ci_method": str(CI_METHODS["items"]), "n_resamples": n_resamples, "seed": seed}


def disagreements(panel: Panel) -> Iterator[DisagreementRecord]:
    part = panel.of_systems()
    if not len(part.human):
        return
    names = _names(part)
    human, _ = _means(part, part.human, len(names))
    for metric, row in zip(part.metrics, part.scores, strict=True):
        scored, _ = _means(part, row, len(names))
        for a, b in combinations(range(len(names)), 2):
            better, worse = (a, b) if human[a] >= human[b] else (b, a)
            if human[better] > human[worse] and scored[better] < scored[worse]:
                sign = 1 if metric.higher_is_better else -1
                yield DisagreementRecord(
                    question=panel.question,
                    scope=panel.scope,
                    by=panel.condition,
                    metric=metric.metric,
                    signature=metric.signature,
                    better=names[better],
                    worse=names[worse],
                    human_delta=float(human[better] - human[worse]),
                    metric_delta=float(sign * (scored[better] - scored[worse])),
                )


def _names(part: Panel) -> list[str]:
    return [str(name) for name in part.candidates["system"].drop_duplicates()]


def _means(part: Panel, values: Floats, n_systems: int) -> tuple[Floats, Floats]:
    known = ~np.isnan(values)
    count = sum_by(part.system[known], np.ones(int(known.sum())), n_systems)
    total = sum_by(part.system[known], values[known], n_systems)
    return total / np.where(count > 0, count, np.nan), count


def _interval(part: Panel, settings: Settings, n_systems: int) -> tuple[Floats, Floats]:
    none = np.full(n_systems, np.nan)
    if part.n_units < 2 or not settings.n_resamples:
        return none, none
    sums, counts = np.zeros((2, part.n_units, n_systems))
    np.add.at(sums, (part.units, part.system), part.human)
    np.add.at(counts, (part.units, part.system), 1.0)

    def replicate(weights: Floats) -> Floats:
        drawn = weights @ counts
        return np.asarray((weights @ sums) / np.where(drawn > 0, drawn, np.nan))

    rng = np.random.default_rng(part.draws_seed(settings.seed))
    means = bootstrap.replicates(
        replicate, (part.n_units,), settings.n_resamples, rng, part.n_units
    )
    tail = tail_of(settings.confidence, part.n_units)
    # of one item, every resample that holds it has the same mean
    missing = ((counts > 0).sum(axis=0) < 2) | np.isnan(means).all(axis=0)
    means[:, missing] = 0.0
    low, high = np.nanquantile(means, [tail, 1 - tail], axis=0)
    return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def worst_candidates(panel: Panel, settings: Settings) -> Iterator[WorstRecord]:
    """For each metric, the candidates whose z-scores from metric and annotators lie farthest apart.

    Both are taken over the candidates that the metric scored. A positive residual is a
    candidate that the metric likes better than annotators do.
    """
    for metric, row in zip(panel.metrics, panel.scores, strict=True):
        known = np.flatnonzero(~np.isnan(row))
        human, score = panel.human[known], row[known]
        if len(known) < 2 or not (np.ptp(human) > 0 and np.ptp(score) > 0):
            continue
        z_human, z_score = standard(human), standard(score)
        residual = z_score - z_human
        order = np.argsort(-np.abs(residual), kind="stable")[: settings.n_worst]
        sign = 1 if metric.higher_is_better else -1
        for rank, (at, candidate) in enumerate(
            zip(order, panel.candidates.iloc[known[order]].to_dict("records"), strict=True), start=1
        ):
            yield WorstRecord(
                question=panel.question,
                metric=metric.metric,
                signature=metric.signature,
                rank=rank,
                item=candidate["item"],
                candidate=candidate["candidate"],
                system=candidate["system"],
                condition=candidate["condition"],
                human=float(human[at]),
                score=float(sign * score[at]),
                z_human=float(z_human[at]),
                z_score=float(z_score[at]),
                residual=float(residual[at]),
            )


# One look per batch: the intervals of this many looks hold together at the level asked for.
PLANNED_LOOKS = 5


def estimated_means(material: Material, settings: Settings) -> Iterator[EstimatedMeanRecord]:
    for question, metric, rows in _sampled(material, settings):
        for system, part in rows.groupby("system", sort=False):
            if _is_sample(part):
                yield _record(question, metric, str(system), part, settings)


def estimated_differences(
    material: Material, settings: Settings
) -> Iterator[EstimatedDifferenceRecord]:
    for question, metric, rows in _sampled(material, settings):
        pairs = [
            _difference(question, metric, (a, b), pair, settings)
            for a, b, pair in paired_systems(rows)
            if _is_sample(pair)
        ]
        if not pairs:
            continue
        adjusted = holm(
            [nan if pair.p is None else pair.p for pair in pairs],
            n_untested=untested_pairs(rows["system"].nunique(), len(pairs)),
        )
        for pair, p in zip(pairs, adjusted, strict=True):
            yield replace(pair, p_adjusted=None if isnan(p) else float(p))


def _sampled(material: Material, settings: Settings) -> Iterator[tuple[str, Metric, pd.DataFrame]]:
    design = material.design
    if design is None:
        return
    for question in material.judgments["question"].unique():
        human = material.human_values(str(question), settings)
        for metric in material.metrics:
            is_primary = settings.is_primary(metric.metric, metric.is_primary)
            if is_primary and settings.is_for(metric.metric, str(question)):
                yield str(question), metric, sampled_rows(material, design, human, metric)


def _is_sample(rows: pd.DataFrame) -> bool:
    return 0 < int(rows["human"].notna().sum()) < len(rows)


def paired_systems(cells: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Differences of every two systems on their common items; with more than thirty systems, of the
    best-scored one and each other."""
    by_system = {str(name): part.set_index("item") for name, part in cells.groupby("system")}
    pairs = list(combinations(by_system, 2))
    if len(by_system) > MOST_SYSTEMS:
        best = max(by_system, key=lambda name: by_system[name]["judge"].mean())
        pairs = [pair for pair in pairs if best in pair]
    for a, b in pairs:
        both = by_system[a].merge(
            by_system[b], left_index=True, right_index=True, suffixes=("_a", "_b")
        )
        if both.empty:
            continue
        shared = [name for name in ("cluster", "batch", "probability") if f"{name}_a" in both]
        yield (
            a,
            b,
            pd.DataFrame(
                {name: both[f"{name}_a"] - both[f"{name}_b"] for name in ("human", "judge")}
                | {name: both[f"{name}_a"] for name in shared}
            ).reset_index(drop=True),
        )


def p_of_no_difference(one: PredictionPowered) -> float:
    return (
        nan if isnan(one.se) else float(2 * scipy.stats.t.sf(abs(one.value) / one.se, one.freedom))
    )


def sampled_rows(
    material: Material, design: Design, human: pd.DataFrame, metric: Metric
) -> pd.DataFrame:
    """A row a scored item and system, as `prediction_powered` takes them from a file: the mean
    human value, empty where there is none, the mean score, the batch and the probability."""
    scores = material.scores
    own = (scores["metric"] == metric.metric) & (scores["signature"] == metric.signature)
    known = scores[own & scores["value"].notna()][["item", "candidate", "value"]]
    names = ["item", "candidate"]
    rows = design.candidates.astype(str).merge(known, on=names).merge(human, on=names, how="left")
    clusters = {"cluster": ("cluster", "first")} if "cluster" in rows else {}
    cells = rows.groupby(["system", "item"], sort=False, as_index=False).agg(
        human=("human", "mean"), judge=("value", "mean"), **clusters
    )
    return cells.merge(design.batches, on="item", how="left")


def _record(
    question: str, metric: Metric, system: str, rows: pd.DataFrame, settings: Settings
) -> EstimatedMeanRecord:
    look, level = _look(rows, settings)
    result = _estimate(metric, rows, level)
    return EstimatedMeanRecord(
        question=question,
        metric=metric.metric,
        signature=metric.signature,
        system=system,
        confidence=level,
        look=look,
        n_labelled=int(result.n_labelled),
        n=int(result.n),
        reason=str(result.reason or ""),
        **_numbers(result),
    )


def _difference(
    question: str,
    metric: Metric,
    systems: tuple[str, str],
    pair: pd.DataFrame,
    settings: Settings,
) -> EstimatedDifferenceRecord:
    look, level = _look(pair, settings)
    result = _estimate(metric, pair, level)
    p = p_of_look(p_of_no_difference(result), level, confidence=settings.confidence)
    values = {"value": result.value, "ci_low": result.ci_low, "ci_high": result.ci_high, "p": p}
    return EstimatedDifferenceRecord(
        question=question,
        metric=metric.metric,
        signature=metric.signature,
        a=systems[0],
        b=systems[1],
        p_adjusted=None,
        confidence=level,
        look=look,
        n_labelled=int(result.n_labelled),
        n=int(result.n),
        reason=str(result.reason or ""),
        **dict(plain_values(values)),
    )


def _look(rows: pd.DataFrame, settings: Settings) -> tuple[int, float]:
    """Number of drawn batches with ratings, and the confidence level after that many."""
    look = int(rows[rows["human"].notna() & rows["probability"].notna()]["batch"].nunique())
    return look, confidence_at_look(
        min(max(look, 1), PLANNED_LOOKS), PLANNED_LOOKS, confidence=settings.confidence
    )


def _estimate(metric: Metric, rows: pd.DataFrame, level: float) -> PredictionPowered:
    return sampled_mean(
        rows["human"],
        rows["judge"] if metric.higher_is_better else -rows["judge"],
        rows["batch"],
        rows["probability"],
        clusters=rows.get("cluster"),
        confidence=level,
    )


def _numbers(result: PredictionPowered) -> dict[str, float | None]:
    people = result.people_only
    values = {
        "value": result.value,
        "ci_low": result.ci_low,
        "ci_high": result.ci_high,
        "weight": result.power,
        "effective_n": result.effective_n if np.isfinite(result.effective_n) else np.nan,
        "people": people.value,
        "people_low": people.ci_low,
        "people_high": people.ci_high,
    }
    return dict(plain_values(values))
