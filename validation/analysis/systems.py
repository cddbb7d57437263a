from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from presentation.records import plain_values
from stats.arguments import Floats, sum_by
from stats.correlation import CiMethod, bootstrap
from stats.correlation.bootstrap import standard
from stats.correlation.estimates import CI_METHODS
from stats.correlation.result import tail_of
from validation.analysis.panels import Panel
from validation.analysis.records import (
    DisagreementRecord,
    SystemRecord,
    SystemScoreRecord,
    WorstRecord,
)
from validation.analysis.sensitivity import ranks
from validation.analysis.settings import Settings


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
        candidates = panel.candidates.iloc[known[order]]
        for rank, (at, candidate) in enumerate(
            zip(order, candidates.to_dict("records"), strict=True), start=1
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
