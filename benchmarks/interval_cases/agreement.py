"""Simulated labels of people, for `benchmarks.coverage`: kappa, shares and alpha."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Literal

import numpy as np

from benchmarks.commands import parse_options, say_head, say_row
from benchmarks.interval_cases.cases import (
    FEW_CARRY,
    FEW_ITEMS,
    FEW_OF_A_CLASS,
    IntervalCase,
    Limits,
    limits,
)
from stats.agreement import Agreement, cohen_kappa, fleiss_kappa, icc, krippendorff_alpha
from stats.agreement.intervals import share_posterior
from stats.arguments import Floats

POOL, RELEVANT = 14, 0.17


def kappa(
    rng: np.random.Generator,
    *,
    value: float,
    margins: tuple[float, ...],
    n: int,
    unnoted: bool = False,
) -> Limits:
    """Of a study; of the first without a note where those are asked for."""
    shares = np.array(margins)
    table = (1 - value) * np.outer(shares, shares) + value * np.diag(shares)
    while True:
        counts = np.bincount(rng.choice(table.size, p=table.ravel(), size=n), minlength=table.size)
        low, high, is_noted = _kappa_limits(tuple(counts.tolist()), len(shares))
        if not (unnoted and is_noted):
            return low, high, value


_share_limits = cache(share_posterior)


@cache
def _kappa_limits(counts: tuple[int, ...], n_classes: int) -> tuple[float, float, bool]:
    """Of a table of counts, by rows, and whether they are noted to be a rough guide; with few items
    the same tables come again and again."""
    cells = np.repeat(np.arange(len(counts)), counts)
    found = cohen_kappa(cells // n_classes, cells % n_classes)
    return found.ci_low, found.ci_high, any("rough guide" in warning for warning in found.warnings)


@dataclass(frozen=True)
class TwoRounds:
    """Two rounds of judgments of the same pools: `POOL` candidates of each target, few relevant.

    Targets differ in how many are relevant, and with `differing` in how often judges err.
    """

    n_targets: int
    error: float
    differing: float

    @property
    def kappa(self) -> float:
        squared = self.error**2 + self.differing * self.error * (1 - self.error)
        relevant = RELEVANT + (1 - 2 * RELEVANT) * self.error
        disagreement = 2 * (self.error - squared)
        return 1 - disagreement / (2 * relevant * (1 - relevant))

    def interval(self, rng: np.random.Generator) -> Limits:
        shape = (self.n_targets, POOL)
        share = rng.beta(4 * RELEVANT, 4 * (1 - RELEVANT), (self.n_targets, 1))
        truth = rng.random(shape) < share
        error = np.full((self.n_targets, 1), self.error)
        if self.differing:
            size = 1 / self.differing - 1
            error = rng.beta(self.error * size, (1 - self.error) * size, error.shape)
        first, second = ((truth ^ (rng.random(shape) < error)).ravel() for _ in range(2))
        target = np.repeat(np.arange(self.n_targets), POOL)
        return limits(cohen_kappa(first, second, clusters=target), self.kappa)

    @property
    def label(self) -> str:
        alike = "differing by target" if self.differing else "alike in all"
        return f"kappa {self.kappa:.2f}, {self.n_targets} targets of {POOL}, disagreement {alike}"


def percent(rng: np.random.Generator, *, share: float, n: int) -> Limits:
    interval = _share_limits(int(rng.binomial(n, share)), n)
    return interval.low, interval.high, share


CiChoice = Literal["jackknife", "analytic", "bootstrap"]
ANNOTATORS = 4
CLUSTER = 5
ERRORS = np.array([0.05, 0.2])
NOISES = np.array([0.3, 0.6])


@dataclass(frozen=True)
class Setting:
    n_items: int
    level: str
    prevalence: float
    clustered: bool

    @property
    def alpha(self) -> float:
        spread = self.prevalence * (1 - self.prevalence)
        if self.level == "interval":
            return float(spread / (spread + np.square(NOISES).mean()))
        positive = self.prevalence + (1 - 2 * self.prevalence) * ERRORS.mean()
        disagreement = 2 * (ERRORS * (1 - ERRORS)).mean()
        return float(1 - disagreement / (2 * positive * (1 - positive)))

    def values(self, rng: np.random.Generator) -> Floats:
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
        kind = "continuous" if self.level == "interval" else "binary"
        clusters = f", clusters of {CLUSTER}" if self.clustered else ""
        return f"{kind}, prevalence {self.prevalence}, {self.n_items} items{clusters}"

    def interval(self, rng: np.random.Generator) -> Limits:
        return limits(self.estimate(self.values(rng)), self.alpha)

    def estimate(
        self, values: Floats, *, ci: CiChoice = "jackknife", ignore: bool = False
    ) -> Agreement:
        item = np.arange(self.n_items).repeat(ANNOTATORS)
        annotator = np.tile(np.arange(ANNOTATORS), self.n_items)
        clusters = item // CLUSTER if self.clustered and not ignore else None
        return krippendorff_alpha(
            item, annotator, values.ravel(), level=self.level, clusters=clusters, ci=ci
        )


def of_many(rng: np.random.Generator, *, setting: Setting) -> Limits:
    """Fleiss' kappa of categories, ICC(1) of numbers: each is alpha in a large study."""
    items, annotators = np.indices((setting.n_items, ANNOTATORS)).reshape(2, -1)
    values = setting.values(rng).ravel()
    coefficient = icc if setting.level == "interval" else fleiss_kappa
    return limits(coefficient(items, annotators, values), setting.alpha)


def agreement_intervals() -> Iterator[IntervalCase]:
    tables = ((0.5, 0.5), (0.1, 0.9), (0.2, 0.3, 0.5), (0.2,) * 5)
    for value, margins, n in product((0.4, 0.8), tables, (10, 20, 50)):
        shares = "/".join(f"{share:g}" for share in margins)
        setting = f"kappa {value}, classes {shares}, {n} items"
        # Where 5 are expected half the studies have fewer, and the note.
        is_rare = n * min(margins) < 5 or (len(margins) == 2 and n * min(margins) == 5)
        noted = FEW_ITEMS if n < 20 else FEW_OF_A_CLASS if is_rare else ""
        yield IntervalCase(
            "kappa", setting, partial(kappa, value=value, margins=margins, n=n), noted
        )
        if n >= 20 and is_rare and n * min(margins) == 5:
            yield IntervalCase(
                "kappa",
                f"{setting}, those without a note",
                partial(kappa, value=value, margins=margins, n=n, unnoted=True),
            )
    for differing, error, n in product((0.1, 0.0), (0.05, 0.02), (20, 40, 100)):
        rounds = TwoRounds(n, error, differing)
        yield IntervalCase("kappa_clusters", rounds.label, rounds.interval)
    for share, n in product((0.5, 0.8, 0.95), (10, 20, 50, 100)):
        noted = FEW_ITEMS if n < 20 else FEW_OF_A_CLASS if n * (1 - share) < 5 - 1e-9 else ""
        yield IntervalCase(
            "percent", f"share {share}, {n} items", partial(percent, share=share, n=n), noted
        )
    for cells in product((20, 50, 200), ("nominal", "interval"), (0.5, 0.1), (False, True)):
        one = Setting(*cells)
        clusters = one.n_items // CLUSTER if one.clustered else one.n_items
        rare = one.n_items * one.prevalence < 5
        few = FEW_CARRY if one.level == "interval" else FEW_OF_A_CLASS
        noted = FEW_ITEMS if clusters < 20 else few if rare else ""
        yield IntervalCase("alpha", one.label, one.interval, noted)
    for n, level, prevalence in product((20, 50), ("nominal", "interval"), (0.5, 0.2)):
        one = Setting(n, level, prevalence, False)
        name = "ICC(1)" if level == "interval" else "Fleiss' kappa"
        noted = FEW_OF_A_CLASS if n * prevalence < 5 and level == "nominal" else ""
        yield IntervalCase(
            "agreement_of_many", f"{name}, {one.label}", partial(of_many, setting=one), noted
        )


COLUMNS: tuple[tuple[CiChoice, bool], ...] = (
    ("jackknife", False), ("analytic", False), ("bootstrap", False), ("jackknife", True),
)  # fmt: skip


def coverages(setting: Setting, trials: int, rng: np.random.Generator) -> list[float]:
    held: list[list[bool]] = [[] for _ in COLUMNS]
    for _ in range(trials):
        values = setting.values(rng)
        for found, (ci, ignore) in zip(held, COLUMNS, strict=True):
            one = setting.estimate(values, ci=ci, ignore=ignore)
            if not np.isnan(one.ci_low):
                found.append(one.ci_low <= setting.alpha <= one.ci_high)
    return [float(np.mean(found)) for found in held]


def main() -> None:
    trials = parse_options(__doc__, trials=(400, "studies a row")).trials
    say_head("setting", "jackknife-t", "analytic", "bootstrap", "clusters ignored")
    for cells in product((20, 50, 200), ("nominal", "interval"), (0.5, 0.1), (False, True)):
        setting = Setting(*cells)
        shares = coverages(setting, trials, np.random.default_rng(0))
        say_row(setting.label, *(f"{share:.3f}" for share in shares))


if __name__ == "__main__":
    main()
