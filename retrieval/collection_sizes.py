"""How large a test collection is, each mean with and without the target counted as relevant."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from presentation.records import plain_values
from stats.arguments import Integers


@dataclass(frozen=True)
class CollectionSizes:
    """What is said of a collection in one table, of judged and of relevant documents by topic.

    Attributes
    ----------
    judged, relevant : ndarray of int, shape (n_topics,)
        Of each topic; a topic of which nothing is judged does not count as assessed.
    """

    judged: Integers
    relevant: Integers

    @property
    def n_topics(self) -> int:
        return len(self.judged)

    @property
    def n_assessed(self) -> int:
        return int((self.judged > 0).sum())

    @property
    def n_with_relevant(self) -> int:
        return int((self.relevant > 0).sum())

    @property
    def n_judgments(self) -> int:
        return int(self.judged.sum())

    @property
    def n_relevant(self) -> int:
        return int(self.relevant.sum())

    @property
    def mean_relevant(self) -> float:
        """Over the topics of which anything is relevant."""
        return self.n_relevant / self.n_with_relevant if self.n_with_relevant else nan

    @property
    def mean_relevant_of_all(self) -> float:
        """Over all topics that were assessed."""
        return self.n_relevant / self.n_assessed if self.n_assessed else nan

    @property
    def judged_per_topic(self) -> float:
        return self.n_judgments / self.n_assessed if self.n_assessed else nan

    @property
    def prevalence(self) -> float:
        return self.n_relevant / self.n_judgments if self.n_judgments else nan

    @property
    def histogram(self) -> dict[int, int]:
        """How many assessed topics have so many relevant documents."""
        numbers, counts = np.unique(self.relevant[self.judged > 0], return_counts=True)
        return dict(zip(numbers.tolist(), counts.tolist(), strict=True))

    def record(self) -> dict[str, Any]:
        """As `--json` prints it."""
        values = {
            "n_topics": self.n_topics,
            "n_assessed": self.n_assessed,
            "n_with_relevant": self.n_with_relevant,
            "n_judgments": self.n_judgments,
            "n_relevant": self.n_relevant,
            "mean_relevant": self.mean_relevant,
            "mean_relevant_with_target": self.mean_relevant + 1,
            "mean_relevant_of_all": self.mean_relevant_of_all,
            "mean_relevant_of_all_with_target": self.mean_relevant_of_all + 1,
            "judged_per_topic": self.judged_per_topic,
            "prevalence": self.prevalence,
        }
        return {**plain_values(values), "histogram": {str(n): c for n, c in self.histogram.items()}}
