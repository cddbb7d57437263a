"""How good each annotator is: agreement with others and gold, bias, drift, and copies."""

from stats.annotators.leave_one_out import (
    Reason,
    leave_one_out_agreement,
    leave_one_out_correlation,
)
from stats.annotators.quality import annotator_quality
from stats.annotators.similar_pairs import near_duplicates

__all__ = [
    "Reason",
    "annotator_quality",
    "leave_one_out_agreement",
    "leave_one_out_correlation",
    "near_duplicates",
]
