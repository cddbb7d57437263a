"""Simulated studies of many systems that everybody rated, for `benchmarks.coverage`: tests of all
pairs, adjusted by Holm's method."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations, product

import numpy as np

from benchmarks.coverage_cases import Floats, TestCase
from stats.inference.crossed_means import MeanOfCells, mean_with_limits, spread_of_mean
from stats.inference.families_of_means import family_of_means
from stats.significance import holm

N_ITEMS = 50
OF_ITEMS, OF_ANNOTATORS = 0.3, 0.5
"""By how much items and annotators favour a system, beside 1 by which ratings scatter."""
AHEAD = 1.0


def least_adjusted_p(
    rng: np.random.Generator, differs: bool, *, n_systems: int, n_annotators: int
) -> float:
    """The least p of all pairs, adjusted, of equal systems, or of one that is ahead of the rest."""
    means = pairs_of_systems(rng, n_systems, n_annotators, ahead=AHEAD * differs)
    family = family_of_means(means)
    assert family is not None
    return float(holm([mean.p_with(family.freedom_of(mean)) for mean in means]).min())


def pairs_of_systems(
    rng: np.random.Generator, n_systems: int, n_annotators: int, *, ahead: float = 0.0
) -> list[MeanOfCells]:
    """The differences of every two systems, of which the first is so far ahead of the rest."""
    shape = (n_systems, N_ITEMS, n_annotators)
    ratings = rng.normal(size=shape) + OF_ITEMS * rng.normal(size=(n_systems, N_ITEMS, 1))
    ratings += OF_ANNOTATORS * rng.normal(size=(n_systems, 1, n_annotators))
    ratings[0] += ahead
    return [_mean(a - b) for a, b in combinations(ratings, 2)]


def _mean(difference: Floats) -> MeanOfCells:
    """As of `mean_over_items_and_annotators`, whose coding of names takes most of its time."""
    n_items, n_annotators = difference.shape
    item, annotator = np.indices(difference.shape).reshape(2, -1)
    y = difference.ravel()
    return mean_with_limits(
        float(y.mean()),
        spread_of_mean(y, item, annotator, n_items, n_annotators),
        0.95,
        largest=float(np.abs(y).max()),
        n_items=n_items,
        n_annotators=n_annotators,
        n=y.size,
    )


def family_tests() -> Iterator[TestCase]:
    """Of all pairs of systems, whether any two are told apart."""
    for n_systems, n_annotators in product((3, 10, 20), (3, 4, 5, 8)):
        draw = partial(least_adjusted_p, n_systems=n_systems, n_annotators=n_annotators)
        kind = f"{n_systems} systems, {N_ITEMS} items, {n_annotators} annotators"
        yield TestCase("equal_systems", kind, draw)
