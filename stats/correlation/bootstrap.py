"""Bootstrap replicates of correlations, resampling items, or other units of cells.

A resample is a vector of weights: how often each unit was drawn. Every replicate here is exactly
the coefficient of the resampled cells, computed from weighted sums, so that no cell is copied.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats, Integers, sum_by
from stats.correlation.coefficients import row_values
from stats.correlation.rows import signs, signs_beyond, stuart
from stats.libraries import scipy

CHUNK = 1 << 21
"""Floats handled at a time, 16 MB."""
PAIRS_UP_TO_CELLS = 5_000
"""A replicate compares all pairs of cells, 12.5 million at this number."""
NEXT_TO_NOTHING = 1e-13
"""Of columns with variance 1: less variance than this is rounding."""
MEAN_DECIMALS = 13
"""Double precision has 15; sums of some hundred terms lose up to two."""

Replicate = Callable[..., Floats]
Signs = NDArray[np.int8]


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
    """From item weights to the systems' means, NaN where a system has no cell in the resample."""
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
    """Pearson's r of all cells, from each item's sums and sums of products."""
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
    """Spearman's rho of all cells, from the ranks that the drawn cells have among themselves."""
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
        value = stuart(_quadratic(form, weights) / 2, weights @ size, classes)
        return np.clip(value, -1.0, 1.0)

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
    """How many cells of an item hold each of the column's values."""
    code = np.unique(column, return_inverse=True)[1]
    counts = np.zeros((n_items, int(code.max()) + 1))
    np.add.at(counts, (item, code), 1.0)
    return counts


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient, NaN over 0."""
    return np.asarray(numerator / np.where(denominator > 0, denominator, np.nan))
