from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from stats.agreement.design import Coefficient, Design, Options, design_of, interval_request
from stats.agreement.intervals import (
    FEW,
    Interval,
    Request,
    interval_of,
    linearised_t,
    share_posterior,
)
from stats.agreement.kappa import Weights, agreement_weights
from stats.agreement.result import Agreement, Reason, Sums, by_cluster, row_forms
from stats.arguments import Column, Floats, require, sum_by
from stats.libraries import np, scipy

# Of a dense table of weights, which then takes 32 MB.
MAX_WEIGHTED_CATEGORIES = 2000


@Coefficient
def percent_agreement(design: Design, request: Request) -> Agreement:
    """Share of pairs of labels of one item that are equal, averaged over items.

    Notes
    -----
    Nothing is taken off for chance: `expected` is 0, and one category throughout gives 1.

    References
    ----------
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition, chapter 2.

    Examples
    --------
    >>> percent_agreement([1, 1, 2, 2], list("abab"), list("xxxy")).value
    0.5
    """
    return coefficient_of("percent_agreement", design, request, Chance(0, 0))


@Coefficient
def brennan_prediger(design: Design, request: Request) -> Agreement:
    """Brennan and Prediger's coefficient: chance picks every category alike.

    Notes
    -----
    Expected agreement is one over the number of categories, so `categories` should list the
    unused ones. It is Bennett's S, and Randolph's free-marginal kappa.

    References
    ----------
    R. L. Brennan and D. J. Prediger (1981). Coefficient kappa: some uses, misuses, and
    alternatives. Educational and Psychological Measurement 41, 687-699.

    Examples
    --------
    >>> round(brennan_prediger([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy")).value, 4)
    0.3333
    """
    chance = Chance(1 / max(1, len(design.domain)), 0)
    return coefficient_of("brennan_prediger", design, request, chance)


@Coefficient
def scott_pi(design: Design, request: Request) -> Agreement:
    """Scott's pi of two annotators, on the items both labelled.

    Notes
    -----
    Chance draws both labels from the pooled labels of the two annotators.

    References
    ----------
    W. A. Scott (1955). Reliability of content analysis: the case of nominal scale coding.
    Public Opinion Quarterly 19(3), 321-325.

    Examples
    --------
    >>> round(scott_pi([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy")).value, 4)
    0.3333
    """
    if design.reason is None and len(design.labels.annotators) != 2:
        return design.result("scott_pi", request, reason=Reason.NOT_TWO_ANNOTATORS)
    return coefficient_of("scott_pi", design, request, Chance(0, 1), only_paired=True)


@Coefficient
def fleiss_kappa(design: Design, request: Request) -> Agreement:
    """Fleiss' kappa, with any number of labels an item.

    Notes
    -----
    Gwet's form for unequal numbers of labels: observed agreement is the mean over items of two
    labels or more; chance uses the mean over all items, also those labelled once, of each
    item's shares of labels. With equal numbers it is Fleiss' own.

    References
    ----------
    J. L. Fleiss (1971). Measuring nominal scale agreement among many raters. Psychological
    Bulletin 76(5), 378-382.
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition, chapter 2.

    Examples
    --------
    >>> round(fleiss_kappa([1, 1, 2, 2, 3, 3], list("abbcac"), list("xxyyxy")).value, 4)
    0.3333
    """
    return coefficient_of("fleiss_kappa", design, request, Chance(0, 1))


@Coefficient
def gwet_ac1(design: Design, request: Request) -> Agreement:
    """Gwet's AC1, which lopsided categories do not pull down.

    Notes
    -----
    Chance is taken to strike only on items that are hard to label: expected agreement is
    ``sum(p * (1 - p)) / (q - 1)`` over the q categories.

    References
    ----------
    K. L. Gwet (2008). Computing inter-rater reliability and its variance in the presence of
    high agreement. British Journal of Mathematical and Statistical Psychology 61, 29-48.

    Examples
    --------
    >>> round(gwet_ac1([1, 1, 2, 2, 3, 3], list("ababab"), list("xxxxxy")).value, 4)
    0.5385
    """
    return _gwet("gwet_ac1", design, request, None)


def gwet_ac2(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    weights: Weights = "quadratic",
    **options: Unpack[Options],
) -> Agreement:
    """Gwet's AC2: AC1 with weights for near misses.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    weights : {"linear", "quadratic"}
        Whether disagreements count by the distance of two categories or by its square.
    **options : Options
        Clusters, categories and the interval, as `stats.agreement.design.Options` says.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, an annotator labels an item
        twice, or an option is not usable.

    Notes
    -----
    Weights go by the numbers where all categories are numbers, else by their positions.

    References
    ----------
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition, chapters 3 and 4.

    Examples
    --------
    >>> round(gwet_ac2([1, 1, 2, 2, 3, 3], list("ababab"), [1, 1, 2, 3, 3, 3]).value, 4)
    0.7857
    """
    design = design_of(
        items,
        annotators,
        values,
        clusters=options.get("clusters"),
        categories=options.get("categories"),
    )
    return gwet_ac2_of_design(design, interval_request(options), weights)


def gwet_ac2_of_design(
    design: Design, request: Request, weights: Weights = "quadratic"
) -> Agreement:
    name = f"gwet_ac2_{weights}"
    if len(design.domain) > MAX_WEIGHTED_CATEGORIES:
        return design.result(name, request, reason=Reason.TOO_MANY_CATEGORIES, level="ordinal")
    return _gwet(name, design, request, _weight_table(design, weights))


def _weight_table(design: Design, weights: Weights) -> Floats | None:
    if not design.numeric or len(design.domain) < 2:
        return agreement_weights(weights, len(design.domain))
    values = np.array(design.domain, dtype=np.float64)
    distance = np.abs(values[:, None] - values) / np.ptp(values)
    require(
        weights in ("linear", "quadratic"),
        f"weights must be 'linear' or 'quadratic', not {weights!r}",
        code="unknown_weights",
    )
    return np.asarray(1 - (distance if weights == "linear" else np.square(distance)))


def _gwet(name: str, design: Design, request: Request, weights: Floats | None) -> Agreement:
    q = len(design.domain)
    level = "nominal" if weights is None else "ordinal"
    if design.reason is None and q < 2:
        return design.result(name, request, reason=Reason.SINGLE_CATEGORY, level=level)
    scale = float(q if weights is None else weights.sum()) / max(1, q * (q - 1))
    return coefficient_of(name, design, request, Chance(scale, -scale), weights=weights)


# Expected agreement within this of 1 counts as 1; those of a million items err by 1e-15.
TINY = 1e-11


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
        agree = (row_forms(table, weights) - size) / np.maximum(size * (size - 1), 1)
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
        gather = scipy.sparse.coo_array(at, shape=(self.n_clusters, len(self.cluster))).tocsr()
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
