from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from numpy.typing import NDArray

from stats.arguments import Flags, Floats, Integers, Signs, sum_by
from stats.correlation import pairwise_accuracy
from stats.correlation.bootstrap import NEXT_TO_NOTHING, centred_ranks, rounded_means, standard
from stats.correlation.coefficients import (
    correlate_groups,
    distinct,
    row_values,
    signs,
    stuart,
    with_policy,
)
from stats.correlation.pairwise_accuracy import calibrated, pairs_within
from stats.correlation.result import Cells, Level, Undefined, renumbered
from stats.libraries import np, scipy

Deltas = Callable[[Flags], Floats]
Tables = Callable[[Signs, Signs], tuple[Signs, ...]]
CELLS_UP_TO = 5_000  # the table of pairs takes a byte each; beyond, sorting every draw is as quick
BLOCK = 1 << 20
Statistic = Callable[[Floats], Floats]
Swap = Literal["both", "items", "systems"]
# Of one item; all 2^8 swaps of them are tried at once.
MASKS_UP_TO_SYSTEMS = 8


def deltas_of(
    cells: Cells,
    a: Floats,
    b: Floats,
    level: Level,
    coefficient: str,
    undefined: Undefined,
    swap: Swap,
) -> Deltas:
    """From which cells are swapped, shape (n_draws, n_cells), to the coefficients' difference."""
    if level == "pooled" and coefficient == "pearson":
        return _pooled_pearson(cells.human, a, b, undefined)
    if level == "pooled" and coefficient == "spearman":
        return _pooled_spearman(cells.human, a, b, undefined)
    if level == "item" and swap == "items" and coefficient != "acc_star":
        return _by_item(cells, a, b, coefficient, undefined)
    if level == "pooled" and coefficient in PAIRWISE and cells.n_rows <= CELLS_UP_TO:
        return PAIRWISE[coefficient](cells.human, a, b, undefined)
    if level == "item" and coefficient != "acc_star" and _are_small(cells):
        return _by_masks(cells, a, b, coefficient, undefined)
    of_rows = statistic(cells, level, coefficient, undefined)

    def deltas(swapped: Flags) -> Floats:
        first, second = np.where(swapped, b, a), np.where(swapped, a, b)
        return of_rows(first) - of_rows(second)

    return deltas


def _pooled_pearson(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    """Sums and products of swapped scores are linear in who is swapped: one matrix product."""
    n = len(human)
    unit = standard(human) / np.sqrt(n)
    change = np.stack([b - a, b * b - a * a, unit * (b - a)], axis=1)
    start, end = (np.array([side.sum(), side @ side, unit @ side]) for side in (a, b))

    def correlation(sums: Floats) -> Floats:
        total, square, product = sums.T
        spread = square - np.square(total) / n
        # scores have variance 1, so what is left below this is rounding
        varies = unit.any() & (spread > NEXT_TO_NOTHING * n)
        return np.asarray(product / np.sqrt(np.where(varies, spread, np.nan)))

    def deltas(swapped: Flags) -> Floats:
        moved = swapped.astype(np.float64) @ change
        return difference(
            np.stack([correlation(start + moved), correlation(end - moved)]), undefined
        )

    return deltas


def _pooled_spearman(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    """All scores are sorted once; a draw's ranks are counts of those of them that it holds."""
    rank = scipy.stats.rankdata(human) - (len(human) + 1) / 2
    scale = np.sqrt(rank @ rank)
    both = np.concatenate([rank, rank])
    code = np.unique(np.concatenate([a, b]), return_inverse=True)[1]

    def correlation(swapped: Flags) -> Floats:
        held = np.concatenate([~swapped, swapped], axis=1).astype(np.float64)
        ranks = centred_ranks(held, code) * held
        spread = scale * np.sqrt(np.square(ranks).sum(axis=1))
        return np.asarray(np.clip(ranks @ both / np.where(spread > 0, spread, np.nan), -1.0, 1.0))

    def deltas(swapped: Flags) -> Floats:
        return difference(np.stack([correlation(swapped), correlation(~swapped)]), undefined)

    return deltas


def _by_item(cells: Cells, a: Floats, b: Floats, coefficient: str, undefined: Undefined) -> Deltas:
    assert cells.item is not None
    item, n_items = renumbered(cells.item)
    one_cell = np.unique(item, return_index=True)[1]
    of_item = [
        with_policy(correlate_groups(cells.human, side, item, n_items, coefficient), undefined)
        for side in (a, b)
    ]
    is_defined = [(~np.isnan(side)).astype(np.float64) for side in of_item]
    sums = [np.nan_to_num(side) for side in of_item]

    def deltas(swapped: Flags) -> Floats:
        weights = swapped[:, one_cell].astype(np.float64)
        rest = 1.0 - weights

        def mean(from_a: Floats, from_b: Floats) -> Floats:
            count = from_a @ is_defined[0] + from_b @ is_defined[1]
            return (from_a @ sums[0] + from_b @ sums[1]) / np.where(count > 0, count, np.nan)

        return mean(rest, weights) - mean(weights, rest)

    return deltas


def _are_small(cells: Cells) -> bool:
    assert cells.item is not None
    return int(np.bincount(cells.item).max()) <= MASKS_UP_TO_SYSTEMS


def _by_masks(cells: Cells, a: Floats, b: Floats, coefficient: str, undefined: Undefined) -> Deltas:
    """Each item's coefficient under all swaps of its few cells is looked up, not computed anew."""
    assert cells.item is not None
    tables = groups_by_size(cells.item)
    values = [
        _under_masks(cells.human[rows], a[rows], b[rows], coefficient, undefined) for rows in tables
    ]

    def deltas(swapped: Flags) -> Floats:
        first, second = [], []
        for rows, by_mask in zip(tables, values, strict=True):
            mask = swapped[:, rows] @ (1 << np.arange(rows.shape[1]))
            item = np.arange(len(rows))
            first.append(by_mask[mask, item])
            second.append(by_mask[len(by_mask) - 1 - mask, item])
        return mean_of_groups(first, undefined) - mean_of_groups(second, undefined)

    return deltas


def _under_masks(
    human: Floats, a: Floats, b: Floats, coefficient: str, undefined: Undefined
) -> Floats:
    """Shapes (n_items, k) in, (2 ** k, n_items) out: bit j of a row's number swaps cell j."""
    k = human.shape[1]
    swapped = (np.arange(1 << k)[:, None, None] >> np.arange(k)) & 1 == 1
    return values_of_groups(human, np.where(swapped, b, a), coefficient, undefined)


def statistic(cells: Cells, level: Level, coefficient: str, undefined: Undefined) -> Statistic:
    if coefficient == "spa":
        return _soft(cells)
    if level == "item":
        assert cells.item is not None
        group = cells.item
        return _of_groups(cells.human, group, coefficient, undefined)
    if level == "system":
        return _of_means(cells, coefficient, undefined)
    group = np.zeros(cells.n_rows, dtype=np.intp)
    return _of_groups(cells.human, group, coefficient, undefined)


def _of_groups(human: Floats, group: Integers, coefficient: str, undefined: Undefined) -> Statistic:
    if coefficient == "acc_star":
        pairs = pairs_within(group, int(group.max(initial=-1)) + 1, np.random.default_rng(0))
        return lambda metrics: calibrated(human, metrics, pairs)[1]
    tables = groups_by_size(group)
    sides = [human[rows] for rows in tables]

    def of_rows(metrics: Floats) -> Floats:
        parts = [
            values_of_groups(side, metrics[:, rows], coefficient, undefined)
            for side, rows in zip(sides, tables, strict=True)
        ]
        return mean_of_groups(parts or [np.full((len(metrics), 1), np.nan)], undefined)

    return of_rows


def mean_of_groups(parts: Sequence[Floats], undefined: Undefined) -> Floats:
    """The mean of each row over all parts' columns by the policy; NaN where none is defined."""
    values = np.concatenate(parts, axis=1)
    is_defined = ~np.isnan(values)
    if undefined == "nan":
        is_defined &= is_defined.all(axis=1, keepdims=True)
    count = is_defined.sum(axis=1)
    total = np.where(is_defined, values, 0.0).sum(axis=1)
    return np.asarray(total / np.where(count > 0, count, np.nan))


def groups_by_size(group: Integers) -> list[Integers]:
    """For each size of group from two up, the cells of the groups, a row each."""
    size = np.bincount(group)
    order = np.argsort(group, kind="stable")
    start = np.cumsum(size) - size
    return [
        order[start[size == length, None] + np.arange(length)]
        for length in np.unique(size[size > 1])
    ]


def values_of_groups(
    human: Floats, metrics: Floats, coefficient: str, undefined: Undefined
) -> Floats:
    """The coefficient of each draw and group; shapes (n_groups, k) and (n_draws, n_groups, k)."""
    n_draws, n_groups, k = metrics.shape
    x = np.broadcast_to(human, metrics.shape).reshape(-1, k)
    values, _ = row_values(x, metrics.reshape(-1, k), coefficient)
    if undefined == "zero":
        values = np.nan_to_num(values)
    return values.reshape(n_draws, n_groups)


def _of_means(cells: Cells, coefficient: str, undefined: Undefined) -> Statistic:
    assert cells.system is not None
    system, n_systems = renumbered(cells.system)
    count = sum_by(system, np.ones(cells.n_rows), n_systems)
    spread = float(np.ptp(cells.human)) or 1.0
    sums = sum_by(system, (cells.human - cells.human.min()) / spread, n_systems)
    human = rounded_means(sums, count)
    indicator = scipy.sparse.coo_array(
        (np.ones(cells.n_rows), (np.arange(cells.n_rows), system)), (cells.n_rows, n_systems)
    ).tocsc()
    one_group = _of_groups(human, np.zeros(n_systems, dtype=np.intp), coefficient, undefined)
    return lambda metrics: one_group(rounded_means(np.asarray(metrics @ indicator), count))


def _soft(cells: Cells) -> Statistic:
    assert cells.item is not None
    assert cells.system is not None
    (system, n_systems), (item, n_items) = renumbered(cells.system), renumbered(cells.item)
    human = pairwise_accuracy.table(cells.human, item, system, (n_systems, n_items))
    shared = pairwise_accuracy.pair_shares(human)[None]

    def p_values(tables: Floats) -> Floats:
        differences = pairwise_accuracy.pair_differences(tables)
        return pairwise_accuracy.p_by_normal(
            differences.sum(axis=-1), np.square(differences).sum(axis=-1)
        )

    p_human = p_values(human[None])

    def of_rows(metrics: Floats) -> Floats:
        tables = np.full((len(metrics), n_systems, n_items), np.nan)
        tables[:, system, item] = metrics
        pairs = np.broadcast_to(shared, (len(metrics), shared.shape[1]))
        return pairwise_accuracy.one_less_error(p_human, p_values(tables), pairs)

    return of_rows


@dataclass(frozen=True)
class PairSums:
    """Sums over ordered pairs of cells, one for each metric, as functions of who is swapped.

    Shapes: (2, 1) for neither swapped, (n_cells, 2) for one of the two cells, and
    (n_cells, n_cells) for both, where the table's other half is added to its upper one.
    """

    neither: Floats
    one: Floats
    both: Signs

    def __call__(self, swapped: NDArray[np.float32]) -> Floats:
        n_draws, n_cells = swapped.shape
        total = np.zeros(n_draws)
        step = max(1, BLOCK // n_cells)
        for at in range(0, n_cells, step):
            rows = slice(at, at + step)
            # below 2 ** 24 a float32 is exact, and a sum is at most eight times n_cells
            reached = swapped[:, at:] @ self.both[rows, at:].astype(np.float32).T
            reached *= swapped[:, rows]
            total += reached.sum(axis=1, dtype=np.float64)
        return np.asarray(self.neither + (swapped @ self.one).T + total)


def pair_sums(human: Floats, a: Floats, b: Floats, tables: Tables) -> list[PairSums]:
    blocks = []
    step = max(1, BLOCK // len(human))
    for rows in (slice(at, at + step) for at in range(0, len(human), step)):
        of_human = signs(human[rows, None], human)
        four = [
            tables(of_human, signs(here[rows, None], there)) for here in (a, b) for there in (a, b)
        ]
        blocks.append([_block(parts) for parts in zip(*four, strict=True)])
    return [_joined(parts) for parts in zip(*blocks, strict=True)]


def _block(four: Sequence[Signs]) -> tuple[Floats, Signs]:
    aa, ab, ba, bb = four
    rows = np.stack([table.sum(axis=1, dtype=np.float64) for table in four])
    return rows, np.asarray(aa - ab - ba + bb)


def _joined(blocks: Sequence[tuple[Floats, Signs]]) -> PairSums:
    aa, ab, ba, bb = np.concatenate([rows for rows, _ in blocks], axis=1)
    both = np.concatenate([table for _, table in blocks])
    return PairSums(
        neither=np.array([[aa.sum()], [bb.sum()]]),
        one=2 * np.stack([ba - aa, ab - bb], axis=1),
        both=np.triu(both) + np.triu(both, 1),
    )


def kendall_deltas(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    agreement, untied = pair_sums(human, a, b, lambda x, y: (x * y, abs(y)))
    of_human = np.sqrt(_untied(human))

    def deltas(swapped: Flags) -> Floats:
        weights = swapped.astype(np.float32)
        scale = of_human * np.sqrt(untied(weights))
        value = agreement(weights) / np.where(scale > 0, scale, np.nan)
        return difference(np.clip(value, -1.0, 1.0), undefined)

    return deltas


def kendall_c_deltas(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    (agreement,) = pair_sums(human, a, b, lambda x, y: (x * y,))
    of_human = distinct(human[None])

    def deltas(swapped: Flags) -> Floats:
        sides = (np.where(swapped, b, a), np.where(swapped, a, b))
        classes = np.minimum(of_human, np.stack([distinct(side) for side in sides]))
        varied = np.where(classes > 1, classes, np.nan)
        value = stuart(agreement(swapped.astype(np.float32)) / 2, len(human), varied)
        return difference(np.clip(value, -1.0, 1.0), undefined)

    return deltas


def accuracy_deltas(human: Floats, a: Floats, b: Floats, undefined: Undefined) -> Deltas:
    (alike,) = pair_sums(human, a, b, lambda x, y: ((x == y).view(np.int8),))
    n_pairs = len(human) * (len(human) - 1)

    def deltas(swapped: Flags) -> Floats:
        # a cell ties with itself on both sides, and is no pair
        value = (alike(swapped.astype(np.float32)) - len(human)) / n_pairs
        return difference(value, undefined)

    return deltas


PAIRWISE: dict[str, Callable[[Floats, Floats, Floats, Undefined], Deltas]] = {
    "kendall": kendall_deltas,
    "kendall_c": kendall_c_deltas,
    "acc_eq": accuracy_deltas,
}


def _untied(column: Floats) -> float:
    counts = np.unique(column, return_counts=True)[1].astype(np.float64)
    return float(len(column) ** 2 - np.square(counts).sum())


def difference(values: Floats, undefined: Undefined) -> Floats:
    filled = np.nan_to_num(values) if undefined == "zero" else values
    return np.asarray(filled[0] - filled[1])
