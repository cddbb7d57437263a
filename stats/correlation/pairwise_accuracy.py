from dataclasses import dataclass

from stats.arguments import Floats, Integers, Signs
from stats.correlation.coefficients import signs
from stats.libraries import np, scipy

# More pairs are sampled, since the threshold is sought among all of them.
PAIRS_UP_TO = 5_000_000
# Floats handled at a time, 32 MB.
CHUNK = 1 << 22
# From so many pairs on, a sorted sweep is quicker than a table of pairs and replicates.
SWEEP_FROM_PAIRS = 20_000


@dataclass(frozen=True)
class Pairs:
    first: Integers
    second: Integers
    share: Floats


def pairs_within(group: Integers, n_groups: int, rng: np.random.Generator) -> Pairs:
    """All pairs of cells of the same group, or a sample where one group has too many.

    Every group with a pair counts the same, and every pair of it.
    """
    size = np.bincount(group, minlength=n_groups)
    order = np.argsort(group, kind="stable")
    start = np.cumsum(size) - size
    n_used = np.count_nonzero(size > 1)
    parts: list[Pairs] = []
    for length in np.unique(size[size > 1]):
        first, second = _pairs_among(int(length), rng)
        rows = order[start[size == length, None] + np.arange(length)]
        share = np.full(rows.shape[0] * len(first), 1.0 / (len(first) * n_used))
        parts.append(Pairs(rows[:, first].ravel(), rows[:, second].ravel(), share))
    if not parts:
        none = np.empty(0, dtype=np.intp)
        return Pairs(none, none, np.empty(0))
    if len(parts) == 1:
        return parts[0]
    columns = [(part.first, part.second, part.share) for part in parts]
    return Pairs(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _pairs_among(n: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    if n * (n - 1) // 2 <= PAIRS_UP_TO:
        return np.triu_indices(n, 1)
    first = rng.integers(n, size=PAIRS_UP_TO)
    second = rng.integers(n - 1, size=PAIRS_UP_TO)
    return first, second + (second >= first)


def calibrated(human: Floats, metrics: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
    """The threshold that makes each row of scores most accurate, and the accuracy reached.

    Parameters
    ----------
    human : ndarray of float, shape (n_cells,)
        Human values.
    metrics : ndarray of float, shape (n_draws, n_cells)
        Rows of scores of the same cells.
    pairs : Pairs
        Which cells are compared.

    Returns
    -------
    threshold, accuracy : ndarray of float, shape (n_draws,)
        Scores that differ by no more than the threshold tie; the least of the best thresholds.
        The mean over groups of the share of pairs that both sides order, or tie, alike. NaN
        where there is no pair.

    References
    ----------
    D. Deutsch, G. Foster and M. Freitag (2023). Ties matter: Meta-evaluating modern metrics with
    pairwise accuracy and tie calibration. EMNLP 2023, 12914-12929.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = pairs_within(np.zeros(3, dtype=int), 1, rng)
    >>> calibrated(np.array([1.0, 1.0, 2.0]), np.array([[0.0, 0.1, 1.0]]), pairs)
    (array([0.1]), array([1.]))
    """
    if not len(pairs.first):
        return np.full(len(metrics), np.nan), np.full(len(metrics), np.nan)
    signs_human = signs(human[pairs.first], human[pairs.second])
    of_chunk, step = _calibrate, max(1, CHUNK // len(signs_human))
    if len(signs_human) >= SWEEP_FROM_PAIRS and np.ptp(pairs.share) == 0:
        of_chunk, step = _sweep, 1
    chunks = [
        of_chunk(signs_human, metrics[start : start + step], pairs)
        for start in range(0, len(metrics), step)
    ]
    threshold, accuracy = zip(*chunks, strict=True)
    return np.concatenate(threshold), np.concatenate(accuracy)


def _calibrate(sign: Signs, metrics: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
    """Tie pairs one after another, nearest first; the greatest accuracy wins."""
    first, second = metrics[:, pairs.first], metrics[:, pairs.second]
    right = signs(first, second) == sign
    distance = np.abs(first - second)
    gain = ((sign == 0).astype(np.int8) - right.view(np.int8)) * pairs.share
    order = np.argsort(distance, axis=1)
    distance = np.take_along_axis(distance, order, axis=1)
    gained = np.cumsum(np.take_along_axis(gain, order, axis=1), axis=1)
    gained[:, :-1][distance[:, :-1] == distance[:, 1:]] = -np.inf
    best = np.argmax(gained, axis=1)[:, None]
    most = np.take_along_axis(gained, best, axis=1)[:, 0]
    threshold = np.where(most > 0, np.take_along_axis(distance, best, axis=1)[:, 0], 0.0)
    return threshold, right @ pairs.share + np.maximum(most, 0.0)


def _sweep(sign: Signs, metrics: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
    """The same for one row of pairs that all count alike, by sorting bare distances.

    A wider threshold gains a pair that annotators tie, and loses one that both sides order alike.
    """
    first, second = metrics[0, pairs.first], metrics[0, pairs.second]
    right = signs(first, second) == sign
    distance = np.abs(first - second)
    tied = sign == 0
    gains, losses = np.sort(distance[tied & ~right]), np.sort(distance[right & ~tied])
    net = np.arange(1, len(gains) + 1) - np.searchsorted(losses, gains, side="right")
    most = max(int(net.max(initial=0)), 0)
    threshold = gains[np.argmax(net)] if most else 0.0
    n_right = np.count_nonzero(right) + most
    return np.array([threshold]), np.array([n_right / len(sign)])


N_PERMUTATIONS = 1000
# As a share of the sums compared: sums this close are equal.
ROUNDING = 1e-12


def table(column: Floats, item: Integers, system: Integers, shape: tuple[int, int]) -> Floats:
    values = np.full(shape, np.nan)
    values[system, item] = column
    return values


def pair_differences(values: Floats) -> Floats:
    """The difference of every two systems on each item, 0 where one has none.

    Shapes: (..., n_systems, n_items) in, (..., n_pairs, n_items) out.
    """
    first, second = np.triu_indices(values.shape[-2], 1)
    return np.asarray(np.nan_to_num(values[..., first, :] - values[..., second, :]))


def pair_shares(values: Floats) -> Floats:
    """1 for every two systems that share an item, otherwise 0."""
    first, second = np.triu_indices(len(values), 1)
    return np.asarray((~np.isnan(values[first] - values[second])).any(axis=1), dtype=np.float64)


def sign_flips(n_permutations: int, n_items: int, rng: np.random.Generator) -> Floats:
    return np.where(rng.integers(0, 2, size=(n_permutations, n_items)), 1.0, -1.0)


def p_by_flips(differences: Floats, flips: Floats) -> Floats:
    """How often a sign flip sums to no less than the differences do, for each pair of systems."""
    observed = differences.sum(axis=1)
    slack = ROUNDING * np.abs(differences).sum(axis=1)
    return np.asarray((flips @ differences.T >= observed - slack).mean(axis=0))


def p_by_normal(total: Floats, squares: Floats) -> Floats:
    """The same with the flips' distribution taken as normal, which has mean 0 and this variance."""
    spread = np.sqrt(squares)
    z = total / np.where(spread > 0, spread, 1.0)
    return np.where(spread > 0, scipy.special.ndtr(-z), 1.0)


def one_less_error(p_human: Floats, p_metric: Floats, pair_weights: Floats) -> Floats:
    """One less the weighted mean difference of p-values in each row; NaN without weights."""
    weight = pair_weights.sum(axis=1)
    error = (np.abs(p_human - p_metric) * pair_weights).sum(axis=1)
    return np.asarray(1.0 - error / np.where(weight > 0, weight, np.nan))
