"""Whether annotators work with care: failed checks, straight lines, haste, copies, change, random
answers, answers by position.

Every flag is a count beside what the other annotators explain, with the chance of so many. None is
a verdict: benchmarks/quality.py says how often each hits careful annotators.
"""

from stats.annotators.similar_pairs import colluding_pairs
from stats.quality.flags import FLAGS, Evidence, annotator_flags
from stats.quality.order_effects import late_change, position_tests
from stats.quality.pages import (
    band_failed,
    constant_pages,
    count_words,
    degraded_failed,
    repeat_failed,
)
from stats.quality.peers import excess_hits, unrelated_annotators
from stats.quality.reasons import machine_like, reason_similarity

__all__ = [
    "FLAGS",
    "Evidence",
    "annotator_flags",
    "band_failed",
    "colluding_pairs",
    "constant_pages",
    "count_words",
    "degraded_failed",
    "excess_hits",
    "late_change",
    "machine_like",
    "position_tests",
    "reason_similarity",
    "repeat_failed",
    "unrelated_annotators",
]
