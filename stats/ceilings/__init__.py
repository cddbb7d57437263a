"""The agreement with annotators that a metric could reach, given theirs with each other."""

from stats.ceilings.attainable import Ceiling, NoCeiling, ceiling, ceilings
from stats.ceilings.cells import CeilingWarning
from stats.ceilings.more_ratings import level_reliability
from stats.ceilings.normal_scale import Reliability, reliability, spearman_brown

__all__ = [
    "Ceiling",
    "CeilingWarning",
    "NoCeiling",
    "Reliability",
    "ceiling",
    "ceilings",
    "level_reliability",
    "reliability",
    "spearman_brown",
]
