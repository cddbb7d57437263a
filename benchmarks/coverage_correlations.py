"""Simulated metrics and systems, for `benchmarks.coverage`: correlations and ceilings."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import product

import numpy as np

from benchmarks.coverage_cases import FEW_ITEMS, Floats, IntervalCase, Limits, TestCase
from stats.correlation import correlation_at_level
from stats.correlation.coefficients import row_values
from stats.significance import compare_by_resampling


@cache
def item_level_truth(rho: float, coefficient: str, n_systems: int) -> float:
    """The mean over items of the correlation of so many systems, of 200,000 items."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200_000, n_systems))
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=x.shape)
    return float(row_values(x, y, coefficient)[0].mean())


def correlation(
    rng: np.random.Generator,
    *,
    level: str,
    coefficient: str,
    n_items: int,
    n_systems: int,
    rho: float = 0.0,
    clustered: bool = False,
) -> Limits:
    """Human and metric values of one item effect and one of the cell each, correlated at rho.

    Clustered items share their effect with the four others of their cluster. At the system level
    the systems have effects too, and the truth is the correlation of those drawn.
    """
    items, systems = np.indices((n_items, n_systems)).reshape(2, -1)
    unit = items // 5 if clustered else items

    def pair(n: int) -> Floats:
        one, other = rng.normal(size=(2, n))
        return np.stack([one, rho * one + np.sqrt(1 - rho**2) * other])

    of_system = pair(n_systems) if level == "system" else np.zeros((2, n_systems))
    human, metric = of_system[:, systems] + pair(n_items)[:, unit] + pair(len(items))
    found = correlation_at_level(
        human, metric, level=level, coefficient=coefficient, items=items, systems=systems,
        clusters=unit if clustered else None, n_resamples=400,
    )  # fmt: skip
    if level == "system":
        truth = float(row_values(*of_system[:, None], coefficient)[0][0])
    elif level == "item":
        truth = item_level_truth(rho, coefficient, n_systems)
    else:
        truth = rho if coefficient == "pearson" else 2 / np.pi * float(np.arcsin(rho))
    return found.ci_low, found.ci_high, truth


def share_of_systems(rng: np.random.Generator, *, n_items: int) -> Limits:
    """Two systems: items' coefficients are 1 and -1 only."""
    human = rng.normal(size=(n_items, 2))
    metric = 0.8 * human + 0.6 * rng.normal(size=human.shape)
    items, systems = np.indices(human.shape).reshape(2, -1)
    found = correlation_at_level(
        human.ravel(), metric.ravel(), level="item", coefficient="kendall", items=items,
        systems=systems, n_resamples=200,
    )  # fmt: skip
    return found.ci_low, found.ci_high, 2 / np.pi * float(np.arcsin(0.8))


def metrics_p(
    rng: np.random.Generator,
    differs: bool,
    *,
    level: str,
    resample: str,
    n_systems: int,
    favourites: bool = True,
    clustered: bool = False,
) -> float:
    """Two metrics, each with favourites among the systems; one is noisier where they differ."""
    items, systems = np.indices((40, n_systems)).reshape(2, -1)
    unit = items // 5 if clustered else items
    human = rng.normal(size=n_systems)[systems] + rng.normal(size=len(items))
    if clustered:
        human = human + rng.normal(size=8)[unit]
    metrics = {}
    for name in "ab":
        noise = rng.normal(size=len(items))
        noise = noise + (rng.normal(size=n_systems)[systems] if favourites else 0)
        noise = noise + (rng.normal(size=8)[unit] if clustered else 0)
        metrics[name] = human + (4.0 if differs and name == "b" else 1.0) * noise
    table = compare_by_resampling(
        human, metrics, level=level, coefficient="pearson", items=items, systems=systems,
        clusters=unit if clustered else None, resample=resample, n_resamples=399,
    )  # fmt: skip
    return float(table["p"].iloc[0])


def correlation_intervals() -> Iterator[IntervalCase]:
    """Of correlations."""
    for level, coefficient, n_items, rho in product(
        ("item", "system", "pooled"), ("pearson", "kendall"), (10, 20, 50), (0.0, 0.8)
    ):
        noted = FEW_ITEMS if n_items < 20 else ""
        draw = partial(
            correlation, level=level, coefficient=coefficient, n_items=n_items, n_systems=6, rho=rho
        )
        setting = f"{level} {coefficient} {rho}, {n_items} items x 6"
        yield IntervalCase("correlation", setting, draw, noted)
    for coefficient, n_items in product(("pearson", "kendall"), (50, 100)):
        draw = partial(
            correlation, level="pooled", coefficient=coefficient, n_items=n_items, n_systems=6,
            clustered=True,
        )  # fmt: skip
        noted = FEW_ITEMS if n_items < 100 else ""
        setting = f"pooled {coefficient} 0.0, {n_items} items in clusters of 5"
        yield IntervalCase("correlation", setting, draw, noted)
    for n_items in (10, 20, 50):
        draw_two = partial(share_of_systems, n_items=n_items)
        noted = FEW_ITEMS if n_items < 20 else ""
        setting = f"item kendall .8, {n_items} items x 2"
        yield IntervalCase("correlation", setting, draw_two, noted)
    many = partial(correlation, level="pooled", coefficient="kendall", n_items=430, n_systems=12)
    yield IntervalCase("correlation_of_many_cells", "pooled kendall, 430 items x 12", many)


def metric_tests() -> Iterator[TestCase]:
    """Of differences of two metrics."""
    for level in ("item", "system", "pooled"):
        alike = partial(metrics_p, level=level, resample="items", n_systems=6, favourites=False)
        yield TestCase("metrics", f"{level} pearson, these 6 systems", alike)
        grouped = partial(alike, clustered=True)
        yield TestCase(
            "metrics", f"{level} pearson, these 6 systems, clusters of 5 items", grouped, FEW_ITEMS
        )
    for level, n_systems in product(("item", "system"), (6, 12)):
        both = partial(metrics_p, level=level, resample="both", n_systems=n_systems)
        kind = f"{level} pearson, favourites among {n_systems} systems, new systems"
        yield TestCase("metrics_drawn", kind, both)
