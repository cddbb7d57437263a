from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from math import floor, isinf, prod
from pathlib import Path
from typing import Any, get_args

import numpy as np
from django.utils.translation import gettext as _, ngettext

from annotation.readers.drafts import ReadingReport
from annotation.readers.rows import Row
from error_codes import CodedText
from presentation.documents import Cell, Number
from presentation.numbers import count_of, plain_values
from presentation.text_tables import text_table
from retrieval.exceptions import TrecFileFaults
from retrieval.text_lines import each_table_row, take_rows
from stats.arguments import Floats
from stats.inference.agreement_sizes import items_for_kappa_width
from stats.inference.correlation_sizes import (
    DESCRIPTIONS,
    Method,
    items_for_metric_pair,
    items_for_power,
    metric_pair_power,
    power_for_correlation,
)
from stats.inference.effect_sizes import LARGEST_D, d_of_correlation, effect_of_d
from stats.inference.generalisability import Generalisability, Plan, generalisability
from stats.inference.sample_sizes import (
    difference_power,
    items_for_difference,
    systems_power,
    topics_for_systems,
    topics_for_width,
    whole_items,
)

NAMES = {str(method): text for method, text in DESCRIPTIONS.items()}
NAMES["gpower"] = "G*Power, whose null has the first correlation"


@dataclass(frozen=True)
class Size:
    """How many are needed, rounded up.

    `power` is that of `n` items, None where a width was asked for; `rounded` that of one fewer,
    where rounding to the nearest would have given that; `variants` holds n by each other method.
    """

    n: int
    n_exact: float
    quantity: str
    method: str
    assumptions: dict[str, Any]
    power: float | None = None
    rounded: dict[str, Any] | None = None
    variants: dict[str, int] = field(default_factory=dict)
    effect: dict[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        return vars(self)

    def lines(self) -> Iterator[str]:
        stated = ", ".join(_stated(name, value) for name, value in self.assumptions.items())
        of_power = "" if self.power is None else f", which have power {_digits(self.power)}"
        yield f"{self.n} {self.quantity}{of_power} ({self.method}; {stated})."
        if self.rounded:
            n, power = self.rounded["n"], self.rounded["power"]
            yield (
                f"Exactly {self.n_exact:.2f}: rounded to the nearest, {n} have power "
                f"{_digits(power)}, below what was asked for."
            )
        for method, n in self.variants.items():
            yield f"By {NAMES[method]}: {n}."
        if self.effect:
            named = ", ".join(f"{name} {value:.3f}" for name, value in self.effect.items())
            yield f"The same effect as {named}."


def topics_for_correlation(
    rho: float, *, power: float, alpha: float, method: Method = "cohen", one_sided: bool = False
) -> Size:
    exact = items_for_power(rho, method=method, power=power, alpha=alpha, one_sided=one_sided)
    if isinf(exact):
        raise ValueError(f"a correlation of {rho} takes more than a thousand million items")
    n = whole_items(exact)
    sided = {"alpha": alpha, "one_sided": one_sided}
    reached = power_for_correlation(rho, n, method=method, alpha=alpha, one_sided=one_sided)
    nearest, rounded = floor(exact + 0.5), None
    if 3 < nearest < n:
        of_nearest = power_for_correlation(
            rho, nearest, method=method, alpha=alpha, one_sided=one_sided
        )
        rounded = {"n": nearest, "power": of_nearest}
    variants = {
        other: whole_items(
            items_for_power(rho, method=other, power=power, alpha=alpha, one_sided=one_sided)
        )
        for other in get_args(Method)
        if other != method
    }
    d = d_of_correlation(rho)
    # Beyond, the effect's other forms have no number: d of a correlation of .9999 is 141.
    effect = vars(effect_of_d(d)).copy() if abs(d) <= LARGEST_D else {}
    return Size(
        n=n,
        n_exact=exact,
        quantity="items distinguish the correlation from 0",
        method=DESCRIPTIONS[method],
        assumptions={"rho": rho, "power": power, **sided},
        power=reached,
        rounded=rounded,
        variants=variants,
        effect={n: effect[n] for n in ("d", "odds_ratio", "probability") if n in effect},
    )


def items_for_metrics(
    first: float,
    second: float,
    between: float,
    *,
    power: float,
    alpha: float,
    one_sided: bool = False,
) -> Size:
    sided = {"alpha": alpha, "one_sided": one_sided}
    exact = items_for_metric_pair(
        first, second, between, power=power, alpha=alpha, one_sided=one_sided
    )
    of_gpower = items_for_metric_pair(
        first, second, between, power=power, alpha=alpha, one_sided=one_sided, null="first"
    )
    n = whole_items(exact)
    return Size(
        n=n,
        n_exact=exact,
        quantity="independent items distinguish the two metrics",
        method="Steiger's test of two correlations with the same ratings",
        assumptions={"first": first, "second": second, "between": between, "power": power, **sided},
        power=metric_pair_power(first, second, between, n, alpha=alpha, one_sided=one_sided),
        variants={"gpower": whole_items(of_gpower)},
    )


def targets_for_kappa(
    kappa: float,
    *,
    width: float,
    prevalence: float,
    confidence: float,
    per_target: float = 1.0,
    icc: float = 0.0,
) -> Size:
    exact = items_for_kappa_width(kappa, width, prevalence=prevalence, confidence=confidence)
    assumptions = {"kappa": kappa, "width": width, "prevalence": prevalence}
    assumptions |= {"confidence": confidence}
    if per_target > 1:
        assumptions |= {"per_target": per_target, "icc": icc}
    return Size(
        n=whole_items(exact, per_cluster=per_target, icc=icc),
        n_exact=exact,
        quantity="candidates judged twice give kappa's interval that width",
        method="Fleiss, Cohen and Everitt's variance",
        assumptions=assumptions,
    )


def topics_for_difference(difference: float, sd: float, *, power: float, alpha: float) -> Size:
    exact = items_for_difference(difference, sd, power=power, alpha=alpha)
    n = whole_items(exact)
    return Size(
        n=n,
        n_exact=exact,
        quantity="topics distinguish the two systems",
        method="Student's paired t, sd of topics' differences",
        assumptions={"difference": difference, "sd": sd, "power": power, "alpha": alpha},
        power=difference_power(difference, sd, n, alpha=alpha),
    )


def topics_for_several(
    difference: float, sd: float, n_systems: int, *, power: float, alpha: float
) -> Size:
    n = topics_for_systems(difference, sd, n_systems, power=power, alpha=alpha)
    stated = {"difference": difference, "sd": sd, "systems": n_systems}
    return Size(
        n=n,
        n_exact=float(n),
        quantity="topics distinguish the systems",
        method="one-way analysis of variance, after Sakai, sd within a system",
        assumptions=stated | {"power": power, "alpha": alpha},
        power=systems_power(difference, sd, n_systems, n, alpha=alpha),
    )


def topics_for_interval(width: float, sd: float, *, confidence: float) -> Size:
    exact = topics_for_width(width, sd, confidence=confidence)
    return Size(
        n=whole_items(exact),
        n_exact=exact,
        quantity="topics give the interval that width, on average",
        method="Student's t, after Sakai",
        assumptions={"width": width, "sd": sd, "confidence": confidence},
    )


def _digits(power: float) -> str:
    return f"{power:.4f}".removeprefix("0")


def _stated(name: str, value: object) -> str:
    if name == "one_sided":
        return "one-sided" if value else "two-sided"
    return f"{name.replace('_', ' ')} {value}"


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
                yield _("the component {name} is {value}, below 0, and counts as 0").format(
                    name=name, value=f"{value:.3g}"
                )
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
    return EqualCost(
        pilot=pilot,
        budget=budget,
        topic_cost=topic_cost,
        confidence=confidence,
        seed=seed,
        result=generalisability(pilot.values, plans, confidence=confidence, rng=seed),
    )


def read_pilot(path: Path, *, report: ReadingReport | None = None) -> Pilot:
    cells: dict[tuple[str, ...], float] = {}
    facets = list(COLUMNS[:2])

    def take(row: Row) -> None:
        if not cells and "assessor" in row.fields:
            facets[:] = COLUMNS[:3]
        key = tuple(row.required(name) for name in facets)
        value = row.number("value")
        if key in cells:
            text = _("{names} has a value already. Keep one of the two.")
            raise row.refuse(text.format(names=", ".join(key)), code="twice")
        cells[key] = value

    take_rows(
        path,
        TrecFileFaults,
        each_table_row(path, TrecFileFaults, (*facets, "value"), report=report),
        take,
    )
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
    raise TrecFileFaults.of_one(path, text.format(n=f"{n:,}", named=named), "incomplete")


def _few(name: str, n: int) -> str:
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
