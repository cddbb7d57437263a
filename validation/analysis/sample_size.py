"""How many more items, or annotators, would distinguish two metrics.

`sample_size_records` takes seconds to minutes; a report holds it where its settings name pairs.
Its records: question, scope, by, level, coefficient, metric_a, signature_a, metric_b,
signature_b, n_items, n_annotators, delta, se, power, is_pilot (whether the number of items is
the study's own), alpha, n_studies, seed; and items_needed, the least number of items of the
curve that reaches `POWER` with that many annotators, None where none does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from presentation.records import plain_values
from stats.ceilings import Reliability, level_reliability
from stats.correlation import Level, RowCoefficient
from stats.power_curves import items_needed, sample_size_curve
from validation.analysis.material import Material
from validation.analysis.panels import Panel
from validation.analysis.records import PlanRecord
from validation.analysis.replicates import is_of_too_many
from validation.analysis.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


POWER = 0.8
TIMES_AS_MANY = (0.25, 0.5, 1, 1.5, 2, 3, 5, 10)
ANNOTATORS_MORE = (0, 1, 2)
# Used if the settings ask for no ceilings.
N_SPLITS = 20


def sample_size_records(material: Material, settings: Settings) -> Iterator[PlanRecord]:
    for of_all in material.panels(settings, scopes=("all",)):
        panel = of_all.of_primary()
        ratings = material.ratings(panel.question, settings)
        for level, coefficient in settings.planned:
            part = panel.of_systems() if level == "system" else panel
            if _is_plannable(part, level, coefficient):
                measure = (level, cast(RowCoefficient, coefficient))
                pilot = _reliability(ratings[ratings["value"].notna()], measure, settings)
                for a, b in combinations(range(len(part.metrics)), 2):
                    yield from _curve(part, a, b, measure, pilot, settings)


def _is_plannable(part: Panel, level: Level, coefficient: str) -> bool:
    too_many = is_of_too_many(level, coefficient, len(part.human))
    return not too_many and not part.repeats_cells and part.n_items > 1


def _curve(
    part: Panel,
    a: int,
    b: int,
    measure: tuple[Level, RowCoefficient],
    pilot: Reliability,
    settings: Settings,
) -> Iterator[PlanRecord]:
    level, coefficient = measure
    reliable = pilot.icc_mean > 0
    metrics = part.metrics[a], part.metrics[b]
    curve = sample_size_curve(
        part.human,
        part.scores[a],
        part.scores[b],
        items=part.item,
        systems=part.system,
        level=level,
        coefficient=coefficient,
        n_items=sorted({max(2, round(times * part.n_items)) for times in TIMES_AS_MANY}),
        n_annotators=[pilot.ratings_per_unit + more for more in ANNOTATORS_MORE]
        if reliable
        else (),
        reliability=pilot if reliable else None,
        alpha=settings.alpha,
        n_studies=max(2, settings.n_resamples),
        rng=settings.seed,
    )
    needed = items_needed(curve, POWER)
    least = {_key(n): items for n, items in needed.itertuples(index=False)}
    for row in curve.to_dict("records"):
        yield PlanRecord(
            **plain_values(
                {
                    "question": part.question,
                    "scope": part.scope,
                    "by": part.condition,
                    "level": level,
                    "coefficient": coefficient,
                    "metric_a": metrics[0].metric,
                    "signature_a": metrics[0].signature,
                    "metric_b": metrics[1].metric,
                    "signature_b": metrics[1].signature,
                    **{str(name): value for name, value in row.items()},
                    "n_items": int(row["n_items"]),
                    "is_pilot": int(row["n_items"]) == part.n_items,
                    "items_needed": _integer(least[_key(row["n_annotators"])]),
                    "power_wanted": POWER,
                    "alpha": settings.alpha,
                    "n_studies": max(2, settings.n_resamples),
                    "seed": settings.seed,
                }
            )
        )


def _reliability(
    ratings: pd.DataFrame, measure: tuple[Level, RowCoefficient], settings: Settings
) -> Reliability:
    level, coefficient = measure
    of_systems = level == "system"
    rows = ratings[ratings["system"] != ""] if of_systems else ratings
    return level_reliability(
        rows["item"],
        rows["system" if of_systems else "candidate"],
        rows["annotator"].astype(str),
        rows["value"],
        level=level,
        coefficient=coefficient,
        n_splits=settings.n_splits or N_SPLITS,
        rng=settings.seed,
    )


def _key(n_annotators: float) -> float | None:
    return None if isnan(n_annotators) else float(n_annotators)


def _integer(number: Any) -> int | None:
    import pandas as pd

    return None if number is None or number is pd.NA or np.isnan(number) else int(number)
