"""Simulated ratings by crowds in which a few annotators do most of the work, for
`benchmarks.coverage`.

Who rates what is drawn, or is that of real crowds in ``../shared/data`` (``crowd`` and
``lmstyle``); ratings are always simulated, so that the truth is known. Without the folder the
rows of real crowds are left out.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import nan
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.interval_cases.cases import IntervalCase, Limits, TestCase, limits
from stats.arguments import Floats, Integers
from stats.inference.crossed_means import MeanOfCells, mean_with_limits, spread_of_mean
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.preferences_with_ties import abilities_with_ties
from stats.inference.tie_likelihood import Game, TieLikelihood, maximum, precision_of
from stats.inference.two_systems import ordered_comparison

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
# By how much an annotator, an item and a rating favor one of two systems (standard deviations).
OF_ANNOTATORS, OF_ITEMS, OF_RATINGS = 0.5, 0.7, 1.0
AHEAD = 0.8
# Between the points of a scale of five.
CUTS = np.array([-2.0, -0.5, 1.0, 2.5])
TIE = -0.5
MANY = 200_000


@dataclass(frozen=True)
class Crowd:
    """Who rates which items: each by so many of the annotators, drawn by 1 / rank ** skew; or the
    items and annotators of a real crowd."""

    n_items: int
    per_item: int
    n_annotators: int
    skew: float
    real: tuple[Integers, Integers] | None = None

    @property
    def is_even(self) -> bool:
        return self.real is None and not self.skew

    def cells(self, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """The item and the annotator of each rating, from 0 without a gap."""
        if self.real is not None:
            return self.real
        # The annotators with the largest keys of the Gumbel distribution are drawn by weight.
        rank = np.arange(1, self.n_annotators + 1)
        keys = rng.gumbel(size=(self.n_items, self.n_annotators)) - self.skew * np.log(rank)
        annotator = np.argsort(-keys, axis=1)[:, : self.per_item].ravel()
        item = np.repeat(np.arange(self.n_items), self.per_item)
        return item, np.unique(annotator, return_inverse=True)[1]

    def part(self, n_items: int) -> "Crowd":
        if self.real is None or self.n_items <= n_items:
            return self
        item, annotator = (column[self.real[0] < n_items] for column in self.real)
        return replace(
            self, n_items=n_items, real=(item, np.unique(annotator, return_inverse=True)[1])
        )


def _favor(rng: np.random.Generator, item: Integers, annotator: Integers, n_systems: int) -> Floats:
    of_annotator = OF_ANNOTATORS * rng.normal(size=(int(annotator.max()) + 1, n_systems))
    of_item = OF_ITEMS * rng.normal(size=(int(item.max()) + 1, n_systems))
    return of_annotator[annotator] + of_item[item]


def rated_difference(rng: np.random.Generator, crowd: Crowd, ahead: float) -> MeanOfCells:
    """The difference of two systems' means; as of `mean_over_items_and_annotators`, whose coding
    of names takes most of its time."""
    item, annotator = crowd.cells(rng)
    favor = _favor(rng, item, annotator, 2)
    ratings = favor + OF_RATINGS * rng.normal(size=favor.shape)
    y = ratings[:, 0] - ratings[:, 1] + ahead
    n_items, n_annotators = int(item.max()) + 1, int(annotator.max()) + 1
    spread = spread_of_mean(y, item, annotator, n_items, n_annotators)
    return mean_with_limits(
        float(y.mean()), spread, 0.95, largest=float(np.abs(y).max()), n_items=n_items,
        n_annotators=n_annotators, n=len(y),
    )  # fmt: skip


def _points(
    rng: np.random.Generator, item: Integers, annotator: Integers, ahead: float
) -> Integers:
    """Ratings of two systems on five points, shape (n_ratings, 2)."""
    favor = _favor(rng, item, annotator, 2)
    own = rng.normal(size=int(item.max()) + 1)[item]
    own = own + rng.normal(size=int(annotator.max()) + 1)[annotator]
    latent = own[:, None] + favor + rng.logistic(size=favor.shape)
    latent[:, 0] += ahead
    return np.searchsorted(CUTS, latent)


def ordinal_lead(rng: np.random.Generator, crowd: Crowd, ahead: float) -> MeanOfCells:
    item, annotator = crowd.cells(rng)
    points = _points(rng, item, annotator, ahead)
    is_first = np.arange(2 * len(item)) < len(item)
    found = ordered_comparison(np.tile(item, 2), np.tile(annotator, 2), is_first, points.T.ravel())
    assert found is not None
    return found.lead


@cache
def lead_truth(ahead: float) -> float:
    """With a new item and a new annotator for every rating."""
    each = np.arange(MANY)
    points = _points(np.random.default_rng(0), each, each, ahead)
    return float(np.sign(points[:, 0] - points[:, 1]).mean())


def _compared(
    rng: np.random.Generator, item: Integers, annotator: Integers, ahead: float
) -> tuple[Integers, Integers, Integers]:
    favor = _favor(rng, item, annotator, 3)
    favor[:, 0] += ahead
    first, second = np.array([(0, 1), (0, 2), (1, 2)])[rng.integers(3, size=len(item))].T
    at = np.arange(len(item))
    odds = favor[at, first] - favor[at, second]
    chances = np.exp(np.stack([odds / 2, np.full_like(odds, TIE), -odds / 2]))
    drawn = (rng.random(len(odds)) > np.cumsum(chances / chances.sum(axis=0), axis=0)).sum(axis=0)
    return first, second, 1 - drawn


@dataclass(frozen=True)
class Preference:
    ci_low: float
    ci_high: float
    p: float


def preference(rng: np.random.Generator, crowd: Crowd, ahead: float) -> Preference | None:
    """As of `abilities_with_ties`, whose checks take most of its time; None without a maximum."""
    item, annotator = crowd.cells(rng)
    first, second, outcome = _compared(rng, item, annotator, ahead)
    n, nothing = len(item), np.ones(0)
    game = Game(
        first, second, outcome.astype(np.int8), np.ones(n), np.ones((n, 0)), [0, 1, 2], [], nothing
    )
    terms = TieLikelihood(game, "davidson", with_ties=True)
    value, _, converged = maximum(terms)
    if not converged:
        return None
    precision = precision_of(terms, value, {"items": item, "annotators": annotator}, n)
    delta, se = -float(value[0]), precision.se(np.eye(len(value))[0])
    half = float(stats.t.ppf(0.975, precision.freedom)) * se
    p = float(2 * stats.t.sf(abs(delta) / se, precision.freedom))
    return Preference(delta - half, delta + half, p)


@cache
def ability_truth(ahead: float) -> float:
    each = np.arange(MANY)
    compared = _compared(np.random.default_rng(0), each, each, ahead)
    return abilities_with_ties(*compared).pairs[0].delta


def powered(rng: np.random.Generator, crowd: Crowd) -> Limits:
    item, cluster = crowd.cells(rng)
    n_clusters = int(cluster.max()) + 1
    truth = rng.normal(size=n_clusters)[cluster] + rng.normal(size=len(item))
    judge = truth + rng.normal(size=n_clusters)[cluster] + 0.5 * rng.normal(size=len(item))
    human = np.where(rng.random(len(item)) < 0.25, truth, np.nan)
    return limits(prediction_powered_mean(human, judge, clusters=cluster), 0.0)


@dataclass(frozen=True)
class CrowdCase:
    of: str
    crowd: Crowd

    def interval(self, rng: np.random.Generator) -> Limits:
        if self.of == "ratings":
            return limits(rated_difference(rng, self.crowd, AHEAD), AHEAD)
        if self.of == "ordinal":
            return limits(ordinal_lead(rng, self.crowd, AHEAD), lead_truth(AHEAD))
        pair = preference(rng, self.crowd, AHEAD)
        return limits(pair, ability_truth(AHEAD)) if pair else (nan, nan, nan)

    def p(self, rng: np.random.Generator, differs: bool) -> float:
        """Of equal systems; of one ahead for even crowds only, whose power is compared."""
        if differs and not self.crowd.is_even:
            return nan
        draw = {"ratings": rated_difference, "ordinal": ordinal_lead, "preferences": preference}
        found = draw[self.of](rng, self.crowd, AHEAD * differs)
        return found.p if found else nan


def _drawn_crowds() -> Iterator[tuple[str, Crowd]]:
    for n_items, per_item, n_annotators, skew in (
        *((50, 3, 12, 0.0), (50, 3, 12, 1.5), (100, 1, 30, 0.0), (100, 1, 30, 1.0)),
        *((100, 1, 30, 1.5), (200, 2, 30, 1.5), (400, 1, 40, 2.0)),
    ):
        yield (
            f"{n_items} items by {per_item} of {n_annotators} annotators, skew {skew:g}",
            Crowd(n_items, per_item, n_annotators, skew),
        )


@cache
def _real_crowds() -> tuple[tuple[str, Crowd], ...]:
    crowds = []
    for name in ("affect", "bluebirds", "rte"):
        rows = _rows(SHARED / "crowd" / name / "labels.csv")
        rows = [row for row in rows if row.get("emotion", "anger") == "anger"]
        crowds.append((f"crowd of {name}", _real([(r["item"], r["annotator"]) for r in rows])))
    rows = _rows(SHARED / "lmstyle" / "mturk_batch_results.csv")
    done = [(row["HITId"], row["WorkerId"]) for row in rows if row["ApprovalTime"]]
    crowds.append(("crowd of lmstyle", _real(done)))
    return tuple((name, crowd) for name, crowd in crowds if crowd.n_items)


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        sys.stderr.write(f"{path} is missing: its crowd is left out.\n")
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _real(pairs: list[tuple[str, str]]) -> Crowd:
    columns = np.array(pairs or np.empty((0, 2), dtype=str))
    item, annotator = (np.unique(column, return_inverse=True)[1] for column in columns.T)
    n_items, n_annotators = (len(np.unique(column)) for column in (item, annotator))
    return Crowd(n_items, len(item) // max(n_items, 1), n_annotators, nan, (item, annotator))


# Of a real crowd, so that a study takes milliseconds.
MOST_ITEMS = {"ratings": 800, "ordinal": 800, "preferences": 200}


def _cases() -> Iterator[tuple[str, str, CrowdCase]]:
    for kind in ("ratings", "ordinal", "preferences"):
        for name, crowd in (*_drawn_crowds(), *_real_crowds()):
            yield f"crowd_{kind}", name, CrowdCase(kind, crowd.part(MOST_ITEMS[kind]))


def crowd_intervals() -> Iterator[IntervalCase]:
    for part, name, case in _cases():
        yield IntervalCase(part, name, case.interval)
    for _name, crowd in _drawn_crowds():
        if crowd.per_item == 1:
            yield IntervalCase(
                "crowd_powered",
                f"{crowd.n_items} items in {crowd.n_annotators} clusters, skew {crowd.skew:g}",
                lambda rng, one=crowd: powered(rng, one),
            )


def crowd_tests() -> Iterator[TestCase]:
    for part, name, case in _cases():
        yield TestCase(part, name, case.p)
