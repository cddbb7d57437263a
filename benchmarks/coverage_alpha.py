"""Simulated labels with a known alpha, for `benchmarks.coverage`; and how its intervals compare.

Four annotators label every item, and the value in the population is known. Binary labels miss
the truth at rates that differ between items; continuous ones add noise to it. Clustered items
share their truth half the time, and how hard they are, with the four others of their cluster.

``python -m benchmarks.coverage_alpha`` prints the coverage of each kind of interval, and of the
jackknife that ignores the clusters: the table in docs/agreement.md.
"""

import argparse
import sys
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stats.agreement import Agreement, krippendorff_alpha

CiChoice = Literal["jackknife", "analytic", "bootstrap"]
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

    @property
    def label(self) -> str:
        """The setting in words."""
        kind = "continuous" if self.level == "interval" else "binary"
        clusters = f", clusters of {CLUSTER}" if self.clustered else ""
        return f"{kind}, prevalence {self.prevalence}, {self.n_items} items{clusters}"

    def interval(
        self, rng: np.random.Generator, *, ci: CiChoice = "jackknife", ignore: bool = False
    ) -> Agreement:
        """Alpha of one simulated study, with its interval; `ignore` its clusters, or not."""
        return self.estimate(self.values(rng), ci=ci, ignore=ignore)

    def estimate(
        self, values: NDArray[np.float64], *, ci: CiChoice = "jackknife", ignore: bool = False
    ) -> Agreement:
        """Alpha of labels, shape (n_items, n_annotators)."""
        item = np.arange(self.n_items).repeat(ANNOTATORS)
        annotator = np.tile(np.arange(ANNOTATORS), self.n_items)
        clusters = item // CLUSTER if self.clustered and not ignore else None
        return krippendorff_alpha(
            item, annotator, values.ravel(), level=self.level, clusters=clusters, ci=ci
        )


COLUMNS: tuple[tuple[CiChoice, bool], ...] = (
    ("jackknife", False), ("analytic", False), ("bootstrap", False), ("jackknife", True),
)  # fmt: skip


def coverages(setting: Setting, trials: int, rng: np.random.Generator) -> list[float]:
    """The shares of intervals that hold the true alpha, of those that there are."""
    held: list[list[bool]] = [[] for _ in COLUMNS]
    for _ in range(trials):
        values = setting.values(rng)
        for found, (ci, ignore) in zip(held, COLUMNS, strict=True):
            one = setting.estimate(values, ci=ci, ignore=ignore)
            if not np.isnan(one.ci_low):
                found.append(one.ci_low <= setting.alpha <= one.ci_high)
    return [float(np.mean(found)) for found in held]


def main() -> None:
    """Print a row a setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    options = parser.parse_args()
    sys.stdout.write(
        "| setting | jackknife-t | analytic | bootstrap | clusters ignored |\n"
        "|---|---|---|---|---|\n"
    )
    for cells in product((20, 50, 200), ("nominal", "interval"), (0.5, 0.1), (False, True)):
        setting = Setting(*cells)
        shares = coverages(setting, options.trials, np.random.default_rng(0))
        row = " | ".join(f"{share:.3f}" for share in shares)
        sys.stdout.write(f"| {setting.label} | {row} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
