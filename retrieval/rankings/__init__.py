from retrieval.rankings.comparison import compare_qrels
from retrieval.rankings.records import ComparisonSettings, QrelsComparison

__all__ = ["ComparisonSettings", "QrelsComparison", "compare_qrels"]
