"""Intervals of Cohen's kappa: from sums over items or clusters, or in closed form."""

import numpy as np

from stats.agreement.intervals import Interval, Request, interval_of, linearised_t, normal
from stats.agreement.kappa import Kappas
from stats.agreement.posterior import is_few, kappa_posterior
from stats.agreement.sums import Sums, by_cluster, table_of
from stats.arguments import Floats, Integers
from stats.groups import sum_by

TINY = 1e-11
"""Expected agreement within this of 1 counts as 1: what is left is rounding."""
MAX_POSTERIOR = 20
"""Categories of a posterior, of which 20,000 tables are drawn."""
MAX_TABLED_CATEGORIES = 2000
"""Of a dense table of categories, which then takes 32 MB."""


def cohen_interval(
    first: Integers,
    second: Integers,
    n_categories: int,
    weights: Floats | None,
    terms: Kappas,
    request: Request,
    cluster: Integers | None,
) -> Interval:
    """The interval asked for, of one pair of annotators."""
    value, n = float(terms.kappa[0]), len(first)
    groups = np.arange(n) if cluster is None else cluster

    def analytic() -> Interval:
        if cluster is None:
            return normal(value, float(terms.se[0]), request.confidence)
        moved = _influence(first, second, n_categories, weights, terms)
        n_clusters = int(cluster.max()) + 1
        summed = sum_by(cluster, moved, n_clusters) * n_clusters / n
        return linearised_t(value, summed, request.confidence)

    if request.method == "jackknife" and cluster is None and n_categories <= MAX_POSTERIOR:
        symmetric = weights is None or bool(np.allclose(weights, weights.T))
        if symmetric and is_few(first, second, n_categories, value):
            table = np.zeros((n_categories, n_categories))
            np.add.at(table, (first, second), 1.0)
            return kappa_posterior(table, confidence=request.confidence, weights=weights)
    if n_categories > MAX_TABLED_CATEGORIES:  # the table of the quadratic form would not fit
        return analytic()
    return interval_of(
        value,
        cohen_sums(first, second, n_categories, weights, groups),
        request,
        clustered=cluster is not None,
        analytic=analytic,
        # Few clusters that differ in how much they disagree: limits of kappa's own scale lie too
        # high, as the part `kappa_clusters` of docs/coverage.md says.
        labels_per_item=None if cluster is None else 2.0,
    )


def cohen_sums(
    first: Integers, second: Integers, n_categories: int, weights: Floats | None, group: Integers
) -> Sums:
    """Kappa from items, agreement, and the counts of both annotators side by side."""
    n_groups = int(group.max()) + 1
    agree = (first == second).astype(np.float64) if weights is None else weights[first, second]
    linear = by_cluster(group, n_groups, np.ones(len(first)), agree)
    columns = np.concatenate([first, second + n_categories])
    rows, ones = np.concatenate([group, group]), np.ones(2 * len(first))
    vector = table_of(rows, columns, ones, (n_groups, 2 * n_categories))
    cross = np.eye(n_categories) if weights is None else weights
    empty = np.zeros_like(cross)
    form = np.block([[empty, cross / 2], [cross.T / 2, empty]])

    def evaluate(n: Floats, agreed: Floats, chance: Floats) -> Floats:
        expected = chance / np.square(n)
        value = (agreed / n - expected) / (1 - expected)
        return np.asarray(np.where((1 - expected > TINY) & (n >= 2), value, np.nan))

    return Sums(linear, evaluate, vector, form)


def _influence(
    first: Integers, second: Integers, n_categories: int, weights: Floats | None, terms: Kappas
) -> Floats:
    n = len(first)
    rows = np.bincount(first, minlength=n_categories) / n
    columns = np.bincount(second, minlength=n_categories) / n
    cross = np.eye(n_categories) if weights is None else weights
    observed, expected = float(terms.observed[0]), float(terms.expected[0])
    chance = (cross @ columns)[first] + (rows @ cross)[second]
    left = 1 - expected
    agreed = (cross[first, second] - observed) / left
    return np.asarray(agreed - (1 - observed) * (chance - 2 * expected) / left**2)
