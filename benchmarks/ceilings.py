"""How much of a ceiling the truth itself reaches: ``python -m benchmarks.ceilings``.

Studies are drawn of which the truth is known. A perfect metric is one that orders candidates as the
truth does, so that the mean of its correlations with the mean ratings over the mean ceiling is 1
where the ceiling is right. Pearson's r is left out where the scale bends the truth: there a perfect
metric is the expected rating, not the truth.
"""

import argparse
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from stats.arguments import Floats
from stats.ceilings import ceilings
from stats.correlation import correlation_at_level

MEASURES = (("item", "pearson"), ("item", "kendall"), ("item", "spearman"))
# Items, candidates of each, ratings of each, and the standard deviation of a rating's error; the
# truth's is 1.
DESIGNS = ((50, 4, 3, 0.5), (50, 8, 3, 1.0), (50, 4, 4, 1.0), (12, 4, 3, 1.5))
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


def yes_or_no(values: Floats) -> Floats:
    return (values > 0).astype(float)


ROWS: tuple[tuple[str, Truth, Scale, float], ...] = (
    ("on a line", on_a_line, as_it_is, 0.0),
    ("on a line, annotators as severe as they err", on_a_line, as_it_is, 1.0),
    ("in five steps", on_a_line, five_steps, 0.0),
    ("in five steps, most at one end", on_a_line, five_steps_at_one_end, 0.0),
    ("yes or no", on_a_line, yes_or_no, 0.0),
    ("of systems that lie far apart", far_apart, as_it_is, 0.0),
    ("of truths equal in three classes", in_classes, as_it_is, 0.0),
)


def shares(
    truth: Truth, scale: Scale, severity: float, design: tuple[int, int, int, float], n_studies: int
) -> Floats:
    """The mean of what the truth reaches over the mean ceiling, for each measure."""
    n_items, n_systems, n_ratings, noise = design
    item, system, annotator = (axis.ravel() for axis in np.indices((n_items, n_systems, n_ratings)))
    reached, found = [], []
    for seed in range(n_studies):
        rng = np.random.default_rng(seed)
        true = truth(rng, n_items, n_systems)
        error = noise * rng.normal(size=len(item))
        error += severity * noise * rng.normal(size=n_ratings)[annotator]
        value = scale(true[item, system] + error)
        means = pd.Series(value).groupby([item, system]).mean().to_numpy()
        found.append(
            [
                one.attainable
                for one in ceilings(item, system, annotator, value, measures=MEASURES, n_splits=30)
            ]
        )
        reached.append(list(_reached(means, true)))
    return np.asarray(np.nanmean(reached, axis=0) / np.nanmean(found, axis=0))


def _reached(means: Floats, true: Floats) -> Iterator[float]:
    item, system = (axis.ravel() for axis in np.indices(true.shape))
    for level, coefficient in MEASURES:
        yield correlation_at_level(
            means,
            true.ravel(),
            items=item,
            systems=system,
            level=level,
            coefficient=coefficient,
            n_resamples=0,
        ).value


def _print(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=60)
    n_studies = parser.parse_args().studies
    _print("ratings", "items, candidates, ratings, error", "Pearson", "Kendall", "Spearman")
    _print(*["---"] * 5)
    for name, truth, scale, severity in ROWS:
        for design in DESIGNS:
            found = [
                f"{100 * one:.0f} %" for one in shares(truth, scale, severity, design, n_studies)
            ]
            if scale is not as_it_is:
                found[0] = "–"
            sizes = ", ".join(f"{one:g}" for one in design)
            _print(name, sizes, *found)


if __name__ == "__main__":
    main()
