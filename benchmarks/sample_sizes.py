"""What sample-size curves foretell of larger studies: ``python -m benchmarks.sample_sizes``.

Studies are drawn of which the truth is known. A pilot's curve says what the difference of two
metrics will be with more ratings of each candidate, or more items; as many studies of that size say
what it is. Printed is the mean difference foretold over the mean one shown.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks.ceilings import Scale, as_it_is, five_steps, yes_or_no
from benchmarks.commands import say_row
from stats.arguments import Floats
from stats.ceilings import level_reliability
from stats.correlation import Level, RowCoefficient, correlation_at_level
from stats.power_curves import sample_size_curve

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
    """The difference that a pilot says of a study of more ratings, and of more items too."""
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
    """What is foretold over what is shown, of as many items and of four times as many."""
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--level", choices=LEVELS, action="append")
    options = parser.parse_args()
    say_row("ratings", "level", *COEFFICIENTS)
    say_row(*["---"] * (2 + len(COEFFICIENTS)))
    for level in options.level or LEVELS:
        for crowd in CROWDS:
            rows = [shares(crowd, level, one, options.studies) for one in COEFFICIENTS]
            say_row(crowd.name, level, *("{:.0f}, {:.0f} %".format(*100 * row) for row in rows))


if __name__ == "__main__":
    main()
