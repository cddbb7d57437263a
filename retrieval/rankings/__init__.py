"""Systems ranked under several sets of judgments, and how far the rankings may be trusted."""

from retrieval.rankings.comparison import compare_files, compare_qrels
from retrieval.rankings.records import ComparisonSettings, QrelsCompared

__all__ = ["ComparisonSettings", "QrelsCompared", "compare_files", "compare_qrels"]
