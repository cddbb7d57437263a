"""Whether one metric agrees with human ratings better than another, and how uncertain that is."""

from stats.significance.adjustments import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    significance_clusters,
)
from stats.significance.comparisons import (
    Test,
    Williams,
    compare_metrics,
    permutation_test,
    williams_test,
)
from stats.significance.deltas import Swap
from stats.significance.resampled import Comparison, Undecided, compare_by_resampling

__all__ = [
    "Comparison",
    "Swap",
    "Test",
    "Undecided",
    "Williams",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "compare_by_resampling",
    "compare_metrics",
    "holm",
    "permutation_test",
    "significance_clusters",
    "williams_test",
]
