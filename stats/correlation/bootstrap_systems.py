"""Bootstrap replicates that resample systems, or items and systems.

A system drawn twice is two systems that tie; in pairwise accuracies it is in no pair with its
own copy, which would always be right.
"""

import numpy as np

from stats.arguments import Floats, Integers
from stats.correlation import pairwise_accuracy
from stats.correlation.bootstrap import Replicate, system_means
from stats.correlation.coefficients import group_values, row_values, with_policy
from stats.correlation.result import Undefined
from stats.correlation.rows import signs, signs_beyond


def of_items(
    x: Floats, y: Floats, coefficient: str, threshold: float, undefined: Undefined
) -> Replicate:
    """The mean over items of the coefficient over drawn systems.

    `x` and `y` have shape (n_systems, n_items), NaN where there is no cell. The replicate takes
    system weights, or item weights and system weights.
    """
    by_draw = _item_accuracies(x, y, threshold) if coefficient == "acc_eq" else None

    def replicate(*weights: Floats) -> Floats:
        system_weights = weights[-1]
        if by_draw is not None:
            value = by_draw(system_weights)
        else:
            value = _item_correlations(x, y, system_weights, coefficient, undefined)
        of_item = weights[0] if len(weights) == 2 else np.ones_like(value)
        return _weighted_mean(value, of_item, undefined)

    return replicate


def _weighted_mean(value: Floats, weights: Floats, undefined: Undefined) -> Floats:
    is_defined = ~np.isnan(value)
    weight = (weights * is_defined).sum(axis=1)
    mean = (np.nan_to_num(value) * weights).sum(axis=1) / np.where(weight > 0, weight, np.nan)
    if undefined == "nan":
        mean[((weights > 0) & ~is_defined).any(axis=1)] = np.nan
    return np.asarray(mean)


def _item_correlations(
    x: Floats, y: Floats, system_weights: Floats, coefficient: str, undefined: Undefined
) -> Floats:
    drawn = _drawn(system_weights)
    columns = (side.T[:, drawn].transpose(1, 0, 2) for side in (x, y))
    first, second = (column.ravel() for column in columns)
    n_groups = len(drawn) * x.shape[1]
    group = np.arange(n_groups).repeat(drawn.shape[1])
    values = group_values(first, second, group, n_groups, coefficient)
    # here NaN stays NaN, and the mean sees to it
    policy = "drop" if undefined == "nan" else undefined
    return with_policy(values, policy).reshape(len(drawn), x.shape[1])


def _drawn(system_weights: Floats) -> Integers:
    """The systems of each draw, one after another."""
    count, n_systems = system_weights.shape
    systems = np.tile(np.arange(n_systems), count)
    times = system_weights.astype(np.intp).ravel()
    return np.repeat(systems, times).reshape(count, -1)


def _item_accuracies(x: Floats, y: Floats, threshold: float) -> Replicate:
    first, second = np.triu_indices(len(x), 1)
    is_defined = ~np.isnan(x[first] + x[second] + y[first] + y[second])
    right = signs(x[first], x[second]) == signs_beyond(y[first] - y[second], threshold)

    def by_draw(system_weights: Floats) -> Floats:
        pairs = system_weights[:, first] * system_weights[:, second]
        weight = pairs @ is_defined
        return np.asarray((pairs @ (right & is_defined)) / np.where(weight > 0, weight, np.nan))

    return by_draw


def of_means(mean_x: Floats, mean_y: Floats, coefficient: str, threshold: float) -> Replicate:
    """The coefficient of the means of drawn systems; the replicate takes system weights."""

    def replicate(system_weights: Floats) -> Floats:
        x, y = (np.broadcast_to(mean, system_weights.shape) for mean in (mean_x, mean_y))
        return _of_rows(x, y, system_weights, coefficient, threshold)

    return replicate


def of_resampled_means(
    x: Floats,
    y: Floats,
    item: Integers,
    system: Integers,
    shape: tuple[int, int],
    coefficient: str,
    threshold: float,
) -> Replicate:
    """The same, with the means over drawn items; takes item weights and system weights."""
    means = system_means(x, y, item, system, shape)

    def replicate(item_weights: Floats, system_weights: Floats) -> Floats:
        return _of_rows(*means(item_weights), system_weights, coefficient, threshold)

    return replicate


def _of_rows(
    means_x: Floats, means_y: Floats, system_weights: Floats, coefficient: str, threshold: float
) -> Floats:
    value = np.full(len(system_weights), np.nan)
    if coefficient == "acc_eq":
        first, second = np.triu_indices(system_weights.shape[1], 1)
        pairs = system_weights[:, first] * system_weights[:, second]
        right = signs(means_x[:, first], means_x[:, second]) == signs_beyond(
            means_y[:, first] - means_y[:, second], threshold
        )
        lacking = (np.isnan(means_x) & (system_weights > 0)).any(axis=1)
        total = np.where(lacking, np.nan, pairs.sum(axis=1))
        return np.asarray((pairs * right).sum(axis=1) / np.where(total > 0, total, np.nan))
    drawn = _drawn(system_weights)
    x, y = (np.take_along_axis(means, drawn, axis=1) for means in (means_x, means_y))
    is_complete = ~np.isnan(x).any(axis=1)
    value[is_complete] = row_values(x[is_complete], y[is_complete], coefficient)[0]
    return value


def of_soft_pairs(x: Floats, y: Floats, p_human: Floats, p_metric: Floats) -> dict[str, Replicate]:
    """Soft pairwise accuracy, by what is resampled; `x` and `y` as in `of_items`.

    The p-values of resampled items take the distribution of the sign flips as normal, with its
    exact variance.
    """
    differences = [pairwise_accuracy.pair_differences(side).T for side in (x, y)]
    squares = [np.square(difference) for difference in differences]
    first, second = np.triu_indices(len(x), 1)
    shared = pairwise_accuracy.pair_shares(x)

    def p_values(item_weights: Floats) -> tuple[Floats, Floats]:
        human, metric = (
            pairwise_accuracy.p_by_normal(item_weights @ d, item_weights @ s)
            for d, s in zip(differences, squares, strict=True)
        )
        return human, metric

    def by_items(item_weights: Floats) -> Floats:
        pairs = np.broadcast_to(shared, (len(item_weights), len(shared)))
        return pairwise_accuracy.one_less_error(*p_values(item_weights), pairs)

    def by_systems(system_weights: Floats) -> Floats:
        pairs = system_weights[:, first] * system_weights[:, second] * shared
        return pairwise_accuracy.one_less_error(p_human[None], p_metric[None], pairs)

    def by_both(item_weights: Floats, system_weights: Floats) -> Floats:
        pairs = system_weights[:, first] * system_weights[:, second] * shared
        return pairwise_accuracy.one_less_error(*p_values(item_weights), pairs)

    return {"items": by_items, "systems": by_systems, "both": by_both}
