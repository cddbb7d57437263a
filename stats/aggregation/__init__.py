"""One label an item from many annotators' labels, with its uncertainty."""

from stats.aggregation.aggregate import METHODS, aggregate
from stats.aggregation.averages import mean, median, trimmed_mean, zscore
from stats.aggregation.bias_precision import bias_precision
from stats.aggregation.bradley_terry import bradley_terry
from stats.aggregation.dawid_skene import dawid_skene, one_coin
from stats.aggregation.glad import glad
from stats.aggregation.mace import mace, mace_em
from stats.aggregation.majority import majority
from stats.aggregation.preferences import best_worst, preference_strengths
from stats.aggregation.result import Aggregation, Reason

__all__ = [
    "METHODS",
    "Aggregation",
    "Reason",
    "aggregate",
    "best_worst",
    "bias_precision",
    "bradley_terry",
    "dawid_skene",
    "glad",
    "mace",
    "mace_em",
    "majority",
    "mean",
    "median",
    "one_coin",
    "preference_strengths",
    "trimmed_mean",
    "zscore",
]
