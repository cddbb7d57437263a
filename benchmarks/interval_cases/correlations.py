"""Simulated metrics, systems and reports, for `benchmarks.coverage`: correlations and ceilings."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.interval_cases.cases import FEW_ITEMS, IntervalCase, Limits, TestCase
from stats.arguments import Floats
from stats.ceilings import ceilings
from stats.correlation import correlation_at_level
from stats.correlation.coefficients import row_values
from stats.significance import compare_by_resampling
from validation.analysis.ceilings import share_limits
from validation.analysis.correlations import (
    correlation_limits,
    difference_for_new_systems,
    values_without_systems,
)
from validation.analysis.replicates import item_replicates
from validation.analysis.settings import Metric, Panel, Settings


@cache
def item_level_truth(rho: float, coefficient: str, n_systems: int) -> float:
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
    for level, coefficient, n_items, rho in product(
        ("item", "system", "pooled"), ("pearson", "kendall"), (10, 20, 50), (0.0, 0.8)
    ):
        yield IntervalCase(
            "correlation",
            f"{level} {coefficient} {rho}, {n_items} items x 6",
            partial(
                correlation, level=level, coefficient=coefficient, n_items=n_items, n_systems=6,
                rho=rho,
            ),
            FEW_ITEMS if n_items < 20 else "",
        )  # fmt: skip
    for coefficient, n_items in product(("pearson", "kendall"), (50, 100)):
        yield IntervalCase(
            "correlation",
            f"pooled {coefficient} 0.0, {n_items} items in clusters of 5",
            partial(
                correlation, level="pooled", coefficient=coefficient, n_items=n_items, n_systems=6,
                clustered=True,
            ),
            FEW_ITEMS if n_items < 100 else "",
        )  # fmt: skip
    for n_items in (10, 20, 50):
        yield IntervalCase(
            "correlation",
            f"item kendall .8, {n_items} items x 2",
            partial(share_of_systems, n_items=n_items),
            FEW_ITEMS if n_items < 20 else "",
        )
    yield IntervalCase(
        "correlation_of_many_cells",
        "pooled kendall, 430 items x 12",
        partial(correlation, level="pooled", coefficient="kendall", n_items=430, n_systems=12),
    )


def metric_tests() -> Iterator[TestCase]:
    for level in ("item", "system", "pooled"):
        yield TestCase(
            "metrics",
            f"{level} pearson, these 6 systems",
            partial(metrics_p, level=level, resample="items", n_systems=6, favourites=False),
        )
        yield TestCase(
            "metrics",
            f"{level} pearson, these 6 systems, clusters of 5 items",
            partial(
                metrics_p,
                level=level,
                resample="items",
                n_systems=6,
                favourites=False,
                clustered=True,
            ),
            FEW_ITEMS,
        )
    for level, n_systems in product(("item", "system"), (6, 12)):
        yield TestCase(
            "metrics_drawn",
            f"{level} pearson, favourites among {n_systems} systems, new systems",
            partial(metrics_p, level=level, resample="both", n_systems=n_systems),
        )


def _panel(human: Floats, scores: Floats) -> Panel:
    items, systems = np.indices(human.shape).reshape(2, -1)
    names = {"item": items.astype(str), "system": systems.astype(str)}
    return Panel(
        question="q", scope="all", condition="", number=0,
        metrics=tuple(Metric(name, name, True) for name in "ab"[: len(scores)]),
        candidates=pd.DataFrame(names | {"candidate": names["system"]}),
        item=items, system=systems, human=human.ravel(),
        scores=scores.reshape(len(scores), -1),
        states=np.ones((len(scores), human.size), dtype=np.int8),
    )  # fmt: skip


def _of_report(panel: Panel, level: str, coefficient: str) -> tuple[Floats, Floats]:
    rules = Settings(levels=(level,), coefficients=(coefficient,), n_resamples=300)
    drawn = item_replicates(panel, level, rules)[coefficient]
    return drawn, values_without_systems(panel, level, rules)[coefficient]


def _value(human: Floats, metric: Floats, level: str, coefficient: str) -> float:
    tables = human, metric
    if level == "system":
        tables = human.mean(axis=0)[None], metric.mean(axis=0)[None]
    if level == "pooled":
        tables = human.reshape(1, -1), metric.reshape(1, -1)
    return float(row_values(*tables, coefficient)[0].mean())


def new_systems(
    rng: np.random.Generator, *, level: str, coefficient: str, n_systems: int, rho: float
) -> Limits:
    """A report's interval for new systems: 20 items, systems with effects correlated at rho."""
    shape = (20, n_systems)
    human, metric = np.zeros((2, *shape))
    for part in ((1, n_systems), (20, 1), shape):
        one, other = rng.normal(size=(2, *part))
        human, metric = human + one, metric + rho * one + np.sqrt(1 - rho**2) * other
    drawn, without = _of_report(_panel(human, metric[None]), level, coefficient)
    estimate = correlation_at_level(
        human.ravel(), metric.ravel(), level=level, coefficient=coefficient, n_resamples=0,
        items=np.arange(20).repeat(n_systems), systems=np.tile(np.arange(n_systems), 20),
    )  # fmt: skip
    found = correlation_limits(replace(estimate, n_units=20), drawn[0], without[0])
    if level == "item":
        truth = item_level_truth(rho, coefficient, n_systems)
    else:
        truth = rho if coefficient == "pearson" else 2 / np.pi * float(np.arcsin(rho))
    return found.low, found.high, truth


def new_systems_p(
    rng: np.random.Generator, differs: bool, *, level: str, coefficient: str, n_systems: int
) -> float:
    """A report's p for new systems, of metrics with favourites of their own among the systems."""
    shape = (40, n_systems)
    human = rng.normal(size=n_systems) + rng.normal(size=shape)
    scores = np.stack(
        [
            human + noise * (rng.normal(size=n_systems) + rng.normal(size=shape))
            for noise in (1.0, 4.0 if differs else 1.0)
        ]
    )
    drawn, without = _of_report(_panel(human, scores), level, coefficient)
    delta = np.subtract(*(_value(human, one, level, coefficient) for one in scores))
    return difference_for_new_systems(
        float(delta), drawn[0] - drawn[1], without[0] - without[1], 40, 0.95
    ).p


def ceiling(
    rng: np.random.Generator,
    *,
    n_items: int,
    noise: float,
    share: bool,
    level: str = "pooled",
    coefficient: str = "pearson",
    is_perfect: bool = False,
) -> Limits:
    """Three ratings a cell of six systems; a metric that follows what they have in common, or is
    it, so that its share is all."""
    truth = rng.normal(size=(n_items, 6))
    values = truth[..., None] + noise * rng.normal(size=(n_items, 6, 3))
    items, systems, annotators = np.indices(values.shape).reshape(3, -1)
    [found] = ceilings(
        items.astype(str), systems, annotators, values.ravel(),
        measures=[(level, coefficient)], n_splits=20,
    )  # fmt: skip
    if not share:
        return found.attainable_low, found.attainable_high, 1 / float(np.sqrt(1 + noise**2 / 3))
    metric = truth if is_perfect else truth + rng.normal(size=truth.shape)
    panel = _panel(values.mean(axis=2), metric[None])
    value = _value(values.mean(axis=2), metric, level, coefficient)
    return *share_limits(panel, 0, value, found, 0.95), 1.0 if is_perfect else float(np.sqrt(0.5))


def report_intervals() -> Iterator[IntervalCase]:
    for level, coefficient, n_systems, rho in product(
        ("item", "system", "pooled"), ("pearson", "kendall"), (6, 12), (0.3, 0.8)
    ):
        yield IntervalCase(
            "new_systems",
            f"{level} {coefficient} {rho}, 20 items x {n_systems}",
            partial(
                new_systems, level=level, coefficient=coefficient, n_systems=n_systems, rho=rho
            ),
        )
    for n_items, noise, share in product((20, 50), (0.7, 1.5), (False, True)):
        what = "share of it" if share else "attainable"
        yield IntervalCase(
            "ceilings",
            f"{what}, {n_items} items, rating noise {noise}",
            partial(ceiling, n_items=n_items, noise=noise, share=share),
        )
    for coefficient, n_items, noise in product(("kendall", "spearman"), (20, 50), (0.7, 1.5)):
        yield IntervalCase(
            "ceilings",
            f"a perfect metric's share, item {coefficient}, {n_items} items, rating noise {noise}",
            partial(
                ceiling, n_items=n_items, noise=noise, share=True, level="item",
                coefficient=coefficient, is_perfect=True,
            ),
        )  # fmt: skip


def report_tests() -> Iterator[TestCase]:
    for level, coefficient, n_systems in product(
        ("item", "system", "pooled"), ("pearson", "kendall"), (6, 12)
    ):
        yield TestCase(
            "new_systems",
            f"{level} {coefficient}, favourites among {n_systems} systems",
            partial(new_systems_p, level=level, coefficient=coefficient, n_systems=n_systems),
        )
