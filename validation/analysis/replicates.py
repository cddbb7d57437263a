"""Every metric's coefficient in the same resamples of items, so that differences are paired.

Each replicate is exactly the coefficient of the resampled candidates, as in
`stats.correlation`; what depends on human ratings only is shared by the metrics.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from stats.arguments import Floats
from stats.correlation import Level, bootstrap
from stats.correlation.coefficients import group_values, row_values
from stats.correlation.undefined import with_policy
from validation.analysis.panels import Panel
from validation.analysis.pooled import kendall_replicates, spearman_replicates
from validation.analysis.settings import Settings

JOINT = ("pearson", "spearman", "kendall", "kendall_c", "acc_eq")
OF_PAIRS = ("kendall", "kendall_c", "acc_eq")
DENSE_UP_TO = 1 << 22
WEIGHTS_AT_ONCE = 1 << 23
OfDraws = Callable[[Floats], list[dict[str, Floats]]]
"""From how often each item is drawn to each metric's values by coefficient."""


def item_replicates(panel: Panel, level: Level, settings: Settings) -> dict[str, Floats]:
    """By coefficient, each metric's value in each resample; shape (n_metrics, n_resamples).

    NaN where it is undefined; a coefficient that has no such replicates is left out.
    """
    if level == "system":
        panel = panel.of_systems()
    coefficients = [c for c in settings.coefficients if c in JOINT]
    if panel.n_units < 2 or not settings.n_resamples or not panel.metrics:
        return {}
    coefficients = [c for c in coefficients if not is_of_too_many(level, c, len(panel.human))]
    if level == "item":
        of_draws = _of_items(panel, coefficients, settings)
    else:
        of_draws = partial(_of_systems if level == "system" else _of_cells, panel, coefficients)
    chunks = [of_draws(weights) for weights in _draws(panel, settings)]
    return {
        name: np.array(
            [
                np.concatenate([chunk[number][name] for chunk in chunks])
                for number in range(len(panel.metrics))
            ]
        )
        for name in coefficients
    }


def is_of_too_many(level: Level, coefficient: str, n_candidates: int) -> bool:
    """Whether a coefficient of pairs of all candidates is not resampled for their number."""
    of_pairs = level == "pooled" and coefficient in OF_PAIRS
    return of_pairs and n_candidates > bootstrap.PAIRS_UP_TO_CELLS


def _draws(panel: Panel, settings: Settings) -> Iterator[Floats]:
    """How often each item is drawn; the same draws for every level and metric of a panel."""
    rng = np.random.default_rng(panel.draws_seed(settings.seed))
    cluster = panel.cluster_of_item
    step = max(1, WEIGHTS_AT_ONCE // max(panel.n_items, panel.n_units))
    for start in range(0, settings.n_resamples, step):
        count = min(step, settings.n_resamples - start)
        weights = bootstrap.drawn_weights(panel.n_units, count, rng)
        yield weights if cluster is None else weights[:, cluster]


def _of_items(panel: Panel, coefficients: Sequence[str], settings: Settings) -> OfDraws:
    """The items' own coefficients are found once; a resample only weighs them."""
    means = [
        {
            name: bootstrap.mean_of_defined(
                with_policy(
                    group_values(panel.human, row, panel.item, panel.n_items, name),
                    settings.undefined,
                )
            )
            for name in coefficients
        }
        for row in panel.scores
    ]
    return lambda weights: [{name: mean(weights) for name, mean in one.items()} for one in means]


def _of_systems(
    panel: Panel, coefficients: Sequence[str], weights: Floats
) -> list[dict[str, Floats]]:
    values = []
    for row in panel.scores:
        known = ~np.isnan(row)
        value = {name: np.full(len(weights), np.nan) for name in coefficients}
        if np.unique(panel.system[known]).size > 1:
            means_x, means_y = _system_means(panel, row, known, weights)
            is_defined = ~np.isnan(means_x).any(axis=1)
            for name in coefficients:
                value[name][is_defined] = row_values(
                    means_x[is_defined], means_y[is_defined], name
                )[0]
        values.append(value)
    return values


def _system_means(panel: Panel, row: Floats, known: Any, weights: Floats) -> tuple[Floats, Floats]:
    x, y = bootstrap.unit_range(panel.human[known]), bootstrap.unit_range(row[known])
    _, system = np.unique(panel.system[known], return_inverse=True)
    item = panel.item[known]
    shape = (panel.n_items, int(system.max()) + 1)
    if shape[0] * shape[1] > DENSE_UP_TO:
        return bootstrap.system_means(x, y, item, system, shape)(weights)
    tables = np.zeros((3, *shape))
    for table, column in zip(tables, (x, y, np.ones(len(x))), strict=True):
        np.add.at(table, (item, system), column)
    sums_x, sums_y, counts = (weights @ table for table in tables)
    counts[counts == 0] = np.nan
    means = (bootstrap.rounded_means(sums, counts) for sums in (sums_x, sums_y))
    first, second = means
    return first, second


def _of_cells(
    panel: Panel, coefficients: Sequence[str], weights: Floats
) -> list[dict[str, Floats]]:
    """Metrics with the same gaps are computed together."""
    values_by_metric: list[dict[str, Floats]] = [{} for _ in panel.metrics]
    gaps = np.isnan(panel.scores)
    for pattern in np.unique(gaps, axis=0):
        alike = np.flatnonzero((gaps == pattern).all(axis=1))
        for name in coefficients:
            rows = _pooled(panel, alike, ~pattern, name, weights)
            for number, values in zip(alike, rows, strict=True):
                values_by_metric[number][name] = values
    return values_by_metric


def _pooled(panel: Panel, alike: Any, known: Any, name: str, weights: Floats) -> Floats:
    human, item = panel.human[known], panel.item[known]
    values = np.full((len(alike), len(weights)), np.nan)
    if len(human) < 2 or (human == human[0]).all():
        return values
    scores = panel.scores[np.ix_(alike, np.flatnonzero(known))]
    varies = np.flatnonzero((scores != scores[:, :1]).any(axis=1))
    scores = scores[varies]
    if not len(varies):
        return values
    if name == "spearman":
        values[varies] = spearman_replicates(human, scores, item, weights)
    elif name == "kendall":
        values[varies] = kendall_replicates(human, scores, item, weights)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            values[varies] = [_one(human, row, item, name, weights) for row in scores]
    return values


def _one(human: Floats, row: Floats, item: Any, name: str, weights: Floats) -> Floats:
    n_items = weights.shape[1]
    if name == "pearson":
        return bootstrap.pooled_pearson(human, row, item, n_items)(weights)
    if name == "kendall_c":
        return bootstrap.pooled_kendall_c(human, row, item, n_items)(weights)
    return bootstrap.pooled_accuracy(human, row, item, n_items, 0.0)(weights)
