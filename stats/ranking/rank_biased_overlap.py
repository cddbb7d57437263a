from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias, get_args

import numpy as np

from stats.arguments import (
    Column,
    Floats,
    complete_numbers,
    require,
    require_one_of,
    require_same_length,
    require_shares,
)

RankTies = Literal["w", "a", "b"]
TieGroups: TypeAlias = Sequence[Iterable[Hashable]]
BLOCK = 1 << 22


@dataclass(frozen=True)
class Overlap:
    """Rank-biased overlap of two prefixes.

    Attributes
    ----------
    ext : float
        Agreement of what is ranked, taken to go on below.
    min, max : float
        If nothing below the prefixes agreed, and if all did that can.
    """

    ext: float
    min: float
    max: float

    @property
    def residual(self) -> float:
        return self.max - self.min


@dataclass(frozen=True)
class _Ranking:
    """Items by rank, and the first and the last rank of each one's group of ties, from 1."""

    items: list[Hashable]
    top: Floats
    bottom: Floats

    def active(self, depth: Floats, ties: RankTies) -> Floats:
        """How far each item is among the first, at each depth; shape (n_items, n_depths)."""
        if ties == "w":
            return (depth >= self.top[:, None]).astype(np.float64)
        size = self.bottom - self.top + 1
        return np.clip((depth - self.top[:, None] + 1) / size[:, None], 0.0, 1.0)


def tie_groups(items: Sequence[Hashable], values: Column) -> list[list[Hashable]]:
    """Items by falling value, those of the same value together.

    Parameters
    ----------
    items : sequence of hashable, shape (n_items,)
    values : array-like of float, shape (n_items,)

    Returns
    -------
    list of lists

    Raises
    ------
    ValueError
        If the columns differ in length or a value is missing.

    Examples
    --------
    >>> tie_groups(["a", "b", "c"], [0.1, 0.5, 0.5])
    [['b', 'c'], ['a']]
    """
    require_same_length(items=items, values=values)
    value = complete_numbers(values, "values")
    order = np.argsort(-value, kind="stable")
    return [[items[at] for at in group] for _, group in groupby(order, key=value.__getitem__)]


def rbo(first: TieGroups, second: TieGroups, *, p: float = 0.9, ties: RankTies = "a") -> Overlap:
    """Rank-biased overlap.

    Parameters
    ----------
    first, second : sequence of groups of items
        From the best on; items of one group tie. Lengths and items may differ.
    p : float
        Persistence: the first d ranks weigh more the smaller it is. With .9 ten ranks weigh .86.
    ties : {"a", "b", "w"}
        Ties are an order that is not known: ``"a"`` is the mean over all orders, ``"b"`` corrects
        it for the information lost, so that a ranking with itself has 1. ``"w"`` are ties as in
        sports: all of a group have its first rank.

    Returns
    -------
    Overlap

    Raises
    ------
    ValueError
        If a ranking is empty or names an item twice, or `p` or `ties` is out of range.

    Notes
    -----
    ``(1 - p) sum p**(d - 1) A_d``. At depth d an item of a group that spans ranks t to b is among
    the first to the degree (d - t + 1) / (b - t + 1), up to 1, and X_d is the sum of products of
    both sides' degrees c and e: A_d is X_d / d (a) or ``X_d / sqrt(sum c**2 sum e**2)`` (b); with
    w an item counts from t on, and A_d is twice the shared over both sides' numbers. Below the
    shorter ranking its last agreement goes on for what only the longer one ranks, as in Webber's
    equation 32, and below the longer one the last agreement of both.

    References
    ----------
    W. Webber, A. Moffat and J. Zobel (2010). A similarity measure for indefinite rankings. ACM
    TOIS 28(4), article 20.
    M. Corsi and J. Urbano (2024). The treatment of ties in rank-biased overlap. SIGIR 2024,
    251-260.

    Examples
    --------
    >>> round(rbo([["a"], ["b"], ["c"]], [["a"], ["c"], ["b"]]).ext, 4)
    0.955
    >>> one = rbo([["a"], ["b", "c"]], [["a"], ["b", "c"]], ties="b")
    >>> round(one.ext, 4), round(one.min, 4), round(one.residual, 4)
    (1.0, 0.5225, 0.4775)
    """
    require_shares(p=p)
    require_one_of(ties=(ties, get_args(RankTies)))
    shorter, longer = sorted(
        (_ranking(first, "first"), _ranking(second, "second")), key=lambda one: len(one.items)
    )
    return _Agreement(shorter, longer, p, ties).overlap()


class _Agreement:
    """The sums of the overlap of a shorter and a longer ranking."""

    def __init__(self, shorter: _Ranking, longer: _Ranking, p: float, ties: RankTies) -> None:
        self.p, self.ties = p, ties
        self.n_short, self.n_long = len(shorter.items), len(longer.items)
        self.depth = np.arange(1.0, self.n_long + 1)
        of_short = shorter.active(self.depth, ties)
        self.of_long = longer.active(self.depth, ties)
        row = {item: at for at, item in enumerate(longer.items)}
        shared = [(at, row[item]) for at, item in enumerate(shorter.items) if item in row]
        here, there = np.array(shared, dtype=np.intp).reshape(-1, 2).T
        self.together = (of_short[here] * self.of_long[there]).sum(axis=0)
        self.alone = np.setdiff1d(np.arange(self.n_long), there)
        self.scale = self._scale(of_short)

    def _scale(self, of_short: Floats) -> Floats:
        """What the shared at each depth is divided by; below the shorter ranking it fills up."""
        below = self.depth > self.n_short
        if self.ties == "a":
            return self.depth
        if self.ties == "w":
            n_short = np.where(below, self.depth, of_short.sum(axis=0))
            return np.asarray((n_short + self.of_long.sum(axis=0)) / 2)
        squares = np.where(below, self.depth, np.square(of_short).sum(axis=0))
        return np.asarray(np.sqrt(squares * np.square(self.of_long).sum(axis=0)))

    def overlap(self) -> Overlap:
        s, n = self.n_short, self.n_long
        at_end = float(self.together[-1])
        last = float(self.together[s - 1] / self.scale[s - 1])
        beyond = self.depth[s:] - s
        goes_on = at_end + (n - s) * last
        ext = goes_on / n * self.p ** (n + 1) / (1 - self.p)
        return Overlap(
            ext=self._weighed(beyond * last * self._mean_alone(), ext),
            min=self._weighed(np.zeros(n - s), self._nothing_below(at_end)),
            max=self._weighed(self._most_alone(), self._all_below(at_end)),
        )

    def _weighed(self, added: Floats, below: float) -> float:
        """The sum over the depths ranked, with what is added below the shorter, and the tail."""
        shared = self.together + np.concatenate([np.zeros(self.n_short), added])
        here = (shared / self.scale * self.p**self.depth).sum()
        return float((1 - self.p) / self.p * (here + below))

    def _mean_alone(self) -> Floats:
        """The mean degree of what only the longer ranks, among those that count, below."""
        degrees = self.of_long[self.alone][:, self.n_short :]
        return np.asarray(degrees.sum(axis=0) / np.maximum((degrees > 0).sum(axis=0), 1))

    def _most_alone(self) -> Floats:
        """The greatest sum of degrees of as many of them as there are ranks below the shorter."""
        rows = self.of_long[self.alone[: self.n_long - self.n_short]][:, self.n_short :]
        return np.asarray(np.triu(rows).sum(axis=0))

    def _nothing_below(self, at_end: float) -> float:
        d = self.depth
        return float(at_end * (-np.log1p(-self.p) - (self.p**d / d).sum()))

    def _all_below(self, at_end: float) -> float:
        """The longest that unseen ranks can go on to hold the other ranking's items, then all."""
        s, n, p = self.n_short, self.n_long, self.p
        all_seen = int(np.floor(n + s - at_end + 1e-9))
        d = np.arange(n + 1.0, all_seen + 1)
        rising = ((2 * d - n - s + at_end) / d * p**d).sum()
        return float(rising + p ** (all_seen + 1) / (1 - p))


def rbo_rows(first: Floats, second: Floats, *, p: float = 0.9, ties: RankTies = "a") -> Floats:
    """The extrapolated overlap of two rankings of the same systems, for many rows at once.

    Parameters
    ----------
    first, second : ndarray of float, shape (n_rows, n_systems)
        The systems' values under either; higher comes first.
    p, ties
        As for `rbo`.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        NaN where there is no system.

    Examples
    --------
    >>> rbo_rows(np.array([[3.0, 2.0, 1.0]]), np.array([[3.0, 1.0, 2.0]])).round(4).tolist()
    [0.955]
    """
    n = first.shape[1]
    if not n:
        return np.full(len(first), np.nan)
    depth = np.arange(1.0, n + 1)
    weight = p**depth * (1 - p) / p
    found = []
    step = max(1, BLOCK // n**2)
    for at in range(0, len(first), step):
        one, other = (_degrees(side[at : at + step], depth, ties) for side in (first, second))
        shared = np.einsum("rid,rid->rd", one, other)
        if ties == "a":
            scale = np.broadcast_to(depth, shared.shape)
        elif ties == "w":
            scale = (one.sum(axis=1) + other.sum(axis=1)) / 2
        else:
            scale = np.sqrt(np.square(one).sum(axis=1) * np.square(other).sum(axis=1))
        found.append((shared / scale) @ weight + p**n)
    return np.concatenate(found)


def _degrees(values: Floats, depth: Floats, ties: RankTies) -> Floats:
    """How far each system is among the first, at each depth; shape (n_rows, n_systems, n)."""
    above = (values[:, None, :] > values[:, :, None]).sum(axis=2)[:, :, None]
    if ties == "w":
        return np.asarray(depth > above, dtype=np.float64)
    tied = (values[:, None, :] == values[:, :, None]).sum(axis=2)[:, :, None]
    return np.asarray(np.clip((depth - above) / tied, 0.0, 1.0))


def _ranking(groups: TieGroups, name: str) -> _Ranking:
    members = [list(group) for group in groups]
    items = [item for group in members for item in group]
    require(items, f"{name} must rank an item", code=f"{name}_empty")
    require(
        len(set(items)) == len(items), f"{name} must not name an item twice", code="repeated_items"
    )
    size = np.array([len(group) for group in members if group])
    bottom = np.cumsum(size)
    top = bottom - size + 1
    return _Ranking(items, *(np.repeat(ranks, size).astype(np.float64) for ranks in (top, bottom)))
