"""Random numbers that depend only on seed, target and turn. A generator would give them in the
order of calls, so that another batch or order of targets would change every dialogue. Here each is
a hash of its coordinates (the finalizer of SplitMix64; G. L. Steele, D. Lea and C. H. Flood, 2014.
Fast splittable pseudorandom number generators. OOPSLA 2014, 453-472)."""

from typing import Any

import numpy as np

from stats.arguments import Floats

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# The purpose of a number: the same coordinates give another number for each.
SWITCH, LEAVE, START, SHARE, ORDER, SPLIT = range(6)


def hashed(*coordinates: Any) -> np.ndarray:
    """64 bits for each combination of coordinates, which are whole numbers that broadcast."""
    state = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for coordinate in coordinates:
            state = _mixed((state + STEP) ^ _mixed(np.asarray(coordinate).astype(np.uint64)))
    return state


def uniform(*coordinates: Any) -> Floats:
    """From 0 to below 1, one for each combination of coordinates."""
    return (hashed(*coordinates) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = bits + STEP
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return np.asarray(bits ^ (bits >> np.uint64(31)))
