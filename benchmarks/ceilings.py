"""How much of a ceiling the truth itself reaches: ``python -m benchmarks.ceilings``.

Studies are drawn of which the truth is known. A perfect metric is one that orders candidates as the
truth does, so that the mean of its correlations with the mean ratings over the mean ceiling is 1
where the ceiling is right. For Pearson's r it is the expected rating, since scales of few steps
bend the truth. Beside that share: how often the interval holds what a perfect metric reaches on
average, and how often the ceiling has a warning.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

import numpy as np
import pandas as pd

from benchmarks.commands import say_row
from stats.arguments import Floats, Integers
from stats.ceilings import Ceiling, ceilings
from stats.correlation import correlation_at_level

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


def far_apart(rng: np.random.Generator, n_items: int, n_systems: int) -> Floats:
    return rng.normal(size=(n_items, n_systems)) * 0.6 + np.linspace(-1.2, 1.2, n_systems)


def in_classes(rng: np.random.Generator, n_items: int, n_systems: int) -> Floats:
    return rng.choice([-1.2, 0.0, 1.2], size=(n_items, n_systems))


def as_it_is(values: Floats) -> Floats:
    return values


def five_steps(values: Floats) -> Floats:
    return np.clip(np.round(values), -2, 2)


def five_steps_at_one_end(values: Floats) -> Floats:
    return np.clip(np.round(values + 1.2), -2, 2)


def five_steps_nearly_all_at_one_end(values: Floats) -> Floats:
    return np.clip(np.round(values + 2.0), -2, 2)


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
        """The mean rating of a truth, over errors and annotators."""
        from scipy import stats

        spread = noise * sqrt(1 + self.severity**2)
        errors = spread * stats.norm.ppf((np.arange(200) + 0.5) / 200)
        return np.asarray(self.scale(true[..., None] + errors).mean(axis=-1))


ROWS = (
    Ratings("on a line"),
    Ratings("on a line, annotators as severe as they err", severity=1.0),
    Ratings("in five steps", scale=five_steps),
    Ratings("in five steps, two in five at one end", scale=five_steps_at_one_end),
    Ratings("in five steps, two in three at one end", scale=five_steps_nearly_all_at_one_end),
    Ratings("yes or no", scale=yes_or_no),
    Ratings("of systems that lie far apart", far_apart),
    Ratings("of truths equal in three classes", in_classes),
    Ratings("on a line, severe annotators of an uneven crowd", severity=1.0, is_uneven=True),
)


@dataclass(frozen=True)
class Outcome:
    """Of a measure: the share of the ceiling that a perfect metric reaches, the interval's coverage
    and the share of studies with a warning."""

    share: float
    coverage: float
    warned: float


def outcomes(ratings: Ratings, design: Design, n_studies: int) -> list[Outcome]:
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


def _outcome(target: float, found: tuple[Ceiling, ...]) -> Outcome:
    known = [one for one in found if not np.isnan(one.attainable_low)]
    return Outcome(
        share=float(target / np.nanmean([one.attainable for one in found])),
        coverage=float(
            np.mean([one.attainable_low <= target <= one.attainable_high for one in known])
        ),
        warned=float(np.mean([one.warning is not None for one in found])),
    )


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=60)
    n_studies = parser.parse_args().studies
    say_row("ratings", "items, candidates, ratings, error", "Pearson", "Kendall", "Spearman")
    say_row(*["---"] * 5)
    for ratings in ROWS:
        for design in DESIGNS:
            found = [
                f"{100 * one.share:.0f} %, {one.coverage:.2f}, {100 * one.warned:.0f} %"
                for one in outcomes(ratings, design, n_studies)
            ]
            say_row(ratings.name, ", ".join(f"{one:g}" for one in design), *found)


if __name__ == "__main__":
    main()
