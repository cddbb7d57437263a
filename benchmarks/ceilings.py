"""How right ceilings and sample-size curves are: ``python -m benchmarks.ceilings``.

Studies are drawn of which the truth is known. A perfect metric is one that orders candidates as
the truth does: the mean of its correlations with the mean ratings over the mean ceiling is 1 if
the ceiling is right. For Pearson's r it is the expected rating, since scales of few steps bend the
truth. Beside that share: how often the interval holds what a perfect metric reaches on average,
and how often the ceiling has a warning.

With ``--forecasts``: a pilot's curve says what the difference of two metrics will be with more
ratings of each candidate, or more items; as many studies of that size say what it is. Printed is
the mean difference forecast over the mean one observed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import sqrt
from typing import TypeAlias

import numpy as np
import pandas as pd

from benchmarks.commands import parse_options, say_head, say_row
from stats.arguments import Floats, Integers
from stats.ceilings import Ceiling, ceilings, level_reliability
from stats.correlation import Level, RowCoefficient, correlation_at_level
from stats.power_curves import sample_size_curve

MEASURES = (("item", "pearson"), ("item", "kendall"), ("item", "spearman"))
Design: TypeAlias = tuple[int, int, int, float]
# Items, candidates of each, ratings of each, and the standard deviation of a rating's error; the
# truth's is 1.
DESIGNS: tuple[Design, ...] = (
    (50, 4, 3, 0.5),
    (50, 8, 3, 1.0),
    (50, 4, 4, 1.0),
    (30, 4, 3, 0.5),
    (12, 4, 3, 1.5),
)
Truth = Callable[[np.random.Generator, int, int], Floats]
Scale = Callable[[Floats], Floats]


def on_a_line(rng: np.random.Generator, n_items: int, n_systems: int) -> Floats:
    return rng.normal(size=(n_items, n_systems))


def as_it_is(values: Floats) -> Floats:
    return values


def five_steps(values: Floats, shift: float = 0.0) -> Floats:
    return np.clip(np.round(values + shift), -2, 2)


def yes_or_no(values: Floats) -> Floats:
    return (values > 0).astype(float)


@dataclass(frozen=True)
class Ratings:
    """How ratings come about: `severity` is annotators' standard deviation over an error's, and
    annotators of an uneven crowd of 12 are drawn for each cell, one of them for most."""

    name: str
    truth: Truth = on_a_line
    scale: Scale = as_it_is
    severity: float = 0.0
    is_uneven: bool = False

    def expected(self, true: Floats, noise: float) -> Floats:
        from scipy import stats

        spread = noise * sqrt(1 + self.severity**2)
        errors = spread * stats.norm.ppf((np.arange(200) + 0.5) / 200)
        return np.asarray(self.scale(true[..., None] + errors).mean(axis=-1))


ROWS = (
    Ratings("on a line"),
    Ratings("on a line, annotators as severe as they err", severity=1.0),
    Ratings("in five steps", scale=five_steps),
    Ratings("in five steps, two in five at one end", scale=partial(five_steps, shift=1.2)),
    Ratings("in five steps, two in three at one end", scale=partial(five_steps, shift=2.0)),
    Ratings("yes or no", scale=yes_or_no),
    Ratings(
        "of systems that lie far apart",
        lambda rng, n, n_systems: (
            rng.normal(size=(n, n_systems)) * 0.6 + np.linspace(-1.2, 1.2, n_systems)
        ),
    ),
    Ratings(
        "of truths equal in three classes",
        lambda rng, n, n_systems: rng.choice([-1.2, 0.0, 1.2], size=(n, n_systems)),
    ),
    Ratings("on a line, severe annotators of an uneven crowd", severity=1.0, is_uneven=True),
)


def outcomes(ratings: Ratings, design: Design, n_studies: int) -> list[str]:
    """For each measure: share of the ceiling reached, coverage, studies with a warning."""
    n_items, n_systems, n_ratings, noise = design
    item, system, seat = (axis.ravel() for axis in np.indices((n_items, n_systems, n_ratings)))
    reached, found = [], []
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        true = ratings.truth(rng, n_items, n_systems)
        annotator = _crowd(rng, n_items * n_systems, n_ratings) if ratings.is_uneven else seat
        error = noise * rng.normal(size=len(item))
        error += ratings.severity * noise * rng.normal(size=annotator.max() + 1)[annotator]
        value = ratings.scale(true[item, system] + error)
        means = pd.Series(value).groupby([item, system]).mean().to_numpy()
        found.append(ceilings(item, system, annotator, value, measures=MEASURES, n_splits=30))
        reached.append(list(_reached(means, true, ratings.expected(true, noise))))
    targets = np.nanmean(reached, axis=0)
    return [
        _outcome(target, column)
        for target, column in zip(targets, zip(*found, strict=True), strict=True)
    ]


def _crowd(rng: np.random.Generator, n_cells: int, n_ratings: int) -> Integers:
    """Annotators of each cell, drawn with weights of their ranks to the power -1.5."""
    keys = rng.exponential(size=(n_cells, 12)) * np.arange(1, 13) ** 1.5
    return np.asarray(np.argsort(keys, axis=1)[:, :n_ratings].ravel(), dtype=np.intp)


def _outcome(target: float, found: tuple[Ceiling, ...]) -> str:
    known = [one for one in found if not np.isnan(one.attainable_low)]
    share = target / np.nanmean([one.attainable for one in found])
    coverage = np.mean([one.attainable_low <= target <= one.attainable_high for one in known])
    warned = np.mean([one.warning is not None for one in found])
    return f"{100 * share:.0f} %, {coverage:.2f}, {100 * warned:.0f} %"


def _reached(means: Floats, true: Floats, expected: Floats) -> Iterator[float]:
    item, system = (axis.ravel() for axis in np.indices(true.shape))
    for level, coefficient in MEASURES:
        perfect = expected if coefficient == "pearson" else true
        yield correlation_at_level(
            means,
            perfect.ravel(),
            items=item,
            systems=system,
            level=level,
            coefficient=coefficient,
            n_resamples=0,
        ).value


COEFFICIENTS: tuple[RowCoefficient, ...] = ("pearson", "spearman", "kendall", "acc_eq")
LEVELS: tuple[Level, ...] = ("item", "pooled", "system")
N_ITEMS, N_SYSTEMS, RATINGS, PLANNED = 50, 6, 2, 6


@dataclass(frozen=True)
class Crowd:
    """How studies are drawn; standard deviations, where a candidate's truth has 1."""

    name: str
    scale: Scale = as_it_is
    of_items: float = 0.0
    severity: float = 0.0

    def study(self, rng: np.random.Generator, n_items: int, seed: int) -> tuple[Floats, Floats]:
        """Ratings of each item, system and annotator, and the scores of two metrics, which favour
        systems by a seed."""
        truth = rng.normal(size=(n_items, N_SYSTEMS)) + np.linspace(-0.5, 0.5, N_SYSTEMS)
        rated = truth + self.of_items * rng.normal(size=(n_items, 1))
        error = rng.normal(size=(n_items, N_SYSTEMS, PLANNED))
        severity = self.severity * rng.normal(size=(n_items, 1, PLANNED))
        noise = np.array([0.8, 1.6])[:, None, None]
        favours = noise / 2 * np.random.default_rng(seed).normal(size=(2, 1, N_SYSTEMS))
        scores = truth + favours + noise * rng.normal(size=(2, n_items, N_SYSTEMS))
        return self.scale(rated[:, :, None] + severity + error), scores


CROWDS = (
    Crowd("on a line"),
    Crowd("on a line, items as far apart again by half", of_items=1.5),
    Crowd("on a line, annotators as severe as they err", severity=1.0),
    Crowd("in five steps", five_steps),
    Crowd("yes or no", yes_or_no),
)


def forecast(ratings: Floats, scores: Floats, level: Level, coefficient: RowCoefficient) -> Floats:
    item, system, annotator = (axis.ravel() for axis in np.indices(ratings.shape))
    reliability = level_reliability(
        item, system, annotator, ratings.ravel(), level=level, coefficient=coefficient, n_splits=20
    )
    item, system = (axis.ravel() for axis in np.indices(ratings.shape[:2]))
    curve = sample_size_curve(
        ratings.mean(axis=2).ravel(), scores[0].ravel(), scores[1].ravel(),
        items=item, systems=system, level=level, coefficient=coefficient,
        n_items=[N_ITEMS, 4 * N_ITEMS], n_annotators=[PLANNED], reliability=reliability,
        n_studies=100,
    )  # fmt: skip
    return curve["delta"].to_numpy(dtype=np.float64)


def observed_difference(
    ratings: Floats, scores: Floats, level: Level, coefficient: RowCoefficient
) -> float:
    item, system = (axis.ravel() for axis in np.indices(ratings.shape[:2]))
    a, b = (
        correlation_at_level(
            ratings.mean(axis=2).ravel(), side.ravel(), items=item, systems=system,
            level=level, coefficient=coefficient, n_resamples=0,
        ).value
        for side in scores
    )  # fmt: skip
    return a - b


def shares(crowd: Crowd, level: Level, coefficient: RowCoefficient, n_studies: int) -> Floats:
    said, seen = [], []
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        ratings, scores = crowd.study(rng, N_ITEMS, seed)
        said.append(forecast(ratings[:, :, :RATINGS], scores, level, coefficient))
        more = crowd.study(rng, 4 * N_ITEMS, seed)
        seen.append(
            [observed_difference(*study, level, coefficient) for study in ((ratings, scores), more)]
        )
    return np.asarray(np.nanmean(said, axis=0) / np.mean(seen, axis=0))


def main() -> None:
    options = parse_options(
        __doc__,
        studies=(60, "of each kind"),
        forecasts=(False, "of larger studies, by sample-size curves"),
    )
    if options.forecasts:
        say_head("ratings", "level", *COEFFICIENTS)
        for level, crowd in product(LEVELS, CROWDS):
            rows = [shares(crowd, level, one, options.studies) for one in COEFFICIENTS]
            say_row(crowd.name, level, *("{:.0f}, {:.0f} %".format(*100 * row) for row in rows))
        return
    say_head("ratings", "items, candidates, ratings, error", "Pearson", "Kendall", "Spearman")
    for ratings, design in product(ROWS, DESIGNS):
        found = outcomes(ratings, design, options.studies)
        say_row(ratings.name, ", ".join(f"{one:g}" for one in design), *found)


if __name__ == "__main__":
    main()
