"""Runs from the best on, and where all above are better than all below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import fsum, isnan, nan

SIGNIFICANT = 0.05
DIGITS = 12
"""To which scores are rounded, so that the order of sums breaks no tie."""


@dataclass
class RunOrder:
    """Runs in the order of their differences from the others on the topics that two have.

    Means of runs that lack topics are of other topics, and their order may contradict every
    test. Where no run lacks one, the order is that of the means.
    """

    means: Mapping[str, float]
    deltas: dict[tuple[str, str], float] = field(default_factory=dict)
    significant: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        means: Mapping[str, float | None],
        pairs: Iterable[tuple[str, str, float | None, float | None]],
    ) -> RunOrder:
        """Of the runs' means and, for each pair, the first's mean less the second's and p."""
        order = cls({run: nan if mean is None else mean for run, mean in means.items()})
        for a, b, delta, p in pairs:
            if delta is None or isnan(delta):
                continue
            order.deltas |= {(a, b): delta, (b, a): -delta}
            if p is not None and p < SIGNIFICANT:
                order.significant |= {(a, b), (b, a)}
        return order

    @property
    def names(self) -> list[str]:
        """From the best on; a run that has no topic in common with another comes last."""
        return sorted(self.means, key=self._key)

    def _key(self, run: str) -> tuple[bool, float, bool, float, str]:
        deltas = [self.deltas[run, other] for other in self.means if (run, other) in self.deltas]
        score = round(fsum(deltas) / len(deltas), DIGITS) if deltas else 0.0
        mean = self.means[run]
        return not deltas, -score, isnan(mean), 0.0 if isnan(mean) else -mean, run

    def is_better(self, a: str, b: str) -> bool:
        """Whether a test establishes that the first is the better one."""
        return (a, b) in self.significant and self.deltas[a, b] > 0

    def groups(self) -> list[list[str]]:
        """From the best on, divided where all above are better than all below."""
        names = self.names
        groups: list[list[str]] = []
        for position, name in enumerate(names):
            above, below = names[:position], names[position:]
            if all(self.is_better(a, b) for a in above for b in below):
                groups.append([])
            groups[-1].append(name)
        return groups

    @property
    def contradicts_means(self) -> bool:
        """Whether a run comes before one whose mean over other topics is greater."""
        means = [round(self.means[run], DIGITS) for run in self.names]
        return any(first < second for first, second in pairwise(means))
