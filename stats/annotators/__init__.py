"""How good each annotator is: agreement with others and gold, bias, drift, and copies."""

from stats.annotators.quality import Reason, annotator_quality
from stats.annotators.similar_pairs import near_duplicates

__all__ = [
    "Reason",
    "annotator_quality",
    "near_duplicates",
]
