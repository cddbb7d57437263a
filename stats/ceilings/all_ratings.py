"""What the agreement of halves of the ratings says of all of them."""

from dataclasses import dataclass
from math import isnan, nan, sqrt

from stats.ceilings.attenuation import spearman_brown
from stats.ceilings.normal_scale import NormalScale

STEP = 1e-6
"""Of the correlation of the halves, for a difference quotient."""
ROUNDING = 1e-9
"""Of a correlation: halves that order everything oppositely come out so far from -1."""


@dataclass(frozen=True)
class AllRatings:
    """What halves of the ratings say of all of them, `factor` times as many."""

    scale: NormalScale
    factor: float

    def reliability(self, split_half: float) -> float:
        """Pearson's correlation of two sets of as many ratings as there are."""
        half = self.scale.correlation(split_half)
        is_opposite = half < ROUNDING - 1  # what is stepped up from there is no correlation
        return nan if isnan(half) or is_opposite else spearman_brown(half, self.factor)

    def attainable(self, split_half: float) -> float:
        """What a perfect metric would reach: what no relation has where the halves do not agree."""
        if isnan(split_half):
            return nan
        known = self.scale.correlation(split_half) > 0
        return self.scale.value(sqrt(self.reliability(split_half)) if known else 0.0)

    def slope(self, split_half: float) -> float:
        """By how much the attainable grows with the correlation of the halves."""
        low, high = max(split_half - STEP, -1.0), min(split_half + STEP, 1.0)
        return (self.attainable(high) - self.attainable(low)) / (high - low)
