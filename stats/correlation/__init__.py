"""Correlation of a metric with human ratings: by item, by system, or pooled, with intervals."""

from stats.correlation.coefficients import (
    Coefficient,
    RowCoefficient,
    correlate,
    grouped_correlation,
)
from stats.correlation.levels import correlation_at_level
from stats.correlation.result import (
    CiMethod,
    Correlation,
    Level,
    NoInterval,
    Reason,
    Resample,
    Undefined,
)

__all__ = [
    "CiMethod",
    "Coefficient",
    "Correlation",
    "Level",
    "NoInterval",
    "Reason",
    "Resample",
    "RowCoefficient",
    "Undefined",
    "correlate",
    "correlation_at_level",
    "grouped_correlation",
]
