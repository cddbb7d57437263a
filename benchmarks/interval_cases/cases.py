"""One case a row of the tables of `benchmarks.coverage`: a study of which the truth is known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Limits = tuple[float, float, float]


class WithInterval(Protocol):
    @property
    def ci_low(self) -> float: ...
    @property
    def ci_high(self) -> float: ...


def limits(found: WithInterval, truth: float) -> Limits:
    return found.ci_low, found.ci_high, truth


@dataclass(frozen=True)
class IntervalCase:
    """A row: `draw` gives the limits of one simulated study, and the truth."""

    part: str
    setting: str
    draw: Callable[[np.random.Generator], Limits]
    noted: str = ""


@dataclass(frozen=True)
class TestCase:
    """A row: `draw` gives p of one simulated study in which something differs, or nothing; NaN
    where the product notes that p of this study is a rough guide."""

    part: str
    setting: str
    draw: Callable[[np.random.Generator, bool], float]
    noted: str = ""


FEW_ITEMS, FEW_OF_A_CLASS, FEW_LABELS, FEW_CARRY = "items", "rarer class", "labels", "spread"
FEW_OTHERS = "other values"
FEW_GROUPS_LEFT_OUT = "families"
FEW_ASSESSORS = "assessors"
