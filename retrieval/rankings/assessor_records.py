"""What a comparison of qrels holds of assessors and their labels, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from presentation.records import plain_values
from stats.agreement import Agreement
from stats.agreement.specific import LabelOverlap
from stats.inference.crossed_means import MeanOfCells
from stats.ranking import Measure
from stats.ranking.random_assessors import RandomAssessors


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
    """Rankings by one assessor a topic at random, against the merged ranking of a measure."""

    measure: Measure
    merged: str
    runs: tuple[str, ...]
    drawn: RandomAssessors

    def swaps(self) -> Iterator[tuple[str, str, float]]:
        """Pairs of systems, the higher first, with the share of draws that swap them."""
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
    """A system's mean over topics and assessors, both of which are samples."""

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
