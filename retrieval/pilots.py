from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import floor, prod
from pathlib import Path
from typing import Any

import numpy as np
from django.utils.translation import gettext as _, ngettext

from annotation.exceptions import ImportRefused
from annotation.readers.report import ReadingReport
from error_codes import CodedText
from presentation.documents import Cell, Number
from presentation.numbers import count_of
from presentation.records import plain_values
from presentation.text_tables import text_table
from retrieval.exceptions import TrecFileFaults
from retrieval.text_lines import each_table_row, numbered_fault
from stats.arguments import Floats
from stats.inference.generalisability import Generalisability, Plan, generalisability

COLUMNS = ("system", "topic", "assessor", "value")
PLANNED = ("topics", "assessors", "cost", "Φ", "Eρ²", "se of a difference")
FEW = {"system": 6, "topic": 20, "assessor": 3}
MOST_ASSESSORS = 10


@dataclass(frozen=True)
class Pilot:
    path: Path
    systems: list[str]
    topics: list[str]
    assessors: list[str]
    values: Floats


@dataclass(frozen=True, kw_only=True)
class EqualCost:
    pilot: Pilot
    budget: float
    topic_cost: float
    confidence: float
    seed: int
    result: Generalisability

    @property
    def best(self) -> Plan:
        return max(self.result.plans, key=lambda plan: plan.dependability.value)

    def cost(self, plan: Plan) -> float:
        """In judgments of a topic by one assessor."""
        return plan.n_topics * (plan.n_assessors + self.topic_cost)

    def record(self) -> dict[str, Any]:
        return {
            "pilot": self.pilot.path.name,
            "levels": {name: n for name, (n, _varied) in self._levels().items()},
            "components": self.result.components,
            "budget": self.budget,
            "topic_cost": self.topic_cost,
            "plans": [self._plan(plan) for plan in self.result.plans],
            "best": self._plan(self.best),
            "confidence": self.confidence,
            "seed": self.seed,
            "notes": list(self.notes()),
            "note_codes": [getattr(note, "code", "") for note in self.notes()],
        }

    def lines(self) -> Iterator[str]:
        one = self.best
        yield (
            f"Most dependable for {self.budget:g}: {count_of(one.n_topics, 'topic')}, each judged "
            f"by {count_of(one.n_assessors, 'assessor')} (Φ {one.dependability.value:.3f})."
        )
        yield text_table(PLANNED, map(self._row, self.result.plans))
        yield from (f"Note: {note}." for note in self.notes())

    @property
    def is_at_edge(self) -> bool:
        return self.best.n_assessors == MOST_ASSESSORS

    def notes(self) -> Iterator[str]:
        if self.is_at_edge:
            yield CodedText(
                f"plans with more than {MOST_ASSESSORS} assessors were not compared, and one may "
                "be more dependable still",
                code="more_assessors",
            )
        for name, (n, is_varied) in self._levels().items():
            if is_varied and n < FEW[name]:
                yield _few(name, n).format(n=n, few=FEW[name])
        for name, value in self.result.components.items():
            if value < 0:
                text = _("the component {name} is {value}, below 0, and counts as 0")
                yield text.format(name=name, value=f"{value:.3g}")
        if not self.pilot.assessors:
            yield _(
                "the pilot names no assessors: one each is planned, and what they differ by is "
                "part of the topics"
            )

    def _levels(self) -> dict[str, tuple[int, bool]]:
        one = self.pilot
        return {
            "system": (len(one.systems), True),
            "topic": (len(one.topics), True),
            "assessor": (max(len(one.assessors), 1), bool(one.assessors)),
        }

    def _plan(self, plan: Plan) -> dict[str, Any]:
        row = asdict(plan) | {"cost": self.cost(plan)}
        for name in ("generalizability", "dependability"):
            row[name] = plain_values(row[name])
        return plain_values(row)

    def _row(self, plan: Plan) -> tuple[Cell, ...]:
        shares = (
            Number(one.value, 3, one.ci_low, one.ci_high)
            for one in (plan.dependability, plan.generalizability)
        )
        se = Number(plan.se_of_difference, 4)
        return plan.n_topics, plan.n_assessors, f"{self.cost(plan):g}", *shares, se


def plans_at_equal_cost(
    pilot: Pilot, budget: float, *, topic_cost: float = 0.0, confidence: float, seed: int
) -> EqualCost:
    """Plans for a budget in judgments of a topic by one assessor.

    A topic costs `topic_cost` besides, however many judge it (making it, pooling).
    """
    if not budget > 0 or topic_cost < 0:
        raise ValueError("budget must be positive, and topic_cost not negative")
    most = MOST_ASSESSORS if pilot.assessors else 1
    sizes = [(floor(budget / (n + topic_cost)), n) for n in range(1, most + 1)]
    if not (plans := [size for size in sizes if size[0] >= 2]):
        raise ValueError(f"a budget of {budget:g} is not enough for two topics")
    if len(pilot.systems) > 1 and not np.ptp(pilot.values, axis=0).any():
        raise ValueError("the pilot's systems have the same values: no plan can tell them apart")
    result = generalisability(pilot.values, plans, confidence=confidence, rng=seed)
    return EqualCost(
        pilot=pilot,
        budget=budget,
        topic_cost=topic_cost,
        confidence=confidence,
        seed=seed,
        result=result,
    )


def read_pilot(path: Path, *, report: ReadingReport | None = None) -> Pilot:
    cells: dict[tuple[str, ...], float] = {}
    faults: list[tuple[int | None, str]] = []
    facets: tuple[str, ...] = COLUMNS[:2]
    for row in each_table_row(path, TrecFileFaults, (*facets, "value"), report=report):
        if not cells and not faults and "assessor" in row.fields:
            facets = COLUMNS[:3]
        try:
            key = tuple(row.required(name) for name in facets)
            value = row.number("value")
            if key in cells:
                text = _("{names} has a value already. Keep one of the two.")
                raise row.refuse(text.format(names=", ".join(key)), code="twice")
        except ImportRefused as fault:
            faults.append(numbered_fault(fault))
        else:
            cells[key] = value
    if faults:
        raise TrecFileFaults(path, faults)
    levels = [sorted({key[axis] for key in cells}) for axis in range(len(facets))]
    _require_complete(path, facets, levels, cells)
    # Keys in order are the table's cells in order, for none is missing.
    values = np.array([cells[key] for key in sorted(cells)])
    shaped = values.reshape([len(each) for each in levels])
    return Pilot(path, levels[0], levels[1], levels[2] if len(levels) > 2 else [], shaped)


def _require_complete(
    path: Path,
    facets: Sequence[str],
    levels: Sequence[Sequence[str]],
    cells: dict[tuple[str, ...], float],
) -> None:
    """Refuse a pilot that lacks values, before a table is made that could be far larger."""
    if not (n := prod(len(each) for each in levels) - len(cells)):
        return
    first = next(key for key in product(*levels) if key not in cells)
    named = ", ".join(f"{name} {one}" for name, one in zip(facets, first, strict=True))
    text = ngettext(
        "it lacks {n} value, the first of {named}.", "it lacks {n} values, the first of {named}.", n
    )
    problem = CodedText(text.format(n=f"{n:,}", named=named), code="incomplete")
    raise TrecFileFaults(path, [(None, problem)])


def _few(name: str, n: int) -> str:
    """That a pilot has few of a facet, with places for both numbers."""
    texts = {
        "system": ngettext(
            "{n} system in the pilot: intervals are a rough guide below {few}",
            "{n} systems in the pilot: intervals are a rough guide below {few}",
            n,
        ),
        "topic": ngettext(
            "{n} topic in the pilot: intervals are a rough guide below {few}",
            "{n} topics in the pilot: intervals are a rough guide below {few}",
            n,
        ),
        "assessor": ngettext(
            "{n} assessor in the pilot: intervals are a rough guide below {few}",
            "{n} assessors in the pilot: intervals are a rough guide below {few}",
            n,
        ),
    }
    return texts[name]
