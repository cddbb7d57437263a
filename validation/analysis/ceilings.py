from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import isnan, nan
from typing import Any, cast, get_args

from presentation.numbers import plain_values
from stats.ceilings import Ceiling, NoCeiling, Reliability, ceilings, level_reliability, reliability
from stats.correlation import Level, RowCoefficient
from stats.correlation.influence import cluster_variance
from stats.correlation.item_limits import item_influences
from stats.libraries import np, pd, scipy
from stats.power_curves import items_needed, sample_size_curve
from validation.analysis.material import Material
from validation.analysis.records import CeilingRecord, PlanRecord
from validation.analysis.replicates import is_of_too_many
from validation.analysis.settings import Panel, Settings

NO_SECOND_RATING = "no candidate has two ratings"
OF_LABELS = "the human values are labels"
# The stored record and the ceiling that it was made of; None if there is none.
PanelCeiling = tuple[CeilingRecord, Ceiling | None]
REASONS: dict[NoCeiling | None, str] = {
    NoCeiling.NO_SECOND_RATING: NO_SECOND_RATING,
    NoCeiling.NO_HALVES: "half of the ratings of what is compared are all the same, or of one only",
    NoCeiling.TIED: "ratings are often equal, of which no ceiling of pairwise accuracy is known",
    NoCeiling.NO_AGREEMENT: "the halves of the ratings do not agree",
}


def panel_ceilings(panel: Panel, ratings: pd.DataFrame, settings: Settings) -> list[PanelCeiling]:
    """The ceilings of one question and condition at each level, by each coefficient.

    `attainable` is what a perfect metric would reach, `leave_one_out` what one more person
    does; `icc_mean` is the reliability of the candidates' mean ratings. `warning` is the code of
    why the ceiling is unreliable (`stats.ceilings.CeilingWarning`). Of labels there is none: they
    are not means of the ratings whose reliability is known.
    """
    rows = ratings if panel.scope == "all" else ratings[ratings["condition"] == panel.condition]
    rows = rows[rows["value"].notna()]
    several = bool(rows["candidate_code"].duplicated().any()) and not panel.is_labelled
    measured = _measured(rows, settings) if several else {}
    units = None if panel.is_labelled else reliability(rows["candidate_code"], rows["value"])
    beside = {
        "icc_single": units.icc_single if units else nan,
        "icc_mean": units.icc_mean if units else nan,
        "ratings_per_candidate": units.ratings_per_unit if units else nan,
        "n_splits": settings.n_splits if several else 0,
        "seed": settings.seed if several else None,
    }
    without = OF_LABELS if panel.is_labelled else NO_SECOND_RATING
    found = ((measure, measured.get(measure)) for measure in _measures(settings))
    return [
        (
            CeilingRecord(
                question=panel.question,
                scope=panel.scope,
                by=panel.condition,
                level=level,
                coefficient=coefficient,
                **plain_values(_numbers(ceiling) | beside),
                reason=without if ceiling is None else REASONS.get(ceiling.reason),
                warning=None if ceiling is None or not ceiling.warning else str(ceiling.warning),
            ),
            ceiling,
        )
        for (level, coefficient), ceiling in found
    ]


def share_limits(
    panel: Panel, number: int, value: float, ceiling: Ceiling, confidence: float
) -> tuple[float, float]:
    """Interval of the share of the ceiling; value and ceiling depend on the same items."""
    moved = ceiling.moved_by
    part = panel.of_systems() if ceiling.level == "system" else panel
    known = ~np.isnan(part.scores[number])
    if moved is None or isnan(value) or not ceiling.attainable > 0 or not known.any():
        return nan, nan
    item = part.item[known]
    of_item = item_influences(
        part.human[known], part.scores[number][known], item, part.system[known],
        ceiling.level, str(ceiling.coefficient),
    )  # fmt: skip
    names = part.candidates["item"].astype(str).to_numpy()
    order = pd.Series(names[known]).groupby(item).first()
    own = pd.Series(of_item[order.index], index=order.to_numpy())
    both = pd.DataFrame({"metric": own, "ceiling": moved.rename(index=str)}).fillna(0.0)
    share = ceiling.share(value)
    total = (both["metric"] - share * both["ceiling"]) / ceiling.attainable
    clusters = pd.Series(part.units, index=names)
    unit = clusters[~clusters.index.duplicated()].reindex(both.index)
    total = total[unit.notna().to_numpy()]
    code = unit.dropna().to_numpy(dtype=np.intp)
    n_units = len(np.unique(code))
    variance = cluster_variance(total.to_numpy(), code)
    if n_units < 2 or not variance > 0:
        return nan, nan
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n_units - 1)) * variance**0.5
    return share - half, share + half


def _measures(settings: Settings) -> list[tuple[Level, RowCoefficient]]:
    return [
        (level, cast(RowCoefficient, coefficient))
        for level, coefficient in settings.measures()
        if settings.n_splits and coefficient in get_args(RowCoefficient)
    ]


def _measured(rows: pd.DataFrame, settings: Settings) -> dict[tuple[str, str], Ceiling]:
    of_systems = [one for one in _measures(settings) if one[0] == "system"]
    of_candidates = [one for one in _measures(settings) if one[0] != "system"]
    named = ((rows[rows["system"] != ""], "system", of_systems), (rows, "candidate", of_candidates))
    return {
        (one.level, one.coefficient): one
        for part, column, measures in named
        if measures
        for one in ceilings(
            part["item"],
            part[column],
            part["annotator"].astype(str),
            part["value"],
            measures=measures,
            n_splits=settings.n_splits,
            rng=settings.seed,
            clusters=part["cluster"] if settings.cluster else None,
            confidence=settings.confidence,
        )
    }


def _numbers(ceiling: Ceiling | None) -> dict[str, Any]:
    names = ("split_half", "reliability", "attainable", "attainable_low", "attainable_high")
    numbers = {
        name: nan if ceiling is None else getattr(ceiling, name)
        for name in (*names, "leave_one_out")
    }
    of_items = ceiling is not None and not isnan(ceiling.attainable_low)
    return numbers | {"n_units": ceiling.n_units if ceiling is not None and of_items else None}


POWER = 0.8
TIMES_AS_MANY = (0.25, 0.5, 1, 1.5, 2, 3, 5, 10)
ANNOTATORS_MORE = (0, 1, 2)
# Used if the settings ask for no ceilings.
N_SPLITS = 20


def sample_size_records(material: Material, settings: Settings) -> Iterator[PlanRecord]:
    """How many more items or annotators would distinguish two metrics; takes seconds to minutes.

    `is_pilot` marks the study's own number of items; `items_needed` is the least number of items of
    the curve that reaches `POWER` with that many annotators, None if none does.
    """
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
    least = {_key(n): items for n, items in items_needed(curve, POWER).itertuples(index=False)}
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
    return None if number is None or number is pd.NA or np.isnan(number) else int(number)
