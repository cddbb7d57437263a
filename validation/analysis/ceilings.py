"""What the ratings themselves allow a metric to reach."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from presentation.records import plain_values
from stats.ceilings import Ceiling, NoCeiling, ceilings, reliability
from stats.correlation import Coefficient, Level, RowCoefficient
from stats.correlation.influence import cluster_variance
from stats.correlation.item_limits import item_influences
from validation.analysis.panels import Panel
from validation.analysis.records import CeilingRecord
from validation.analysis.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


NO_SECOND_RATING = "no candidate has two ratings"
OF_LABELS = "the human values are labels"
REASONS: dict[NoCeiling, str] = {
    NoCeiling.NO_SECOND_RATING: NO_SECOND_RATING,
    NoCeiling.NO_HALVES: "half of the ratings of what is compared are all the same, or of one only",
    NoCeiling.TIED: "ratings are often equal, of which no ceiling of pairwise accuracy is known",
    NoCeiling.NO_AGREEMENT: "the halves of the ratings do not agree",
}


@dataclass(frozen=True, kw_only=True)
class PanelCeiling:
    """The ceiling of one question and condition at one level, by one coefficient.

    `attainable` is what a perfect metric would reach, `leave_one_out` what one more person
    does; `icc_mean` is the reliability of the candidates' mean ratings. `warning` is the code of
    why the ceiling is unreliable (`stats.ceilings.CeilingWarning`).
    """

    question: str
    scope: str
    by: str
    level: Level
    coefficient: Coefficient
    split_half: float
    reliability: float
    attainable: float
    attainable_low: float
    attainable_high: float
    n_units: int | None
    leave_one_out: float
    icc_single: float
    icc_mean: float
    ratings_per_candidate: float
    n_splits: int
    seed: int | None
    reason: str | None
    warning: str | None
    moved_by: pd.Series[float] | None = None

    def share(self, value: float) -> float:
        """What share of the attainable a correlation is; NaN where nothing is attainable."""
        return value / self.attainable if self.attainable > 0 else nan

    def record(self) -> CeilingRecord:
        values = {name: value for name, value in vars(self).items() if name != "moved_by"}
        return CeilingRecord(**plain_values(values))


def panel_ceilings(panel: Panel, ratings: pd.DataFrame, settings: Settings) -> list[PanelCeiling]:
    """The ceilings of a panel, from the ratings its human values are made of."""
    rows = ratings if panel.scope == "all" else ratings[ratings["condition"] == panel.condition]
    rows = rows[rows["value"].notna()]
    if panel.is_labelled:
        return [_none(panel, level, coefficient) for level, coefficient in _measures(settings)]
    units = reliability(rows["candidate_code"], rows["value"])
    several = bool(rows["candidate_code"].duplicated().any())
    measured = _measured(rows, settings) if several else {}
    return [
        PanelCeiling(
            question=panel.question,
            scope=panel.scope,
            by=panel.condition,
            level=level,
            coefficient=coefficient,
            **_numbers(measured.get((level, coefficient))),
            icc_single=units.icc_single,
            icc_mean=units.icc_mean,
            ratings_per_candidate=units.ratings_per_unit,
            n_splits=settings.n_splits if several else 0,
            seed=settings.seed if several else None,
            reason=_reason(measured.get((level, coefficient))),
            warning=_warning(measured.get((level, coefficient))),
        )
        for level, coefficient in _measures(settings)
    ]


def share_limits(
    panel: Panel, number: int, value: float, ceiling: PanelCeiling, confidence: float
) -> tuple[float, float]:
    """The interval of a share of the ceiling, whose two sides rest on the same items."""
    import pandas as pd
    from scipy import stats

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
    half = float(stats.t.ppf((1 + confidence) / 2, n_units - 1)) * variance**0.5
    return share - half, share + half


def _none(panel: Panel, level: Level, coefficient: RowCoefficient) -> PanelCeiling:
    """Labels are not means of the ratings whose reliability is known."""
    return PanelCeiling(
        question=panel.question,
        scope=panel.scope,
        by=panel.condition,
        level=level,
        coefficient=coefficient,
        **_numbers(None),
        icc_single=nan,
        icc_mean=nan,
        ratings_per_candidate=nan,
        n_splits=0,
        seed=None,
        reason=OF_LABELS,
        warning=None,
    )


def _measures(settings: Settings) -> list[tuple[Level, RowCoefficient]]:
    """Those that a ceiling can be found of."""
    return [
        (level, cast(RowCoefficient, coefficient))
        for level, coefficient in settings.measures()
        if settings.n_splits and coefficient in get_args(RowCoefficient)
    ]


def _measured(rows: pd.DataFrame, settings: Settings) -> dict[tuple[str, str], Ceiling]:
    """The system level is of candidates of a system; the others are of candidates."""
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
    return numbers | {
        "n_units": ceiling.n_units if ceiling is not None and of_items else None,
        "moved_by": None if ceiling is None else ceiling.moved_by,
    }


def _reason(ceiling: Ceiling | None) -> str | None:
    if ceiling is None:
        return NO_SECOND_RATING
    return None if ceiling.reason is None else REASONS[ceiling.reason]


def _warning(ceiling: Ceiling | None) -> str | None:
    if ceiling is None or ceiling.warning is None:
        return None
    return str(ceiling.warning)
