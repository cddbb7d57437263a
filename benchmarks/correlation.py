"""Speed of stats.correlation beside loops over scipy: ``python -m benchmarks.correlation``.

Each line is timed in one run on one machine; the ratio is what carries over to another. The
loops are timed on some of the groups or resamples and scaled up.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats

from stats.correlation import correlation_at_level, grouped_correlation

GROUPS_TIMED = 2_000
RESAMPLES = 1_000
RESAMPLES_TIMED = 5
SCIPY = {
    "pearson": scipy.stats.pearsonr,
    "spearman": scipy.stats.spearmanr,
    "kendall": scipy.stats.kendalltau,
}


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """The time an action took, and what it returned."""
    start = perf_counter()
    result = action()
    return perf_counter() - start, result


def report(name: str, own: float, other: float, note: str) -> None:
    sys.stdout.write(f"{name:<46} {own:9.4f} s {other:9.3f} s {other / own:9.1f}x  {note}\n")


def ragged(n_groups: int) -> pd.DataFrame:
    """Groups of 4 to 16 tied ratings and a metric that follows them."""
    rng = np.random.default_rng(0)
    group = np.arange(n_groups).repeat(rng.integers(4, 17, size=n_groups))
    human = rng.integers(1, 6, size=len(group)).astype(float)
    metric = np.round(human + rng.normal(0, 2, size=len(group)), 1)
    return pd.DataFrame({"group": group, "human": human, "metric": metric})


def compare_groups(coefficient: str, n_groups: int) -> tuple[float, float]:
    """A coefficient of every group beside a loop over scipy; the times of both."""
    frame = ragged(n_groups)
    own, coefficients = seconds(
        lambda: grouped_correlation(
            frame["human"], frame["metric"], frame["group"], coefficient=coefficient
        )
    )
    some = frame[frame["group"] < GROUPS_TIMED]
    x, y = some["human"].to_numpy(), some["metric"].to_numpy()
    bounds = np.flatnonzero(np.diff(some["group"], prepend=-1, append=-1))
    spans = list(pairwise(bounds))
    function = SCIPY[coefficient]
    other, expected = seconds(lambda: [function(x[a:b], y[a:b]).statistic for a, b in spans])
    difference = np.nanmax(np.abs(coefficients.to_numpy()[:GROUPS_TIMED] - expected))
    name = f"{coefficient} in {n_groups:,} groups"
    report(name, own, other * n_groups / GROUPS_TIMED, f"max diff {difference:.1e}")
    return own, other * n_groups / GROUPS_TIMED


def compare_bootstrap(level: str, coefficient: str) -> None:
    """An interval over 400 items and 4 systems beside copying every resample."""
    rng = np.random.default_rng(1)
    item, system = np.arange(400).repeat(4), np.tile(np.arange(4), 400)
    human = rng.integers(0, 101, size=1600).astype(float)
    metric = human + rng.normal(0, 60, size=1600)
    own, result = seconds(
        lambda: correlation_at_level(
            human,
            metric,
            level=level,
            coefficient=coefficient,
            items=item,
            systems=system,
            n_resamples=RESAMPLES,
        )
    )
    tables = human.reshape(400, 4), metric.reshape(400, 4)
    function = SCIPY[coefficient]

    def once(drawn: np.ndarray) -> float:
        x, y = (table[drawn] for table in tables)
        if level == "item":
            return float(np.mean([function(a, b).statistic for a, b in zip(x, y, strict=True)]))
        return float(function(x.ravel(), y.ravel()).statistic)

    other = 0.0
    for drawn in rng.integers(400, size=(RESAMPLES_TIMED, 400)):
        other += seconds(partial(once, drawn))[0]
    note = f"{result.value:.3f} [{result.ci_low:.3f}, {result.ci_high:.3f}]"
    name = f"{RESAMPLES:,} resamples, {level} {coefficient}, 1,600 cells"
    report(name, own, other * RESAMPLES / RESAMPLES_TIMED, note)


def compare_two_way(n_items: int = 200, n_systems: int = 8) -> None:
    """Item-level tau where items and systems are drawn anew, beside a loop over the items."""
    rng = np.random.default_rng(2)
    human = rng.integers(0, 101, size=(n_items, n_systems)).astype(float)
    metric = human + rng.normal(0, 60, size=human.shape)
    item, system = np.indices(human.shape).reshape(2, -1)
    own, result = seconds(
        lambda: correlation_at_level(
            human.ravel(),
            metric.ravel(),
            level="item",
            coefficient="kendall",
            items=item,
            systems=system,
            resample="both",
            n_resamples=RESAMPLES,
        )
    )

    def once() -> float:
        rows = rng.integers(n_items, size=n_items)
        columns = rng.integers(n_systems, size=n_systems)
        pairs = zip(human[rows][:, columns], metric[rows][:, columns], strict=True)
        return float(np.nanmean([scipy.stats.kendalltau(a, b).statistic for a, b in pairs]))

    other = sum(seconds(once)[0] for _ in range(RESAMPLES_TIMED)) * RESAMPLES / RESAMPLES_TIMED
    note = f"{result.value:.3f} [{result.ci_low:.3f}, {result.ci_high:.3f}]"
    report(f"{RESAMPLES:,} two-way, item kendall, 1,600 cells", own, other, note)


def main() -> None:
    """Print one line a comparison."""
    warnings.simplefilter("ignore")  # scipy's, of constant groups
    times = [compare_groups(coefficient, 100_000) for coefficient in SCIPY]
    own, other = (sum(side) for side in zip(*times, strict=True))
    report("all three", own, other, "")
    for coefficient in SCIPY:
        compare_bootstrap("pooled", coefficient)
        compare_bootstrap("item", coefficient)
    compare_two_way()


if __name__ == "__main__":
    main()
