"""A validation's content as tables and figures ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Record = Mapping[str, Any]
ALL, CONDITION, MEAN = "all", "condition", "mean_of_conditions"
# What a picture or a short table shows where a report has more: the first of these it has.
FIRST_LEVELS = ("item", "pooled", "system")
FIRST_COEFFICIENTS = ("kendall", "pearson", "spearman")


@dataclass(frozen=True)
class Content:
    """The records of a `validation.analysis.ValidationReport`, as `content()` gives them."""

    study: str
    found: Mapping[str, Any]
    chosen_level: str = ""
    chosen_coefficient: str = ""

    @property
    def settings(self) -> Record:
        settings: Record = self.found["settings"]
        return settings

    @property
    def inputs(self) -> Record:
        inputs: Record = self.found["inputs"]
        return inputs

    def records(self, kind: str, **equal: Any) -> list[Record]:
        """The records of a kind (correlations, comparisons ...) whose fields are so."""
        return [
            record
            for record in self.found.get(kind, ())
            if all(record[name] == value for name, value in equal.items())
        ]

    @cached_property
    def questions(self) -> list[str]:
        return _different(row["question"] for row in self.found["correlations"])

    @cached_property
    def conditions(self) -> list[str]:
        """Empty where the study has one condition only, or none."""
        of_one = self.records("correlations", scope=CONDITION)
        return _different(row["by"] for row in of_one)

    @cached_property
    def levels(self) -> list[str]:
        return _different(row["level"] for row in self.found["correlations"])

    @cached_property
    def coefficients(self) -> list[str]:
        return _different(row["coefficient"] for row in self.found["correlations"])

    @property
    def level(self) -> str:
        """The one that pictures and short tables show: as chosen, or the first there is."""
        if self.chosen_level:
            return self.chosen_level
        return next((level for level in FIRST_LEVELS if level in self.levels), "item")

    @property
    def coefficient(self) -> str:
        """The one that pictures and short tables show: as chosen, or the first there is."""
        if self.chosen_coefficient:
            return self.chosen_coefficient
        known: list[str] = self.coefficients or ["kendall"]
        return next((name for name in FIRST_COEFFICIENTS if name in known), known[0])

    @cached_property
    def labels(self) -> dict[tuple[str, str], str]:
        """A name for each set of scores: the metric's, numbered where it has several sets."""
        return labels_of((row["metric"], row["signature"]) for row in self.found["correlations"])

    def label(self, record: Record, side: str = "") -> str:
        """The name of a record's set of scores; `side` is "_a" or "_b" where it has two."""
        source = (record[f"metric{side}"], record[f"signature{side}"])
        return self.labels.get(source, str(source[0]))


def labels_of(sources: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A name for each metric and signature: the metric's, numbered where it has several."""
    sets = _different(sources)
    names = [metric for metric, _ in sets]
    return {
        (metric, signature): metric
        if names.count(metric) == 1
        else f"{metric} ({names[: at + 1].count(metric)})"
        for at, (metric, signature) in enumerate(sets)
    }


def _different(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
