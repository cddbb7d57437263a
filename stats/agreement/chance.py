"""What percent agreement and the coefficients that differ only in chance are computed from."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from stats.agreement.design import Design
from stats.agreement.intervals import Interval, Request, interval_of, linearised_t
from stats.agreement.kappa import Weights, agreement_weights
from stats.agreement.result import Agreement, Reason
from stats.agreement.sums import Sums, by_cluster, row_forms
from stats.arguments import Floats
from stats.grouping import sum_by

TINY = 1e-11
MOST_WEIGHTED_CATEGORIES = 2000


@dataclass(frozen=True)
class Chance:
    """Expected agreement ``constant + slope * sum(p**2)`` of the shares p of the categories."""

    constant: float
    slope: float


def percent_agreement_in(design: Design, request: Request) -> Agreement:
    """Percent agreement of a coded design."""
    return _coefficient("percent_agreement", design, request, Chance(0, 0))


def brennan_prediger_in(design: Design, request: Request) -> Agreement:
    """Brennan and Prediger's coefficient of a coded design."""
    chance = Chance(1 / max(1, len(design.domain)), 0)
    return _coefficient("brennan_prediger", design, request, chance)


def scott_pi_in(design: Design, request: Request) -> Agreement:
    """Scott's pi of a coded design; undefined but for two annotators."""
    if design.reason is None and len(design.labels.annotators) != 2:
        return design.result("scott_pi", request, reason=Reason.NOT_TWO_ANNOTATORS)
    return _coefficient("scott_pi", design, request, Chance(0, 1), only_paired=True)


def fleiss_kappa_in(design: Design, request: Request) -> Agreement:
    """Fleiss' kappa of a coded design."""
    return _coefficient("fleiss_kappa", design, request, Chance(0, 1))


def gwet_ac1_in(design: Design, request: Request) -> Agreement:
    """Gwet's AC1 of a coded design."""
    return _gwet("gwet_ac1", design, request, None)


def gwet_ac2_in(design: Design, request: Request, weights: Weights = "quadratic") -> Agreement:
    """Gwet's AC2 of a coded design."""
    name = f"gwet_ac2_{weights}"
    if len(design.domain) > MOST_WEIGHTED_CATEGORIES:
        return design.result(name, request, reason=Reason.TOO_MANY_CATEGORIES, level="ordinal")
    return _gwet(name, design, request, _weight_table(design, weights))


def _weight_table(design: Design, weights: Weights) -> Floats | None:
    if not design.numeric or len(design.domain) < 2:
        return agreement_weights(weights, len(design.domain))
    values = np.array(design.domain, dtype=np.float64)
    distance = np.abs(values[:, None] - values) / np.ptp(values)
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights must be 'linear' or 'quadratic', not {weights!r}")
    return np.asarray(1 - (distance if weights == "linear" else np.square(distance)))


def _gwet(name: str, design: Design, request: Request, weights: Floats | None) -> Agreement:
    q = len(design.domain)
    level = "nominal" if weights is None else "ordinal"
    if design.reason is None and q < 2:
        return design.result(name, request, reason=Reason.SINGLE_CATEGORY, level=level)
    total = float(q if weights is None else weights.sum())
    scale = total / max(1, q * (q - 1))
    return _coefficient(name, design, request, Chance(scale, -scale), weights=weights)


def _coefficient(
    name: str,
    design: Design,
    request: Request,
    chance: Chance,
    *,
    weights: Floats | None = None,
    only_paired: bool = False,
) -> Agreement:
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
    shares: "sparse.csr_array[np.float64]"
    cluster: np.ndarray
    n_clusters: int

    @staticmethod
    def of(design: Design, weights: Floats | None, *, only_paired: bool) -> "_Parts":
        size, table = design.size, design.table
        if only_paired:
            kept = size >= 2
            size, table = size[kept], table[kept]
            found, cluster = np.unique(design.cluster[kept], return_inverse=True)
            n_clusters = len(found)
        else:
            cluster, n_clusters = design.cluster, design.n_clusters
        pairs = np.maximum(size * (size - 1), 1)
        agree = (row_forms(table, weights) - size) / pairs
        shares = (sparse.diags_array(1 / size) @ table).tocsr()
        paired = (size >= 2).astype(np.float64)
        return _Parts(np.where(size >= 2, agree, 0.0), paired, shares, cluster, n_clusters)

    @property
    def observed(self) -> float:
        return float(self.agree.sum() / self.paired.sum())

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
        gather = sparse.coo_array(at, shape=shape).tocsr()
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
