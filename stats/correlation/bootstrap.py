"""Bootstrap replicates of correlations, resampling items, or other units of cells.

A resample is a vector of weights: how often each unit was drawn. Every replicate here is exactly
the coefficient of the resampled cells, computed from weighted sums, so that no cell is copied.
"""

from collections.abc import Callable, Sequence

from stats.arguments import Floats, Integers, Signs, sum_by
from stats.correlation import pairwise_accuracy
from stats.correlation.coefficients import (
    correlate_groups,
    row_values,
    signs,
    signs_beyond,
    stuart,
    with_policy,
)
from stats.correlation.result import Undefined
from stats.libraries import np, scipy

# Floats handled at a time, 16 MB.
CHUNK = 1 << 21
# A replicate compares all pairs of cells, 12.5 million at this number.
PAIRS_UP_TO_CELLS = 5_000
# Of columns with variance 1: less variance than this is rounding.
NEXT_TO_NOTHING = 1e-13
# Double precision has 15; sums of some hundred terms lose up to two.
MEAN_DECIMALS = 13

Replicate = Callable[..., Floats]


def replicates(
    replicate: Replicate,
    sizes: Sequence[int],
    n_resamples: int,
    rng: np.random.Generator,
    width: int,
    *,
    rngs: Sequence[np.random.Generator] | None = None,
) -> Floats:
    """The statistic in each resample, in chunks of about `CHUNK` numbers at `width` a resample.

    `sizes` are the numbers of units to draw from, one for each argument of `replicate`; `rngs`
    are generators for each of them, instead of those spawned from `rng`.
    """
    if rngs is None:
        rngs = [rng] if len(sizes) == 1 else rng.spawn(len(sizes))
    step = max(1, CHUNK // max(1, width, *sizes))
    counts = [min(step, n_resamples - start) for start in range(0, n_resamples, step)]
    return np.concatenate(
        [
            replicate(*(drawn_weights(n, count, own) for n, own in zip(sizes, rngs, strict=True)))
            for count in counts
        ]
    )


def drawn_weights(
    n_units: int, count: int, rng: np.random.Generator, *, size: int | None = None
) -> Floats:
    """How often each unit is drawn in each of `count` samples of `size`, or as many as there are.

    Shape (count, n_units).
    """
    drawn = rng.integers(0, n_units, size=(count, size or n_units))
    drawn += np.arange(count)[:, None] * n_units
    weights = np.bincount(drawn.ravel(), minlength=count * n_units)
    return weights.reshape(count, n_units).astype(np.float64)


def unit_range(column: Floats) -> Floats:
    """The column moved and scaled to lie between 0 and 1, which no correlation notices."""
    shifted = column - column.min(initial=np.inf)
    return np.asarray(shifted / (shifted.max(initial=0.0) or 1.0))


def standard(column: Floats) -> Floats:
    """The column with mean 0 and variance 1, or all 0 where its values are equal."""
    if (column == column[:1]).all():
        return np.zeros_like(column)
    scaled = unit_range(column)  # so that its squares neither overflow nor vanish
    centred = scaled - scaled.mean()
    return np.asarray(centred / centred.std())


def rounded_means(sums: Floats, counts: Floats) -> Floats:
    """Means of values between 0 and 1, so rounded that equal ones tie whatever was summed."""
    return np.round(sums / counts, MEAN_DECIMALS)


def mean_of_defined(values: Floats) -> Replicate:
    """The mean of the items' values over those defined; NaN where no such item was drawn."""
    defined = (~np.isnan(values)).astype(np.float64)
    filled = np.nan_to_num(values)

    def replicate(weights: Floats) -> Floats:
        return _ratio(weights @ filled, weights @ defined)

    return replicate


def of_system_means(
    x: Floats,
    y: Floats,
    item: Integers,
    system: Integers,
    shape: tuple[int, int],
    coefficient: str,
    threshold: float = 0.0,
) -> Replicate:
    """The coefficient of system means; NaN where a system has no cell in the resample.

    `shape` is the number of items and of systems; `x` and `y` are on their `unit_range`.
    """
    means = system_means(x, y, item, system, shape)

    def replicate(weights: Floats) -> Floats:
        value = np.full(len(weights), np.nan)
        means_x, means_y = means(weights)
        is_complete = ~np.isnan(means_x).any(axis=1)
        value[is_complete] = row_values(
            means_x[is_complete], means_y[is_complete], coefficient, threshold
        )[0]
        return value

    return replicate


def system_means(
    x: Floats, y: Floats, item: Integers, system: Integers, shape: tuple[int, int]
) -> Callable[[Floats], tuple[Floats, Floats]]:
    tables = [
        scipy.sparse.coo_array((column, (item, system)), shape=shape).tocsr()
        for column in (x, y, np.ones(len(x)))
    ]

    def means(weights: Floats) -> tuple[Floats, Floats]:
        sums_x, sums_y, counts = (np.asarray(weights @ table) for table in tables)
        counts[counts == 0] = np.nan
        return rounded_means(sums_x, counts), rounded_means(sums_y, counts)

    return means


def pooled_pearson(x: Floats, y: Floats, item: Integers, n_items: int) -> Replicate:
    x, y = standard(x), standard(y)
    columns = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    sums = np.stack([sum_by(item, column, n_items) for column in columns], axis=1)

    def replicate(weights: Floats) -> Floats:
        n, sum_x, sum_y, square_x, square_y, product = (weights @ sums).T
        n = np.where(n > 0, n, np.nan)
        spread_x = square_x / n - np.square(sum_x / n)
        spread_y = square_y / n - np.square(sum_y / n)
        # the columns have variance 1, so what is left below this is rounding
        varies = (spread_x > NEXT_TO_NOTHING) & (spread_y > NEXT_TO_NOTHING)
        covariance = product / n - sum_x * sum_y / np.square(n)
        scale = np.sqrt(np.where(varies, spread_x * spread_y, np.nan))
        return np.asarray(np.clip(covariance / scale, -1.0, 1.0))

    return replicate


def pooled_spearman(x: Floats, y: Floats, item: Integers) -> Replicate:
    code_x, code_y = (np.unique(column, return_inverse=True)[1] for column in (x, y))

    def replicate(weights: Floats) -> Floats:
        of_cell = weights[:, item]
        rank_x = centred_ranks(of_cell, code_x)
        rank_y = centred_ranks(of_cell, code_y)
        product = (of_cell * rank_x * rank_y).sum(axis=1)
        square_x = (of_cell * np.square(rank_x)).sum(axis=1)
        square_y = (of_cell * np.square(rank_y)).sum(axis=1)
        return np.clip(_ratio(product, np.sqrt(square_x) * np.sqrt(square_y)), -1.0, 1.0)

    return replicate


def centred_ranks(weights: Floats, code: Integers) -> Floats:
    """Weighted mid-ranks of the cells, less their mean; `code` orders the cells' values."""
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    counts = np.add.reduceat(weights[:, order], starts, axis=1)
    through = np.cumsum(counts, axis=1)
    ranks = through - counts / 2 - through[:, -1:] / 2
    return np.asarray(ranks[:, code])


def pooled_kendall(x: Floats, y: Floats, item: Integers, n_items: int) -> Replicate:
    """Kendall's tau-b of all cells, as quadratic forms in the item weights.

    The forms hold, for every two items, the sums over pairs of their cells of the product of
    signs, and of the pairs not tied on either side. Copies of a cell tie with each other.
    """
    forms = _forms(x, y, item, n_items, lambda a, b: (a * b, abs(a), abs(b)))

    def replicate(weights: Floats) -> Floats:
        agreement, untied_x, untied_y = (_quadratic(form, weights) for form in forms)
        return np.clip(_ratio(agreement, np.sqrt(untied_x) * np.sqrt(untied_y)), -1.0, 1.0)

    return replicate


def pooled_kendall_c(x: Floats, y: Floats, item: Integers, n_items: int) -> Replicate:
    """Kendall's tau-c of all cells: the same form, and how many values were drawn."""
    (form,) = _forms(x, y, item, n_items, lambda a, b: (a * b,))
    holds = [_incidence(item, column, n_items) for column in (x, y)]
    size = np.bincount(item, minlength=n_items)

    def replicate(weights: Floats) -> Floats:
        classes = np.min([np.count_nonzero(weights @ held, axis=1) for held in holds], axis=0)
        classes = np.where(classes > 1, classes, np.nan)
        return np.clip(stuart(_quadratic(form, weights) / 2, weights @ size, classes), -1.0, 1.0)

    return replicate


def pooled_accuracy(
    x: Floats, y: Floats, item: Integers, n_items: int, threshold: float
) -> Replicate:
    """The share of pairs ordered, or tied, alike; a cell is in no pair with its own copies."""
    (form,) = _forms(x, y, item, n_items, lambda a, b: ((a == b).view(np.int8),), threshold)
    size = np.bincount(item, minlength=n_items)

    def replicate(weights: Floats) -> Floats:
        of_itself = np.square(weights) @ size
        return _ratio(_quadratic(form, weights) - of_itself, np.square(weights @ size) - of_itself)

    return replicate


def copied_kendall(x: Floats, y: Floats, coefficient: str) -> Replicate:
    """Tau-b or tau-c of all cells, by copying each as often as its weight says.

    Beyond some hundred units, this is as fast as forms, and takes no table of pairs.
    """

    def one(weights: Floats) -> float:
        cells = np.repeat(np.arange(len(x)), weights.astype(np.intp))
        if len(cells) < 2:
            return np.nan
        return float(row_values(x[cells][None], y[cells][None], coefficient)[0][0])

    return lambda weights: np.array([one(row) for row in weights])


def _forms(
    x: Floats,
    y: Floats,
    item: Integers,
    n_items: int,
    tables: Callable[[Signs, Signs], tuple[Signs, ...]],
    threshold: float = 0.0,
) -> list[Floats]:
    """Sums over pairs of cells, by the pairs' items, of what `tables` makes of their signs."""
    order = np.argsort(item, kind="stable")
    x, y, item = x[order], y[order], item[order]
    starts = np.searchsorted(item, np.arange(n_items))
    forms: list[Floats] = []
    for start in range(0, len(x), step := max(1, CHUNK // len(x))):
        block = slice(start, start + step)
        sign_x = signs(x[block, None], x[None, :])
        sign_y = signs_beyond(y[block, None] - y[None, :], threshold)
        parts = tables(sign_x, sign_y)
        forms = forms or [np.zeros((n_items, n_items)) for _ in parts]
        here, first = np.unique(item[block], return_index=True)
        for form, part in zip(forms, parts, strict=True):
            by_item = np.add.reduceat(part, starts, axis=1, dtype=np.float64)
            form[here] += np.add.reduceat(by_item, first, axis=0)
    return forms


def _quadratic(form: Floats, weights: Floats) -> Floats:
    return np.asarray(((weights @ form) * weights).sum(axis=1))


def _incidence(item: Integers, column: Floats, n_items: int) -> Floats:
    code = np.unique(column, return_inverse=True)[1]
    counts = np.zeros((n_items, int(code.max()) + 1))
    np.add.at(counts, (item, code), 1.0)
    return counts


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.asarray(numerator / np.where(denominator > 0, denominator, np.nan))


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
    values = correlate_groups(first, second, group, n_groups, coefficient)
    # here NaN stays NaN, and the mean sees to it
    policy = "drop" if undefined == "nan" else undefined
    return with_policy(values, policy).reshape(len(drawn), x.shape[1])


def _drawn(system_weights: Floats) -> Integers:
    count, n_systems = system_weights.shape
    systems = np.tile(np.arange(n_systems), count)
    return np.repeat(systems, system_weights.astype(np.intp).ravel()).reshape(count, -1)


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
