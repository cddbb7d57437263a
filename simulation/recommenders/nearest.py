"""Items by their distance from a point of the catalogue's space."""

from __future__ import annotations

import numpy as np

from simulation.catalogue import on_grid
from simulation.targets import NONE
from simulation.top_items import top_items
from stats.arguments import Floats, Integers

CELLS_AT_ONCE = 4_000_000
"""Scores in memory at a time, 32 MB."""
FURTHEST = 4.0
"""A point is drawn in to this distance from the origin, items being within 1, so that products
stay exact."""


def nearest_items(
    points: Floats, positions: Floats, depth: int, excluded: Integers | None = None
) -> Integers:
    """The nearest of items' positions to each point, nearest first; ties by position.

    Points are rounded to the catalogue's grid. Shapes: points (n, d), positions (n_items, d).
    """
    length = np.sqrt((points**2).sum(axis=1, keepdims=True))
    points = on_grid(points * np.minimum(1.0, FURTHEST / np.maximum(length, FURTHEST)))
    half_squares = np.einsum("id,id->i", positions, positions) / 2
    step = max(1, CELLS_AT_ONCE // len(positions))
    ranked = np.empty((len(points), min(depth, len(positions))), dtype=np.intp)
    for low in range(0, len(points), step):
        block = slice(low, low + step)
        scores = points[block] @ positions.T
        scores -= half_squares
        if excluded is not None:
            exclude(scores, excluded[block])
        ranked[block] = top_items(scores, ranked.shape[1])
    return ranked


def exclude(scores: Floats, excluded: Integers) -> None:
    """Put these items of each row last, in place."""
    row, column = np.nonzero(excluded != NONE)
    scores[row, excluded[row, column]] = -np.inf
