"""What a report of these very systems says of new systems of their kind, without further draws.

The variance is that of the draws of items and, added to it, the jackknife's over systems: each
left out in turn. Adding them counts the noise of single candidates twice, which is on the safe
side, as drawing items and systems together is.
"""

from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from stats.arguments import Floats, Integers, sum_by
from stats.correlation import Correlation, Level
from stats.correlation.coefficients import correlate_groups, row_values, with_policy
from stats.correlation.influence import z_t_limits
from stats.correlation.result import LEAST_SYSTEMS_FOR_INTERVAL
from stats.significance import Undecided
from stats.significance.resampled import LEAST_SYSTEMS_FOR_P
from validation.analysis.panels import Panel
from validation.analysis.replicates import JOINT, is_of_too_many
from validation.analysis.settings import Settings

# With more, drawing items and systems together is cheaper.
MOST_SYSTEMS = 200


@dataclass(frozen=True)
class NewSystems:
    low: float = nan
    high: float = nan
    p: float = nan
    reason: Undecided | None = None


def values_without_systems(panel: Panel, level: Level, settings: Settings) -> dict[str, Floats]:
    part = panel.of_systems()
    n_systems = int(part.system.max(initial=-1)) + 1
    if not LEAST_SYSTEMS_FOR_INTERVAL <= n_systems <= MOST_SYSTEMS:
        return {}
    names = [
        name
        for name in settings.coefficients
        if name in JOINT and not is_of_too_many(level, name, len(part.human))
    ]
    return {
        name: np.array([_without_each(part, row, level, name, settings) for row in part.scores])
        for name in names
        if len(part.scores)
    }


def _without_each(
    part: Panel, row: Floats, level: Level, coefficient: str, settings: Settings
) -> Floats:
    known = ~np.isnan(row)
    human, score = part.human[known], row[known]
    system, item = part.system[known], part.item[known]
    n_systems = int(part.system.max()) + 1
    if level == "system":
        return _of_means(human, score, system, n_systems, coefficient)
    values = np.full(n_systems, nan)
    for number in range(n_systems):
        rest = system != number
        if level == "pooled" and rest.sum() > 1:
            values[number] = row_values(human[rest][None], score[rest][None], coefficient)[0][0]
        elif level == "item":
            groups = correlate_groups(
                human[rest], score[rest], item[rest], part.n_items, coefficient
            )
            of_item = with_policy(groups, settings.undefined)
            defined = of_item[~np.isnan(of_item)]
            values[number] = defined.mean() if len(defined) else nan
    return values


def _of_means(
    human: Floats, score: Floats, system: Integers, n_systems: int, coefficient: str
) -> Floats:
    count = sum_by(system, np.ones(len(human)), n_systems)
    if (count == 0).any():
        return np.full(n_systems, nan)
    rest = ~np.eye(n_systems, dtype=bool)
    tables = [
        np.broadcast_to(sum_by(system, side, n_systems) / count, rest.shape)[rest]
        for side in (human, score)
    ]
    x, y = (table.reshape(n_systems, n_systems - 1) for table in tables)
    return row_values(x, y, coefficient)[0]


def correlation_limits(
    correlation: Correlation, drawn: Floats | None, without: Floats | None
) -> NewSystems:
    if "systems" in str(correlation.ci_method) or not correlation.is_defined:
        return NewSystems()
    variance, reason = _variance(drawn, without, correlation.n_units)
    if without is None or reason is not None:
        return NewSystems(reason=reason)
    value, freedom = correlation.value, len(without) - 1
    if correlation.coefficient == "acc_eq":  # from 0 to 1: on the scale of correlations and back
        low, high = z_t_limits(2 * value - 1, 4 * variance, freedom, correlation.confidence)
        low, high = (1 + low) / 2, (1 + high) / 2
    else:
        low, high = z_t_limits(value, variance, freedom, correlation.confidence)
    return NewSystems(low, high, reason=Undecided.NO_SPREAD if isnan(low) else None)


def difference_for_new_systems(
    delta: float,
    drawn: Floats | None,
    without: Floats | None,
    n_units: int | None,
    confidence: float,
) -> NewSystems:
    """Has a p value from six systems on."""
    from scipy import stats

    if isnan(delta):
        return NewSystems(reason=Undecided.UNDEFINED)
    variance, reason = _variance(drawn, without, n_units)
    if without is None or reason is not None:
        return NewSystems(reason=reason)
    if not variance > 0:
        return NewSystems(reason=Undecided.NO_SPREAD)
    freedom, se = len(without) - 1, variance**0.5
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * se
    limits = NewSystems(delta - half, delta + half)
    if len(without) < LEAST_SYSTEMS_FOR_P:
        return NewSystems(limits.low, limits.high, reason=Undecided.TOO_FEW_SYSTEMS)
    return NewSystems(limits.low, limits.high, float(2 * stats.t.sf(abs(delta) / se, freedom)))


def _variance(
    drawn: Floats | None, without: Floats | None, n_units: int | None
) -> tuple[float, Undecided | None]:
    if drawn is None:
        return nan, Undecided.NO_RESAMPLES
    if without is None:
        return nan, Undecided.TOO_FEW_SYSTEMS
    if np.isnan(without).any():
        return nan, Undecided.UNDEFINED_RESAMPLES
    count = len(without)
    of_systems = (count - 1) / count * float(np.square(without - without.mean()).sum())
    known = drawn[~np.isnan(drawn)]
    if len(known) < 2 or n_units is None or n_units < 2:
        return nan, Undecided.NO_RESAMPLES
    return of_systems + float(known.var(ddof=1)) * n_units / (n_units - 1), None
