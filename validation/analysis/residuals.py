"""The candidates on which a metric is most wrong."""

from collections.abc import Iterator

import numpy as np

from stats.correlation.bootstrap import standard
from validation.analysis.panels import Panel
from validation.analysis.records import WorstRecord
from validation.analysis.settings import Settings


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
