from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isnan, nan
from typing import Any, cast

import numpy as np

from presentation.numbers import plain_values
from stats.arguments import Floats
from stats.correlation import Coefficient
from stats.correlation.bootstrap import CHUNK
from stats.correlation.coefficients import correlate_groups, with_policy
from stats.significance import (
    Test,
    Undecided,
    benjamini_hochberg,
    compare_metrics,
    holm,
    significance_clusters,
)
from stats.significance.resampled import ESTIMANDS, DifferenceLimits, difference_limits
from validation.analysis.correlations import MetricAgreement, difference_for_new_systems
from validation.analysis.records import ComparisonRecord
from validation.analysis.replicates import JOINT, is_of_too_many
from validation.analysis.settings import Panel, Settings

NO_RESAMPLES = "no_resamples"
NO_SUCH_TEST = "no_such_test"
TOO_MANY = "too_many_cells"


def pair_tests(
    rows: Sequence[MetricAgreement], panel: Panel | None, settings: Settings
) -> tuple[list[ComparisonRecord], list[int | None]]:
    """The tests of rows of one question, condition, level and coefficient, and the rows' ranks.

    `delta` and its interval come from what the settings resample; `p` from the test named, and
    `p_holm` and `p_bh` are adjusted for all these pairs.
    `panel` is what the rows were computed from; a mean over conditions has none.
    """
    if len(rows) < 2:
        return [], [1 if row.correlation.is_defined else None for row in rows]
    tested = list(_tested(rows, panel, settings))
    p = [pair["p"] for pair in tested]
    adjusted = holm(p)
    of_new = holm([pair.get("new_systems_p", nan) for pair in tested])
    tests = [
        ComparisonRecord(**plain_values(values | {"p_holm": h, "p_bh": b, "new_systems_p_holm": n}))
        for values, h, b, n in zip(tested, adjusted, benjamini_hochberg(p), of_new, strict=True)
    ]
    return tests, _ranks(rows, adjusted, settings)


def _ranks(
    rows: Sequence[MetricAgreement], p_values: Floats, settings: Settings
) -> list[int | None]:
    names = [str(number) for number in range(len(rows))]
    p = dict(zip(combinations(names, 2), map(float, p_values), strict=True))
    values = {name: row.correlation.value for name, row in zip(names, rows, strict=True)}
    ranks = significance_clusters(values, p, alpha=settings.alpha)
    return [int(ranks[name]) if name in ranks else None for name in names]


def _tested(
    rows: Sequence[MetricAgreement], panel: Panel | None, settings: Settings
) -> Iterator[dict[str, Any]]:
    test = test_of(rows[0], panel, settings)
    p_values = _p_values(rows, panel, settings, test)
    for (number, a), (other, b) in combinations(enumerate(rows), 2):
        limits = _difference_limits(a, b, settings)
        yield {
            "question": a.question,
            "scope": a.scope,
            "by": a.condition,
            "level": a.correlation.level,
            "coefficient": a.correlation.coefficient,
            "metric_a": a.metric,
            "signature_a": a.signature,
            "metric_b": b.metric,
            "signature_b": b.signature,
            "value_a": a.correlation.value,
            "value_b": b.correlation.value,
            "delta": a.correlation.value - b.correlation.value,
            "ci_low": limits.low,
            "ci_high": limits.high,
            "estimand": ESTIMANDS[settings.resample],
            "test": test,
            **p_values[number, other],
            **_for_new_systems(a, b, settings),
        }


def _for_new_systems(a: MetricAgreement, b: MetricAgreement, settings: Settings) -> dict[str, Any]:
    """Limits for new systems; empty if the difference itself is for new systems."""
    if settings.resample != "items":
        return {}
    limits = difference_for_new_systems(
        a.correlation.value - b.correlation.value,
        _gap(a.replicates, b.replicates),
        _gap(a.without_systems, b.without_systems),
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
    return difference_limits(
        a.correlation.value - b.correlation.value,
        _gap(a.replicates, b.replicates),
        settings.resample,
        min(one.correlation.n_systems or 0 for one in (a, b)),
        settings.confidence,
        n_units=_fewer(a.correlation.n_units, b.correlation.n_units),
    )


def _gap(one: Floats | None, other: Floats | None) -> Floats | None:
    return None if one is None or other is None else one - other


def _fewer(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def test_of(row: MetricAgreement, panel: Panel | None, settings: Settings) -> str:
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
    level = row.correlation.level
    coefficient = cast(Coefficient, row.correlation.coefficient)
    if coefficient == "acc_star" and level == "pooled":
        return {"p": nan, "reason": NO_SUCH_TEST}
    part = panel.of_systems() if level == "system" else panel
    several = part.repeats_cells
    if several and test == "perm_systems":
        return {"p": nan, "reason": str(Undecided.TOO_FEW)}
    [one] = compare_metrics(
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
    ).to_dict("records")
    return {
        "p": float(one["p"]),
        "n_draws": int(one["n_permutations"]),
        "seed": one["seed"],
        "reason": None if one["reason"] is None else str(one["reason"]),
    }


ROUNDING = 1e-12


def item_swap_p_values(
    panel: Panel, coefficient: str, settings: Settings
) -> dict[tuple[int, int], float]:
    """Two-sided p of every two metrics, named by their numbers; NaN where there is no test.

    Swapped items swap their coefficients, so that the differences of all metrics with scores of
    the same candidates are made of the same few products. A pair with other gaps than each
    other is tested on the candidates that both scored.
    """
    gaps = np.isnan(panel.scores)
    p_values: dict[tuple[int, int], float] = {}
    for pattern in np.unique(gaps, axis=0):
        pairs = list(combinations(np.flatnonzero((gaps == pattern).all(axis=1)).tolist(), 2))
        p_values |= _swapped(panel, panel.scores, pairs, coefficient, settings)
    for a, b in combinations(range(len(panel.metrics)), 2):
        if (a, b) not in p_values:
            shared = np.where(gaps[a] | gaps[b], nan, panel.scores[[a, b]])
            [p] = _swapped(panel, shared, [(0, 1)], coefficient, settings).values()
            p_values[a, b] = p
    return p_values


def _swapped(
    panel: Panel,
    scores: Floats,
    pairs: list[tuple[int, int]],
    coefficient: str,
    settings: Settings,
) -> dict[tuple[int, int], float]:
    if not pairs:
        return {}
    values = np.array(
        [
            with_policy(
                correlate_groups(panel.human, row, panel.item, panel.n_items, coefficient),
                settings.undefined,
            )
            for row in scores
        ]
    ).T
    known, sums = (~np.isnan(values)).astype(np.float64), np.nan_to_num(values)
    total, count = sums.sum(axis=0), known.sum(axis=0)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    rng = np.random.default_rng(settings.seed + panel.number)
    observed = _difference(total, count, 0 * total, 0 * count, first, second)
    extreme = np.zeros(len(pairs))
    step = max(1, CHUNK // max(1, panel.n_items))
    for start in range(0, settings.n_permutations, step):
        size = min(step, settings.n_permutations - start)
        swapped = rng.integers(0, 2, size=(size, panel.n_items), dtype=np.uint8).astype(np.float64)
        moved = (swapped @ sums, swapped @ known)
        drawn = _difference(total - moved[0], count - moved[1], *moved, first, second)
        extreme += (np.abs(drawn) >= np.abs(observed) - ROUNDING).sum(axis=0)
    p = np.where(np.isnan(observed), nan, (extreme + 1) / (settings.n_permutations + 1))
    return {pair: float(value) for pair, value in zip(pairs, p, strict=True)}


def _difference(
    stays: Floats, n_stays: Floats, moves: Floats, n_moves: Floats, first: Any, second: Any
) -> Floats:
    def mean(own: Any, other: Any) -> Floats:
        count = n_stays[..., own] + n_moves[..., other]
        return np.asarray((stays[..., own] + moves[..., other]) / np.where(count > 0, count, nan))

    return mean(first, second) - mean(second, first)
