"""The agreement with annotators that a metric could reach, given theirs with each other."""

from stats.ceilings.attainable import Ceiling, ceiling, ceilings
from stats.ceilings.attenuation import disattenuated, spearman_brown
from stats.ceilings.intraclass import Reliability, reliability

__all__ = [
    "Ceiling",
    "Reliability",
    "ceiling",
    "ceilings",
    "disattenuated",
    "reliability",
    "spearman_brown",
]
