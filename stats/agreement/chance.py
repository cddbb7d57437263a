"""The computation that percent agreement and the chance-corrected coefficients share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stats.agreement.design import Design
from stats.agreement.intervals import Interval, Request, interval_of, linearised_t
from stats.agreement.posterior import FEW, share_posterior
from stats.agreement.result import Agreement, Reason
from stats.agreement.sums import Sums, by_cluster, row_forms
from stats.arguments import Floats
from stats.groups import sum_by
from stats.libraries import scipy

TINY = 1e-11
"""Expected agreement within this of 1 counts as 1; those of a million items err by 1e-15."""


@dataclass(frozen=True)
class Chance:
    """Expected agreement ``constant + slope * sum(p**2)`` of the shares p of the categories."""

    constant: float
    slope: float


def coefficient_of(
    name: str,
    design: Design,
    request: Request,
    chance: Chance,
    *,
    weights: Floats | None = None,
    only_paired: bool = False,
) -> Agreement:
    """A chance-corrected coefficient of a coded design.

    With `weights` of agreement, shape (n_categories, n_categories), near misses count in part;
    `only_paired` takes the shares of the categories from items of two labels or more.
    """
    level = "nominal" if weights is None else "ordinal"
    if design.reason is not None:
        return design.result(name, request, reason=design.reason, level=level)
    parts = _Parts.of(design, weights, only_paired=only_paired)
    sums = parts.sums(chance)
    observed, expected = parts.observed, parts.expected(chance)
    if 1 - expected < TINY:
        return design.result(
            name,
            request,
            observed=observed,
            expected=expected,
            reason=Reason.SINGLE_CATEGORY,
            level=level,
        )
    value = (observed - expected) / (1 - expected)
    least = 0.0 if chance == Chance(0, 0) else -1.0
    if chance == Chance(0, 0) and weights is None and parts.is_few(design.clustered, request):
        interval = parts.share(request.confidence)
        return design.result(
            name,
            request,
            value=value,
            observed=observed,
            expected=expected,
            interval=interval,
            level=level,
        )
    interval = interval_of(
        value,
        sums,
        request,
        clustered=design.clustered,
        analytic=lambda: _linearised(value, parts, chance, request.confidence, least),
        least=least,
    )
    return design.result(
        name,
        request,
        value=value,
        observed=observed,
        expected=expected,
        interval=interval,
        level=level,
    )


@dataclass(frozen=True)
class _Parts:
    """Agreement of each item (0 where it has one label) and its shares of the categories."""

    agree: Floats
    paired: Floats
    shares: scipy.sparse.csr_array[np.float64]
    cluster: np.ndarray
    n_clusters: int

    @staticmethod
    def of(design: Design, weights: Floats | None, *, only_paired: bool) -> _Parts:
        size, table = design.size, design.table
        if only_paired:
            is_paired = size >= 2
            size, table = size[is_paired], table[is_paired]
            clusters, cluster = np.unique(design.cluster[is_paired], return_inverse=True)
            n_clusters = len(clusters)
        else:
            cluster, n_clusters = design.cluster, design.n_clusters
        pairs = np.maximum(size * (size - 1), 1)
        agree = (row_forms(table, weights) - size) / pairs
        shares = (scipy.sparse.diags_array(1 / size) @ table).tocsr()
        paired = (size >= 2).astype(np.float64)
        return _Parts(np.where(size >= 2, agree, 0.0), paired, shares, cluster, n_clusters)

    @property
    def observed(self) -> float:
        return float(self.agree.sum() / self.paired.sum())

    def is_few(self, clustered: bool, request: Request) -> bool:
        """Whether agreement is a share of few items, or shows nothing that differs."""
        agree = self.agree[self.paired > 0]
        if request.method != "jackknife":
            return False
        few = not clustered and len(agree) < FEW and bool(np.isin(agree, (0, 1)).all())
        return few or bool(np.ptp(agree) <= TINY)

    def share(self, confidence: float) -> Interval:
        """Jeffreys' interval of the share of items, or of clusters where they are fewer."""
        n = min(float(self.paired.sum()), float(self.n_clusters))
        return share_posterior(self.observed * n, n, confidence=confidence)

    @property
    def mean_shares(self) -> Floats:
        return np.asarray(self.shares.sum(axis=0)).ravel() / len(self.agree)

    def expected(self, chance: Chance) -> float:
        mean = self.mean_shares
        return float(chance.constant + chance.slope * (mean @ mean))

    def sums(self, chance: Chance) -> Sums:
        ones = np.ones(len(self.agree))
        linear = by_cluster(self.cluster, self.n_clusters, ones, self.paired, self.agree)

        def evaluate(n: Floats, paired: Floats, agree: Floats, form: Floats | float = 0) -> Floats:
            expected = chance.constant + chance.slope * form / np.square(n)
            value = (agree / paired - expected) / (1 - expected)
            return np.asarray(np.where((1 - expected > TINY) & (paired >= 2), value, np.nan))

        if chance.slope == 0:
            return Sums(linear, evaluate)
        at = (np.ones(len(self.cluster)), (self.cluster, np.arange(len(self.cluster))))
        shape = (self.n_clusters, len(self.cluster))
        gather = scipy.sparse.coo_array(at, shape=shape).tocsr()
        return Sums(linear, evaluate, (gather @ self.shares).tocsr())


def _linearised(
    value: float, parts: _Parts, chance: Chance, confidence: float, least: float
) -> Interval:
    """Gwet's large-sample error, summed within clusters."""
    n, expected = len(parts.agree), parts.expected(chance)
    of_item = chance.constant + chance.slope * np.asarray(parts.shares @ parts.mean_shares)
    first = n / parts.paired.sum() * (parts.agree - expected * parts.paired) / (1 - expected)
    influence = first - value - 2 * (1 - value) * (of_item - expected) / (1 - expected)
    summed = sum_by(parts.cluster, influence, parts.n_clusters) * parts.n_clusters / n
    return linearised_t(value, summed, confidence, least=least)
