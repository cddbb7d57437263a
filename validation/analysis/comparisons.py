"""Every two metrics of a question tested against each other, and the ranks that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan, nan
from typing import TYPE_CHECKING, Any, cast

from presentation.records import plain_values
from stats.correlation import Coefficient
from stats.significance import (
    Test,
    Undecided,
    benjamini_hochberg,
    compare_metrics,
    holm,
    significance_clusters,
)
from stats.significance.difference_limits import DifferenceLimits, difference_limits
from stats.significance.resampled import ESTIMANDS
from validation.analysis.correlations import MetricAgreement
from validation.analysis.item_swaps import item_swap_p_values
from validation.analysis.new_systems import difference_for_new_systems
from validation.analysis.panels import Panel
from validation.analysis.records import ComparisonRecord
from validation.analysis.replicates import JOINT, is_of_too_many
from validation.analysis.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


NO_RESAMPLES = "no_resamples"
NO_SUCH_TEST = "no_such_test"
TOO_MANY = "too_many_cells"


@dataclass(frozen=True, kw_only=True)
class PairTest:
    """Two metrics at one level: how much better the first agrees with human ratings, and the doubt.

    `delta` and its interval come from what the settings resample; `p` from the test named, and
    `p_holm` and `p_bh` are adjusted for all pairs of the question, condition, level and
    coefficient.
    """

    question: str
    scope: str
    by: str
    level: str
    coefficient: str
    metric_a: str
    signature_a: str
    metric_b: str
    signature_b: str
    value_a: float
    value_b: float
    delta: float
    ci_low: float
    ci_high: float
    estimand: str
    test: str
    p: float
    p_holm: float = nan
    p_bh: float = nan
    n_draws: int = 0
    seed: int | None = None
    reason: str | None = None
    new_systems_low: float = nan
    new_systems_high: float = nan
    new_systems_p: float = nan
    new_systems_p_holm: float = nan
    new_systems_reason: str | None = None

    def record(self) -> ComparisonRecord:
        return ComparisonRecord(**plain_values(vars(self)))


def pair_tests(
    rows: Sequence[MetricAgreement], panel: Panel | None, settings: Settings
) -> tuple[list[PairTest], list[int | None]]:
    """The tests of rows of one question, condition, level and coefficient, and the rows' ranks.

    `panel` is what the rows were computed from; a mean over conditions has none.
    """
    if len(rows) < 2:
        return [], [1 if row.correlation.is_defined else None for row in rows]
    tested = list(_tested(rows, panel, settings))
    p = [pair.p for pair in tested]
    of_new = holm([pair.new_systems_p for pair in tested])
    tests = [
        replace(t, p_holm=float(h), p_bh=float(b), new_systems_p_holm=float(n))
        for t, h, b, n in zip(tested, holm(p), benjamini_hochberg(p), of_new, strict=True)
    ]
    return tests, _ranks(rows, tests, settings)


def _ranks(
    rows: Sequence[MetricAgreement], tests: Sequence[PairTest], settings: Settings
) -> list[int | None]:
    names = [str(number) for number in range(len(rows))]
    p = {pair: test.p_holm for pair, test in zip(combinations(names, 2), tests, strict=True)}
    values = {name: row.correlation.value for name, row in zip(names, rows, strict=True)}
    ranks = significance_clusters(values, p, alpha=settings.alpha)
    return [int(ranks[name]) if name in ranks else None for name in names]


def _tested(
    rows: Sequence[MetricAgreement], panel: Panel | None, settings: Settings
) -> Iterator[PairTest]:
    test = test_of(rows[0], panel, settings)
    p_values = _p_values(rows, panel, settings, test)
    for (number, a), (other, b) in combinations(enumerate(rows), 2):
        delta = a.correlation.value - b.correlation.value
        limits = _difference_limits(a, b, settings)
        yield PairTest(
            question=a.question,
            scope=a.scope,
            by=a.condition,
            level=a.correlation.level,
            coefficient=a.correlation.coefficient,
            metric_a=a.metric,
            signature_a=a.signature,
            metric_b=b.metric,
            signature_b=b.signature,
            value_a=a.correlation.value,
            value_b=b.correlation.value,
            delta=delta,
            ci_low=limits.low,
            ci_high=limits.high,
            estimand=ESTIMANDS[settings.resample],
            test=test,
            **p_values[number, other],
            **_for_new_systems(a, b, settings),
        )


def _for_new_systems(a: MetricAgreement, b: MetricAgreement, settings: Settings) -> dict[str, Any]:
    """What stands beside a difference for these systems; nothing where it is of new ones."""
    if settings.resample != "items":
        return {}
    drawn = without = None
    if a.replicates is not None and b.replicates is not None:
        drawn = a.replicates - b.replicates
    if a.without_systems is not None and b.without_systems is not None:
        without = a.without_systems - b.without_systems
    limits = difference_for_new_systems(
        a.correlation.value - b.correlation.value,
        drawn,
        without,
        _fewer(a.correlation.n_units, b.correlation.n_units),
        settings.confidence,
    )
    return {
        "new_systems_low": limits.low,
        "new_systems_high": limits.high,
        "new_systems_p": limits.p,
        "new_systems_reason": None if limits.reason is None else str(limits.reason),
    }


def _difference_limits(
    a: MetricAgreement, b: MetricAgreement, settings: Settings
) -> DifferenceLimits:
    drawn = None
    if a.replicates is not None and b.replicates is not None:
        drawn = a.replicates - b.replicates
    counts = [one.correlation.n_systems or 0 for one in (a, b)]
    return difference_limits(
        a.correlation.value - b.correlation.value,
        drawn,
        settings.resample,
        min(counts),
        settings.confidence,
        n_units=_fewer(a.correlation.n_units, b.correlation.n_units),
    )


def _fewer(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def test_of(row: MetricAgreement, panel: Panel | None, settings: Settings) -> str:
    """The test that fits a row, where the settings leave it open or name one that does not."""
    correlation = row.correlation
    if panel is None or settings.test in ("auto", "paired_bootstrap"):
        return "paired_bootstrap"
    if settings.test == "williams" and (
        correlation.level == "item" or correlation.coefficient != "pearson"
    ):
        return "perm_both"
    return settings.test


def _p_values(
    rows: Sequence[MetricAgreement], panel: Panel | None, settings: Settings, test: str
) -> dict[tuple[int, int], dict[str, Any]]:
    pairs = list(combinations(range(len(rows)), 2))
    if panel is None or test == "paired_bootstrap":
        return {(a, b): _by_bootstrap(rows[a], rows[b], panel, settings) for a, b in pairs}
    coefficient = rows[0].correlation.coefficient
    by_swaps = test == "perm_items" and rows[0].correlation.level == "item"
    if by_swaps and coefficient != "acc_star":
        p = item_swap_p_values(panel, coefficient, settings)
        return {pair: _decided(p[pair], settings, panel) for pair in pairs}
    return {(a, b): _compared(panel, a, b, rows[a], test, settings) for a, b in pairs}


def _by_bootstrap(
    a: MetricAgreement, b: MetricAgreement, panel: Panel | None, settings: Settings
) -> dict[str, Any]:
    if not (a.correlation.is_defined and b.correlation.is_defined):
        return {"p": nan, "reason": str(Undecided.UNDEFINED)}
    if a.replicates is None or b.replicates is None:
        return {"p": nan, "reason": _reason_without_replicates(a, settings)}
    limits = _difference_limits(a, b, settings)
    if limits.reason is not None:
        return {"p": nan, "reason": str(limits.reason)}
    seed = panel.draws_seed(settings.seed) if panel else settings.seed
    return {"p": limits.p, "n_draws": len(a.replicates), "seed": seed}


def _reason_without_replicates(row: MetricAgreement, settings: Settings) -> str:
    """Why a defined correlation has no replicates to compare with another's."""
    correlation = row.correlation
    if not settings.n_resamples:
        return NO_RESAMPLES
    if correlation.coefficient not in JOINT:
        return NO_SUCH_TEST
    if is_of_too_many(correlation.level, correlation.coefficient, row.coverage.n_candidates):
        return TOO_MANY
    return str(Undecided.TOO_FEW)


def _decided(p: float, settings: Settings, panel: Panel) -> dict[str, Any]:
    if isnan(p):
        return {"p": nan, "reason": str(Undecided.UNDEFINED)}
    return {"p": p, "n_draws": settings.n_permutations, "seed": settings.seed + panel.number}


def _compared(
    panel: Panel, a: int, b: int, row: MetricAgreement, test: str, settings: Settings
) -> dict[str, Any]:
    """The test of `stats.significance`, on the candidates that both metrics scored."""
    level = row.correlation.level
    coefficient = cast(Coefficient, row.correlation.coefficient)
    if coefficient == "acc_star" and level == "pooled":
        return {"p": nan, "reason": NO_SUCH_TEST}
    part = panel.of_systems() if level == "system" else panel
    several = part.repeats_cells
    if several and test == "perm_systems":
        return {"p": nan, "reason": str(Undecided.TOO_FEW)}
    tests: pd.DataFrame = compare_metrics(
        part.human,
        {"a": part.scores[a], "b": part.scores[b]},
        level=level,
        coefficient=coefficient,
        items=None if several and level == "system" else part.item,
        systems=None if several and level != "system" else part.system,
        test=cast(Test, test),
        undefined=settings.undefined,
        n_permutations=settings.n_permutations,
        rng=settings.seed + panel.number,
    )
    [one] = tests.to_dict("records")
    return {
        "p": float(one["p"]),
        "n_draws": int(one["n_permutations"]),
        "seed": one["seed"],
        "reason": None if one["reason"] is None else str(one["reason"]),
    }
