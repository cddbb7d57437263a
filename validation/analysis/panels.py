from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stats.arguments import Floats, Integers
from stats.libraries import pd

EVERY_CONDITION = ""
Scope = Literal["all", "condition", "mean_of_conditions"]
MISSING, SCORED, UNDEFINED, UNPARSED = range(4)


@dataclass(frozen=True)
class Metric:
    """One set of scores. A variant (precision beside F, a complement) is not tested."""

    metric: str
    signature: str
    higher_is_better: bool
    is_primary: bool = True

    def record(self) -> dict[str, Any]:
        return vars(self).copy()


@dataclass(frozen=True)
class Coverage:
    n_candidates: int
    n_scored: int
    n_unscored: int
    n_undefined_scores: int
    n_unparsed: int
    n_items_of_one_score: int


@dataclass(frozen=True)
class Panel:
    """Judged candidates with a human value and, by metric, a score; NaN where there is none.

    Scores are turned so that higher is better. `item` and `system` are codes in order of
    appearance, and `system` is -1 for a candidate of no system; `number` counts the panels of a
    question, and with the seed makes each panel's own. Where `is_labelled`, human values are a
    label set's, and not made of the judgments here.
    """

    question: str
    scope: Scope
    condition: str
    number: int
    metrics: tuple[Metric, ...]
    candidates: pd.DataFrame
    item: Integers
    system: Integers
    human: Floats
    scores: Floats
    states: NDArray[np.int8]
    is_labelled: bool = False
    # The cluster of each candidate's item; all panels of a question share the codes.
    cluster: Integers | None = None

    @property
    def units(self) -> Integers:
        return self.item if self.cluster is None else self.cluster

    @property
    def n_units(self) -> int:
        return int(self.units.max(initial=-1)) + 1

    @cached_property
    def system_by_name(self) -> Integers:
        """Codes by name, the same in all conditions; "" is one more system."""
        return np.unique(self.candidates["system"].astype(str), return_inverse=True)[1]

    @cached_property
    def cluster_of_item(self) -> Integers | None:
        if self.cluster is None:
            return None
        of_item = np.zeros(self.n_items, dtype=np.intp)
        of_item[self.item] = self.cluster
        return of_item

    def draws_seed(self, seed: int) -> int:
        """Clusters are the same in every condition, and are drawn once for all of them."""
        return seed if self.cluster is not None else seed + self.number

    @property
    def n_items(self) -> int:
        return int(self.item.max(initial=-1)) + 1

    @cached_property
    def repeats_cells(self) -> bool:
        return bool(pd.DataFrame({"item": self.item, "system": self.system}).duplicated().any())

    @cached_property
    def coverages(self) -> list[Coverage]:
        return [self._coverage(number) for number in range(len(self.metrics))]

    def _coverage(self, number: int) -> Coverage:
        missing, _, undefined, unparsed = np.bincount(self.states[number], minlength=4).tolist()
        scored = int(np.count_nonzero(~np.isnan(self.scores[number])))
        of_one = self._items_of_one_score(number)
        return Coverage(len(self.human), scored, missing, undefined, unparsed, of_one)

    def _items_of_one_score(self, number: int) -> int:
        known = ~np.isnan(self.scores[number])
        by_item = pd.Series(self.scores[number][known]).groupby(self.item[known])
        spread = by_item.agg(["size", "min", "max"])
        return int(((spread["size"] > 1) & (spread["min"] == spread["max"])).sum())

    def of_systems(self) -> Panel:
        return self if (self.system >= 0).all() else self.part(self.system >= 0)

    def cells(self, number: int) -> pd.DataFrame:
        sign = 1 if self.metrics[number].higher_is_better else -1
        return pd.DataFrame({"human": self.human, "score": sign * self.scores[number]}).assign(
            **{name: self.candidates[name].to_numpy() for name in ("item", "candidate", "system")}
        )

    def of_primary(self) -> Panel:
        numbers = [number for number, metric in enumerate(self.metrics) if metric.is_primary]
        if len(numbers) == len(self.metrics):
            return self
        return replace(
            self,
            metrics=tuple(self.metrics[number] for number in numbers),
            scores=self.scores[numbers],
            states=self.states[numbers],
        )

    def part(self, chosen: NDArray[np.bool_], **named: Any) -> Panel:
        return replace(
            self,
            candidates=self.candidates[chosen],
            item=pd.factorize(self.item[chosen])[0],
            system=system_codes(self.candidates["system"][chosen]),
            human=self.human[chosen],
            scores=self.scores[:, chosen],
            states=self.states[:, chosen],
            cluster=None if self.cluster is None else self.cluster[chosen],
            **named,
        )


def system_codes(names: pd.Series[Any]) -> Integers:
    texts = names.astype(str)
    codes, _ = pd.factorize(texts.where(texts != ""))
    return codes.astype(np.intp)
