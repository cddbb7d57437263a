from __future__ import annotations

from dataclasses import dataclass, replace

from stats.agreement.chance_corrected import TINY
from stats.agreement.cohen import MAX_TABLED_CATEGORIES
from stats.agreement.design import Coefficient, Design
from stats.agreement.intervals import Interval, Request, interval_of, linearised_t
from stats.agreement.result import CHUNK, Agreement, Reason, by_cluster, drawn, row_forms, table_of
from stats.arguments import Floats, sum_by
from stats.libraries import np, scipy


@Coefficient
def conger_kappa(design: Design, request: Request) -> Agreement:
    """Conger's kappa, with any number of labels an item.

    Notes
    -----
    Observed agreement is that of Fleiss' kappa; chance is the mean over pairs of annotators of
    the agreement their own shares of the categories would give. With two annotators who
    labelled the same items it is Cohen's kappa. Beyond 2,000 categories the interval is the
    analytic one, as `ci_method` says.

    References
    ----------
    A. J. Conger (1980). Integration and generalization of kappas for multiple raters.
    Psychological Bulletin 88(2), 322-328.
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition, chapter 2.

    Examples
    --------
    >>> round(conger_kappa([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy")).value, 4)
    0.4
    """
    name = "conger_kappa"
    if design.reason is not None:
        return design.result(name, request, reason=design.reason)
    estimate = _Estimate.of(design)
    observed, expected = estimate.observed, estimate.expected
    if 1 - expected < TINY:
        return design.result(
            name, request, observed=observed, expected=expected, reason=Reason.SINGLE_CATEGORY
        )
    value = (observed - expected) / (1 - expected)
    if len(design.domain) > MAX_TABLED_CATEGORIES:  # a row of them for each deletion is too slow
        request = replace(request, method="analytic")
    interval = interval_of(
        value,
        estimate,
        request,
        clustered=design.clustered,
        analytic=lambda: _linearised(design, estimate, value, request.confidence),
    )
    return design.result(
        name, request, value=value, observed=observed, expected=expected, interval=interval
    )


@dataclass(frozen=True)
class _Estimate:
    """Counts of labels by annotator and category, and agreement, by cluster.

    `linear` holds items of two labels and their agreement, shape (n_clusters, 2); `counts`
    has shape (n_clusters, n_annotators * n_categories).
    """

    linear: Floats
    counts: scipy.sparse.csr_array[np.float64]
    n_annotators: int
    n_categories: int
    agree: Floats

    @staticmethod
    def of(design: Design) -> _Estimate:
        size, n_categories = design.size, len(design.domain)
        paired = (size >= 2).astype(np.float64)
        agree = paired * (row_forms(design.table, None) - size) / np.maximum(size * (size - 1), 1)
        column = design.labels.annotator * n_categories + design.value
        n_annotators = len(design.labels.annotators)
        shape = (design.n_clusters, n_annotators * n_categories)
        rows = design.cluster[design.labels.item]
        counts = table_of(rows, column, np.ones(len(rows)), shape)
        linear = by_cluster(design.cluster, design.n_clusters, paired, agree)
        return _Estimate(linear, counts, n_annotators, n_categories, agree)

    @property
    def observed(self) -> float:
        paired, agree = self.linear.sum(axis=0)
        return float(agree / paired)

    @property
    def total(self) -> Floats:
        counts: Floats = np.asarray(self.counts.sum(axis=0)).ravel()
        return counts.reshape(self.n_annotators, self.n_categories)

    @property
    def expected(self) -> float:
        return float(_expected(*_moments(self.total[None]))[0])

    def without_each(self) -> Floats:
        step = max(1, CHUNK // (self.n_categories * 8))
        starts = range(0, len(self.linear), step)
        expected = np.concatenate([self._expected_left(start, start + step) for start in starts])
        return _kappa(self.linear.sum(axis=0) - self.linear, expected)

    def _expected_left(self, start: int, stop: int) -> Floats:
        """Chance agreement without each cluster: only its own annotators' shares move."""
        total, part = self.total, self.counts[start:stop]
        row = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        annotator, category = np.divmod(part.indices, self.n_categories)
        cells, cell = np.unique(row * self.n_annotators + annotator, return_inverse=True)
        owner, who = np.divmod(cells, self.n_annotators)
        left = total[who]
        np.subtract.at(left, (cell, category), part.data)
        left_sum = left.sum(axis=1, keepdims=True)
        new = np.divide(left, left_sum, out=np.zeros_like(left), where=left_sum > 0)
        old = total[who] / total[who].sum(axis=1, keepdims=True)
        shares, squares, present = (entry[0] for entry in _moments(total[None]))
        gather = table_of(
            owner, np.arange(len(owner)), np.ones(len(owner)), (part.shape[0], len(owner))
        )
        moved_squares = squares + gather @ (np.square(new) - np.square(old)).sum(axis=1)
        gone = gather @ (left_sum.ravel() == 0).astype(np.float64)
        return _expected(shares + gather @ (new - old), moved_squares, present - gone)

    def resampled(self, n_resamples: int, rng: np.random.Generator) -> Floats:
        count = np.ones(len(self.linear), np.intp)
        values = []
        for weights in drawn(count, n_resamples, rng, max(len(count), self.counts.shape[1])):
            counts = np.asarray((self.counts.T @ weights.T).T)
            counts = counts.reshape(len(weights), self.n_annotators, self.n_categories)
            values.append(_kappa(weights @ self.linear, _expected(*_moments(counts))))
        return np.concatenate(values)


def _moments(counts: Floats) -> tuple[Floats, Floats, Floats]:
    totals = counts.sum(axis=2, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    present = (totals > 0).sum(axis=(1, 2)).astype(np.float64)
    return shares.sum(axis=1), np.square(shares).sum(axis=(1, 2)), present


def _expected(shares: Floats, squares: Floats, present: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((np.square(shares).sum(axis=1) - squares) / (present * (present - 1)))


def _kappa(linear: Floats, expected: Floats) -> Floats:
    paired, agree = linear.T
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (agree / paired - expected) / (1 - expected)
    return np.asarray(np.where((1 - expected > TINY) & (paired >= 2), value, np.nan))


def _linearised(design: Design, estimate: _Estimate, value: float, confidence: float) -> Interval:
    labels, n = design.labels, design.labels.n_items
    total, expected = estimate.total, estimate.expected
    n_labels = total.sum(axis=1, keepdims=True)
    shares = total / n_labels
    others = shares.sum(axis=0) - shares
    r = estimate.n_annotators
    own = (shares * others).sum(axis=1)
    moved = (
        n
        / n_labels[labels.annotator, 0]
        * (others[labels.annotator, design.value] - own[labels.annotator])
    )
    of_item = expected + sum_by(labels.item, moved, n) / (r * (r - 1))
    paired = (design.size >= 2).astype(np.float64)
    first = n / paired.sum() * (estimate.agree - expected * paired) / (1 - expected)
    influence = first - value - 2 * (1 - value) * (of_item - expected) / (1 - expected)
    summed = sum_by(design.cluster, influence, design.n_clusters) * design.n_clusters / n
    return linearised_t(value, summed, confidence)
