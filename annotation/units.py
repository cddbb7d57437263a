"""The judgments of one question as the columns that `stats` takes, and comparisons as wins.

The unit is a candidate of an item. Candidates of one item were judged on one page, so
intervals take the item as a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, cast

import numpy as np

from annotation.exceptions import StudyUnfit, require
from annotation.frames import judgment_frame
from annotation.models import Question, Study
from presentation.numbers import group_values
from stats.aggregation.bradley_terry import bradley_terry
from stats.aggregation.result import Aggregation
from stats.agreement import (
    Agreement,
    coefficients_at_level,
    item_agreement,
    krippendorff_alpha,
    pairwise_kappa,
)
from stats.libraries import pd

NOUNS = {"clusters of items": "items", "clusters": "items", "items": "candidates"}
WORDS = re.compile(r"\b(clusters of items|clusters|items)\b")
Level = Literal["nominal", "ordinal", "interval", "ratio"]
MOST_STEPS = 1000
# Distances between more different ratios than these are not tabled; differences stand in.
MOST_RATIOS = 4000
# Kappa is left out where equality of two ratings means little.
KAPPA_WEIGHTS: dict[str, Literal["linear"] | None] = {"nominal": None, "ordinal": "linear"}


@dataclass(frozen=True)
class JudgedUnits:
    """A row a judgment: the unit it is of, who made it, its value and the unit's item."""

    frame: pd.DataFrame
    units: pd.Series[int]
    level: Level
    categories: Sequence[float] | None

    @cached_property
    def annotators(self) -> list[str]:
        return [str(name) for name in self.frame["annotator"]]

    @property
    def values(self) -> pd.Series[float]:
        return self.frame["value"]

    @cached_property
    def clusters(self) -> list[str]:
        return [str(key) for key in cluster_of(self.frame)]

    def coefficients(self) -> tuple[Agreement, ...]:
        coefficients = coefficients_at_level(
            self.units,
            self.annotators,
            self.values,
            level=self.level,
            clusters=self.clusters,
            categories=self.categories,
        )
        if (self.frame["candidate"] == "").all():  # one choice of each item
            return coefficients
        return tuple(replace(one, warnings=_of_candidates(one.warnings)) for one in coefficients)

    def set_alpha(self) -> Agreement:
        pages = zip(self.clusters, self.annotators, strict=True)
        ticks = zip(self.frame["candidate"].astype(str), self.values, strict=True)
        pools = group_values(zip(pages, ticks, strict=True))
        chosen = [{name for name, value in pool if value > 0} for pool in pools.values()]
        items, annotators = [item for item, _ in pools], [annotator for _, annotator in pools]
        alpha = krippendorff_alpha(items, annotators, chosen, level="set")
        return replace(alpha, name="krippendorff_alpha_masi")

    def agreements(self) -> pd.Series[float]:
        level = self.level
        if level == "ratio" and self.values.nunique() > MOST_RATIOS:
            level = "interval"
        return item_agreement(self.units, self.annotators, self.values, level=level).set_index(
            "item"
        )["agreement"]

    def pairs(self) -> pd.DataFrame:
        if self.level not in KAPPA_WEIGHTS:
            return pd.DataFrame()
        return pairwise_kappa(
            self.units,
            self.annotators,
            self.values,
            weights=KAPPA_WEIGHTS[self.level],
            categories=self.categories,
        )

    @property
    def keys(self) -> pd.DataFrame:
        keys = self.frame[["item", "candidate"]].astype(str).assign(unit=self.units)
        return keys.drop_duplicates("unit").set_index("unit")


def cluster_of(frame: pd.DataFrame) -> pd.Series[str]:
    """What judgments depend on each other by: the item, or of a pair the item it is drawn from."""
    return frame["cluster" if "cluster" in frame else "item"]


def _of_candidates(warnings: Sequence[str]) -> tuple[str, ...]:
    return tuple(WORDS.sub(lambda found: NOUNS[found[0]], text) for text in warnings)


def judged_units(question: Question, frame: pd.DataFrame) -> JudgedUnits:
    rows = frame[frame["question"] == question.name]
    if question.is_one_choice:
        rows = chosen_candidates(rows)
        units = rows.groupby("item", observed=True, sort=False).ngroup()
        return JudgedUnits(rows, units, "nominal", None)
    units = rows.groupby(["item", "candidate"], observed=True, sort=False).ngroup()
    return JudgedUnits(
        rows, units, cast(Level, question.level), categories_of(question, rows["value"])
    )


def chosen_candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """A preference as the one choice that it is: a row for each annotator and item, whose value
    names the preferred system, or the candidate where it has no system; -1 is a tie."""
    systems, keys = rows["system"].astype(str), rows["candidate"].astype(str)
    names = systems.where(systems != "", keys)
    codes = {name: float(code) for code, name in enumerate(sorted(set(names)))}
    chosen = rows.assign(
        value=names.map(codes).where(rows["value"] == 1, -1.0), candidate="", system=""
    )
    chosen = chosen.sort_values("value", ascending=False, kind="stable")
    return chosen.drop_duplicates(["round", "item", "annotator"]).sort_index()


def categories_of(question: Question, values: pd.Series[float]) -> list[float] | None:
    """All values a scale has, also those without a judgment; None where they cannot be counted."""
    if question.level == "nominal" and question.categories:
        return [float(index) for index in range(len(question.categories))]
    if question.level != "ordinal":
        return None
    steps = np.arange(question.scale_min, question.highest + 1)
    counted = len(steps) <= MOST_STEPS and values.isin(steps).all()
    return [float(step) for step in steps] if counted else None


COMPARED = ("preference", "best_worst", "ranking")
# What two equal values of a kind say: that neither is better, or nothing about the two.
TIED_AT = {"preference": (0.5,), "best_worst": ()}

# Winner, loser, and how much it counts.
Win = tuple[str, str, float]
COLUMNS = ["winner", "loser", "weight", "judgment", "item", "annotator"]


def wins(question: Question, frame: pd.DataFrame) -> pd.DataFrame:
    """A row a win: `winner`, `loser`, `weight`, the `judgment` that it comes from, and of what and
    by whom that is; a tie is half a win each way."""
    by_judgment = frame[frame["question"] == question.name].groupby(
        ["round", "item", "annotator"], observed=True, sort=False
    )
    return pd.DataFrame(
        [
            (*win, number, cluster_of(judged).iloc[0], annotator)
            for number, ((_round, _item, annotator), judged) in enumerate(by_judgment)
            for win in _wins_in(question.kind, judged)
        ],
        columns=COLUMNS,
    )


def _wins_in(kind: str, judged: pd.DataFrame) -> Iterator[Win]:
    systems, keys = judged["system"].astype(str), judged["candidate"].astype(str)
    names = systems.where(systems != "", keys)
    for (a, x), (b, y) in combinations(zip(names, judged["value"], strict=True), 2):
        if a == b:
            continue
        if x != y:
            yield (a, b, 1.0) if x > y else (b, a, 1.0)
        elif kind not in TIED_AT or x in TIED_AT[kind]:
            yield a, b, 0.5
            yield b, a, 0.5


def system_strengths(
    study: Study, *, question: Question, round: int = 1, smoothing: float = 0.0
) -> Aggregation:
    require(
        question.kind in COMPARED,
        StudyUnfit(
            f"Question '{question.name}' of study '{study.slug}' compares nothing. Strengths are "
            "of preferences, best-worst choices and rankings.",
            code="no_comparison",
        ),
    )
    frame = judgment_frame(study, question=question)
    table = wins(question, frame[frame["round"] == round])
    return bradley_terry(
        table["winner"],
        table["loser"],
        weights=table["weight"],
        judgments=table["judgment"],
        items=table["item"],
        annotators=table["annotator"],
        smoothing=smoothing,
    )
