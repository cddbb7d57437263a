"""Rankings: lists of documents against relevance judgments, and rankings of systems compared."""

from stats.ranking.judged_lists import JudgedLists, Ties, graded_lists, judged_lists
from stats.ranking.notation import Measure, measure

__all__ = ["JudgedLists", "Measure", "Ties", "graded_lists", "judged_lists", "measure"]
