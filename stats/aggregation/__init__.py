"""One label an item from many annotators' labels, with its uncertainty."""

from stats.aggregation.aggregate import METHODS, aggregate
from stats.aggregation.best_worst import best_worst
from stats.aggregation.bias_precision import bias_precision
from stats.aggregation.bradley_terry import bradley_terry
from stats.aggregation.dawid_skene import dawid_skene
from stats.aggregation.glad import glad
from stats.aggregation.mace import mace
from stats.aggregation.mace_em import mace_em
from stats.aggregation.majority import majority
from stats.aggregation.mean import mean
from stats.aggregation.median import median
from stats.aggregation.one_coin import one_coin
from stats.aggregation.preferences import preference_strengths
from stats.aggregation.result import Aggregation, Reason
from stats.aggregation.trimmed_mean import trimmed_mean
from stats.aggregation.zscore import zscore

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
