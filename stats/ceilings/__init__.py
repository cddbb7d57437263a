"""How well a metric could agree with people at most, given how well people agree."""

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
