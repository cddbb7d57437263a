"""Coverage of nominal 95 % intervals of alpha: ``python -m benchmarks.coverage [--trials N]``.

Four annotators label every item, and the value in the population is known. Binary labels miss
the truth at rates that differ between items; continuous ones add noise to it. Clustered items
share their truth half the time, and how hard they are, with the four others of their cluster.
Only intervals that exist are counted; the last column says how often there was none.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stats.agreement import Agreement, krippendorff_alpha

ANNOTATORS = 4
CLUSTER = 5
ERRORS = np.array([0.05, 0.2])
NOISES = np.array([0.3, 0.6])


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    n_items: int
    level: str
    prevalence: float
    clustered: bool

    @property
    def alpha(self) -> float:
        """Alpha in the population."""
        spread = self.prevalence * (1 - self.prevalence)
        if self.level == "interval":
            return float(spread / (spread + np.square(NOISES).mean()))
        positive = self.prevalence + (1 - 2 * self.prevalence) * ERRORS.mean()
        disagreement = 2 * (ERRORS * (1 - ERRORS)).mean()
        return float(1 - disagreement / (2 * positive * (1 - positive)))

    def values(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Labels, shape (n_items, n_annotators)."""
        cluster = np.arange(self.n_items) // CLUSTER
        truth = rng.random(self.n_items) < self.prevalence
        hard = rng.integers(2, size=self.n_items)
        if self.clustered:
            shared = rng.random(self.n_items) < 0.5
            truth = np.where(shared, (rng.random(self.n_items) < self.prevalence)[cluster], truth)
            hard = hard[cluster]
        shape = (self.n_items, ANNOTATORS)
        if self.level == "interval":
            return truth[:, None] + NOISES[hard][:, None] * rng.normal(size=shape)
        return (truth[:, None] ^ (rng.random(shape) < ERRORS[hard][:, None])).astype(float)


def intervals(setting: Setting, rng: np.random.Generator) -> Iterator[tuple[str, Agreement]]:
    """The intervals of one simulated study, by method."""
    item = np.arange(setting.n_items).repeat(ANNOTATORS)
    annotator = np.tile(np.arange(ANNOTATORS), setting.n_items)
    columns = (item, annotator, setting.values(rng).ravel())
    clusters = item // CLUSTER if setting.clustered else None
    options = {"level": setting.level, "clusters": clusters}
    yield "jackknife", krippendorff_alpha(*columns, **options)
    yield "analytic", krippendorff_alpha(*columns, **options, ci="analytic")
    bootstrap = {"ci": "bootstrap", "n_resamples": 500, "rng": rng}
    yield "bootstrap", krippendorff_alpha(*columns, **options, **bootstrap)
    yield "no clusters", krippendorff_alpha(*columns, level=setting.level)


def row(setting: Setting, trials: int, rng: np.random.Generator) -> str:
    """Coverage by each method in one setting."""
    hits: dict[str, list[bool]] = {}
    for _ in range(trials):
        for method, interval in intervals(setting, rng):
            inside = interval.ci_low <= setting.alpha <= interval.ci_high
            hits.setdefault(method, []).extend([inside] * (not np.isnan(interval.ci_low)))
    shares = "".join(f"{np.mean(inside):12.3f}" for inside in hits.values())
    kind = "continuous" if setting.level == "interval" else "binary"
    label = (
        f"{setting.n_items:5d}  {kind:<10}  {setting.prevalence:4.1f}  "
        f"{'yes' if setting.clustered else 'no':<9}  {setting.alpha:5.2f}"
    )
    return f"{label}{shares}{1 - len(hits['jackknife']) / trials:10.3f}\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    sys.stdout.write(f"{options.trials} trials a row, seed {options.seed}\n")
    sys.stdout.write(
        "items  values      prev  clustered  alpha   jackknife    analytic   bootstrap"
        " no clusters      none\n"
    )
    for cells in product((20, 50, 200), ("nominal", "interval"), (0.5, 0.1), (False, True)):
        sys.stdout.write(row(Setting(*cells), options.trials, rng))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
