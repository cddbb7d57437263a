"""What the ratings themselves allow a metric to reach."""

from dataclasses import dataclass
from math import isnan, nan
from typing import cast, get_args

import pandas as pd

from presentation.records import plain_values
from stats.ceilings import Ceiling, ceilings, reliability
from stats.correlation import Coefficient, Level, RowCoefficient
from validation.analysis.panels import Panel
from validation.analysis.records import CeilingRecord
from validation.analysis.settings import Settings

NO_SECOND_RATING = "no candidate has two ratings"
OF_LABELS = "the human values are labels"
NO_AGREEMENT = "the halves of the ratings do not agree"


@dataclass(frozen=True, kw_only=True)
class PanelCeiling:
    """The ceiling of one question and condition at one level, by one coefficient.

    `attainable` is what a perfect metric would reach, `leave_one_out` what one more person
    does; `icc_mean` is the reliability of the candidates' mean ratings.
    """

    question: str
    scope: str
    by: str
    level: Level
    coefficient: Coefficient
    split_half: float
    reliability: float
    attainable: float
    leave_one_out: float
    icc_single: float
    icc_mean: float
    ratings_per_candidate: float
    n_splits: int
    seed: int | None
    reason: str | None

    def share(self, value: float) -> float:
        """What share of the attainable a correlation is; NaN where nothing is attainable."""
        return value / self.attainable if self.attainable > 0 else nan

    def record(self) -> CeilingRecord:
        return CeilingRecord(**plain_values(vars(self)))


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
        )
        for level, coefficient in _measures(settings)
    ]


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
        )
    }


def _numbers(ceiling: Ceiling | None) -> dict[str, float]:
    names = ("split_half", "reliability", "attainable", "leave_one_out")
    return {name: nan if ceiling is None else getattr(ceiling, name) for name in names}


def _reason(ceiling: Ceiling | None) -> str | None:
    if ceiling is None:
        return NO_SECOND_RATING
    return NO_AGREEMENT if isnan(ceiling.attainable) else None
