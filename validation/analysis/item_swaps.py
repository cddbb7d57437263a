"""The paired permutation test of items, for every two metrics of a panel at once."""

from itertools import combinations
from math import nan
from typing import Any

import numpy as np

from stats.arguments import Floats
from stats.correlation.bootstrap import CHUNK
from stats.correlation.coefficients import group_values
from stats.correlation.undefined import with_policy
from validation.analysis.panels import Panel
from validation.analysis.settings import Settings

ROUNDING = 1e-12


def item_swap_p_values(
    panel: Panel, coefficient: str, settings: Settings
) -> dict[tuple[int, int], float]:
    """Two-sided p of every two metrics, named by their numbers; NaN where there is no test.

    Swapped items swap their coefficients, so that the differences of all metrics with scores of
    the same candidates are made of the same few products. A pair with other gaps than each
    other is tested on the candidates that both scored.
    """
    gaps = np.isnan(panel.scores)
    p_values: dict[tuple[int, int], float] = {}
    for pattern in np.unique(gaps, axis=0):
        alike = np.flatnonzero((gaps == pattern).all(axis=1)).tolist()
        pairs = list(combinations(alike, 2))
        p_values |= _swapped(panel, panel.scores, pairs, coefficient, settings)
    for a, b in combinations(range(len(panel.metrics)), 2):
        if (a, b) not in p_values:
            shared = np.where(gaps[a] | gaps[b], nan, panel.scores[[a, b]])
            [p] = _swapped(panel, shared, [(0, 1)], coefficient, settings).values()
            p_values[a, b] = p
    return p_values


def _swapped(
    panel: Panel,
    scores: Floats,
    pairs: list[tuple[int, int]],
    coefficient: str,
    settings: Settings,
) -> dict[tuple[int, int], float]:
    """The p-values of pairs of rows of scores that have the same gaps."""
    if not pairs:
        return {}
    values = np.array(
        [
            with_policy(
                group_values(panel.human, row, panel.item, panel.n_items, coefficient),
                settings.undefined,
            )
            for row in scores
        ]
    ).T
    known, sums = (~np.isnan(values)).astype(np.float64), np.nan_to_num(values)
    total, count = sums.sum(axis=0), known.sum(axis=0)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    rng = np.random.default_rng(settings.seed + panel.number)
    observed = _difference(total, count, 0 * total, 0 * count, first, second)
    extreme = np.zeros(len(pairs))
    step = max(1, CHUNK // max(1, panel.n_items))
    for start in range(0, settings.n_permutations, step):
        size = min(step, settings.n_permutations - start)
        swapped = rng.integers(0, 2, size=(size, panel.n_items), dtype=np.uint8).astype(np.float64)
        moved = (swapped @ sums, swapped @ known)
        drawn = _difference(total - moved[0], count - moved[1], *moved, first, second)
        extreme += (np.abs(drawn) >= np.abs(observed) - ROUNDING).sum(axis=0)
    p = np.where(np.isnan(observed), nan, (extreme + 1) / (settings.n_permutations + 1))
    return {pair: float(value) for pair, value in zip(pairs, p, strict=True)}


def _difference(
    stays: Floats, n_stays: Floats, moves: Floats, n_moves: Floats, first: Any, second: Any
) -> Floats:
    """Of two metrics' means over defined items, with what moves of each counted for the other."""

    def mean(own: Any, other: Any) -> Floats:
        count = n_stays[..., own] + n_moves[..., other]
        total = stays[..., own] + moves[..., other]
        return np.asarray(total / np.where(count > 0, count, nan))

    return mean(first, second) - mean(second, first)
