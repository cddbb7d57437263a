"""Simulated ratings of systems and shares, for `benchmarks.coverage`: means and their tests."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.interval_cases.cases import FEW_ITEMS, IntervalCase, Limits, TestCase, limits
from stats.arguments import Floats, Integers
from stats.inference.crossed_means import (
    MeanOfCells,
    mean_over_items_and_annotators,
    mean_with_limits,
    spread_of_mean,
)
from stats.inference.larger_studies import family_of_means
from stats.inference.rogan_gladen import corrected_share
from stats.inference.two_systems import (
    FEWEST_OFF_END,
    MANY_AT_ONE_END,
    OrderedComparison,
    items_off_the_end,
    ordered_comparison,
    share_at_one_end,
)
from stats.significance import holm


def corrected(rng: np.random.Generator, *, theta: float, m: int) -> Limits:
    found_positive, found_negative = int(rng.binomial(m, 0.85)), int(rng.binomial(m, 0.8))
    return limits(
        corrected_share(
            true_positives=found_positive,
            false_negatives=m - found_positive,
            true_negatives=found_negative,
            false_positives=m - found_negative,
            positives=int(rng.binomial(200, theta * 0.85 + (1 - theta) * 0.2)),
            n=200,
        ),
        theta,
    )


def _cells(
    rng: np.random.Generator, n_items: int, n_annotators: int, share: float
) -> tuple[Integers, Integers, Floats]:
    items, annotators = np.indices((n_items, n_annotators)).reshape(2, -1)
    values = rng.normal(size=n_items)[items] + 0.5 * rng.normal(size=n_annotators)[annotators]
    values = values + rng.normal(size=len(items))
    kept = rng.random(len(items)) < share
    return items[kept], annotators[kept], values[kept]


def crossed_mean(
    rng: np.random.Generator, *, n_items: int, n_annotators: int, share: float
) -> Limits:
    return limits(mean_over_items_and_annotators(*_cells(rng, n_items, n_annotators, share)), 0.0)


def crossed_p(
    rng: np.random.Generator, differs: bool, *, n_items: int, n_annotators: int, share: float
) -> float:
    items, annotators, values = _cells(rng, n_items, n_annotators, share)
    return mean_over_items_and_annotators(items, annotators, values + 0.8 * differs).p


# The end of the scale, in standard deviations of what lies behind it.
HIGHEST = 3.0
# Ratings near the floor lie within about a thirtieth of the scale.
JITTER = 0.1


@dataclass(frozen=True)
class SkewedRatings:
    """Two systems of the same mean, of which one is rated at the floor of the scale but for a few
    items, and the other evenly: their differences are skewed, as `floor` of the ratings lie there.
    """

    n_items: int
    n_annotators: int
    floor: float
    share: float = 1.0
    jitter: float = 0.0

    def interval(self, rng: np.random.Generator) -> Limits:
        items, annotators, rated, _ = self._draw(rng)
        mean = self._mean(items, annotators, rated, rated)
        return (mean.ci_low, mean.ci_high, self._truth) if mean else (np.nan,) * 3

    def p(self, rng: np.random.Generator, differs: bool) -> float:
        """Of the difference of both; NaN where the product notes it as a rough guide."""
        items, annotators, rated, even = self._draw(rng)
        difference = rated - self._truth - even + 0.8 * differs
        mean = self._mean(items, annotators, rated, difference)
        return mean.p if mean else np.nan

    @property
    def _truth(self) -> float:
        cut = self._cut
        return float(cut * stats.norm.cdf(cut) + stats.norm.pdf(cut)) + self.jitter / 2

    @property
    def _cut(self) -> float:
        return float(stats.norm.ppf(self.floor))

    def _draw(self, rng: np.random.Generator) -> tuple[Integers, Integers, Floats, Floats]:
        shape = self.n_items, self.n_annotators
        # annotators agree, so that the few items above the floor carry the mean
        of_items, of_cells = rng.normal(size=(self.n_items, 1)), rng.normal(size=shape)
        latent = np.sqrt(0.8) * of_items + np.sqrt(0.2) * of_cells
        even = 0.1 * rng.normal(size=shape)
        present = rng.random(shape) < self.share
        items, annotators = np.nonzero(present)
        rated = np.maximum(latent, self._cut) + self.jitter * rng.random(shape)
        return items, annotators, rated[present], even[present]

    def _mean(
        self, items: Integers, annotators: Integers, rated: Floats, values: Floats
    ) -> MeanOfCells | None:
        ends = {"low": float(rated.min()), "high": float(max(rated.max(), HIGHEST))}
        if items_off_the_end(items, rated, **ends) < FEWEST_OFF_END:
            return None
        skewed = share_at_one_end(rated, **ends) >= MANY_AT_ONE_END
        return mean_over_items_and_annotators(items, annotators, values, skewed=skewed)


def _ordinal(
    rng: np.random.Generator, *, n_items: int, n_annotators: int, points: int, effect: float
) -> OrderedComparison:
    shape = (2, n_items, n_annotators)
    latent = rng.normal(size=(1, n_items, 1)) + 0.7 * rng.normal(size=(1, 1, n_annotators))
    latent = latent + 0.5 * rng.normal(size=(2, n_items, 1)) + rng.logistic(size=shape)
    latent = latent + 0.3 * rng.normal(size=(2, 1, n_annotators))
    latent[0] += effect
    cuts = np.array([0.0]) if points == 2 else np.array([-2.0, -0.5, 1.0, 2.5])
    system, item, annotator = np.indices(shape).reshape(3, -1)
    found = ordered_comparison(item, annotator, system == 0, np.searchsorted(cuts, latent.ravel()))
    assert found is not None
    return found


@cache
def lead_truth(points: int, effect: float) -> float:
    """How much oftener the first is rated above than below, by many annotators of many items."""
    rng = np.random.default_rng(0)
    many = [
        _ordinal(rng, n_items=200, n_annotators=200, points=points, effect=effect).lead.value
        for _ in range(50)
    ]
    return float(np.mean(many))


def ordinal_lead(
    rng: np.random.Generator, *, n_items: int, n_annotators: int, points: int
) -> Limits:
    found = _ordinal(rng, n_items=n_items, n_annotators=n_annotators, points=points, effect=0.8)
    return found.lead.ci_low, found.lead.ci_high, lead_truth(points, 0.8)


def ordinal_p(
    rng: np.random.Generator, differs: bool, *, n_items: int, n_annotators: int, points: int
) -> float:
    effect = 0.8 * differs
    found = _ordinal(rng, n_items=n_items, n_annotators=n_annotators, points=points, effect=effect)
    return found.lead.p


def mean_intervals() -> Iterator[IntervalCase]:
    for theta, m in product((0.1, 0.5, 0.9), (20, 50)):
        yield IntervalCase(
            "rogan_gladen",
            f"share {theta}, {m} calibrated a class",
            partial(corrected, theta=theta, m=m),
        )
    for n_items, n_annotators, rated in product((20, 50), (3, 6, 12), (1.0, 0.4)):
        yield IntervalCase(
            "systems",
            f"{n_items} items, {n_annotators} annotators, {rated:.0%} rated",
            partial(crossed_mean, n_items=n_items, n_annotators=n_annotators, share=rated),
        )
    for kind, ratings, noted in _skewed_settings():
        yield IntervalCase("skewed_systems", kind, ratings.interval, noted)
    for setting, sizes in _ordinal_settings():
        yield IntervalCase("ordinal_systems", setting, partial(ordinal_lead, **sizes))


def _skewed_settings() -> Iterator[tuple[str, SkewedRatings, str]]:
    sizes = [*product((10, 15, 19, 20, 50), (3, 6), (0.5, 0.8), (1.0,))]
    sizes += [*product((20, 50), (6, 12), (0.5, 0.8), (0.4,)), (50, 12, 0.9, 1.0)]
    ratings = [SkewedRatings(*size) for size in sizes]
    ratings += [SkewedRatings(*size, jitter=JITTER) for size in sizes if size[0] >= 20]
    for one in ratings:
        kind = f"{one.n_items} items, {one.n_annotators} annotators, {one.floor:.0%} "
        kind += "near the floor" if one.jitter else "at the floor"
        rated = "" if one.share == 1.0 else f", {one.share:.0%} rated"
        yield kind + rated, one, FEW_ITEMS if one.n_items < 20 else ""


def _ordinal_settings() -> Iterator[tuple[str, dict[str, Any]]]:
    for points, n_items, n_annotators in product((2, 5), (20, 50), (3, 6)):
        yield (
            f"{points} points, {n_items} items, {n_annotators} annotators",
            {"points": points, "n_items": n_items, "n_annotators": n_annotators},
        )


def mean_tests() -> Iterator[TestCase]:
    for n_items, n_annotators, share in product((20, 50), (3, 6, 12), (1.0, 0.4)):
        yield TestCase(
            "systems",
            f"{n_items} items, {n_annotators} annotators, {share:.0%} rated",
            partial(crossed_p, n_items=n_items, n_annotators=n_annotators, share=share),
        )
    for kind, ratings, noted in _skewed_settings():
        yield TestCase("skewed_systems", kind, ratings.p, noted)
    for setting, sizes in _ordinal_settings():
        yield TestCase("ordinal_systems", setting, partial(ordinal_p, **sizes))


N_ITEMS = 50
# By how much items and annotators favour a system, beside 1 by which ratings scatter.
OF_ITEMS, OF_ANNOTATORS = 0.3, 0.5
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
    for n_systems, n_annotators in product((3, 10, 20), (3, 4, 5, 8)):
        yield TestCase(
            "equal_systems",
            f"{n_systems} systems, {N_ITEMS} items, {n_annotators} annotators",
            partial(least_adjusted_p, n_systems=n_systems, n_annotators=n_annotators),
        )
