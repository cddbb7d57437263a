"""Variance components by expected sums of squares, and by restricted maximum likelihood."""

from collections.abc import Mapping
from math import isnan, nan

import numpy as np

from stats.arguments import Floats, Integers, sum_by
from stats.libraries import scipy

RESIDUAL = "residual"
LOG_NOTHING = -16.0
"""Of a component's ratio to the residual: as good as 0."""


def by_moments(y: Floats, groups: Mapping[str, Integers]) -> dict[str, float]:
    """Henderson's method 1: uncorrected sums of squares and what they are expected to be."""
    n = len(y)
    y = y - y.mean()
    whole = np.zeros(n, dtype=np.intp)
    by = {"": whole, **groups}
    rows = [_expectation(code, groups, n) for code in by.values()]
    rows.append([float(n)] * (len(groups) + 2))
    sums = [float((np.square(sum_by(c, y, _size(c))) / np.bincount(c)).sum()) for c in by.values()]
    sums.append(float(np.square(y).sum()))
    solution, _, rank, _ = np.linalg.lstsq(np.array(rows), np.array(sums), rcond=1e-10)
    if rank < len(rows):
        return dict.fromkeys((*groups, RESIDUAL), nan)
    return dict(zip((*groups, RESIDUAL), (float(v) for v in solution[1:]), strict=True))


def _expectation(code: Integers, groups: Mapping[str, Integers], n: int) -> list[float]:
    """Coefficients of the squared mean, each component and the residual in a sum of squares."""
    size = np.bincount(code).astype(np.float64)
    row = [float(n)]
    for other in groups.values():
        joint, counts = np.unique(code * (_size(other)) + other, return_counts=True)
        row.append(float((np.square(counts) / size[joint // _size(other)]).sum()))
    return [*row, float(len(size))]


def _size(code: Integers) -> int:
    return int(code.max()) + 1


def by_likelihood(y: Floats, groups: Mapping[str, Integers]) -> dict[str, float]:
    """Restricted maximum likelihood over the ratios of the components to the residual."""
    n, sizes = len(y), [_size(code) for code in groups.values()]
    design = np.zeros((n, sum(sizes)))
    offset = 0
    for code, size in zip(groups.values(), sizes, strict=True):
        design[np.arange(n), offset + code] = 1.0
        offset += size
    fixed = np.stack([np.ones(n), y - y.mean()], axis=1)
    crossed, products = design.T @ design, design.T @ fixed
    moments = fixed.T @ fixed

    starts = np.cumsum([0, *sizes[:-1]])

    def profile(log_ratios: Floats) -> tuple[float, Floats, float]:
        """The deviance, its slopes and the residual variance. A slope is exact: the deviance is so
        flat near its least value that differences would leave three digits to chance."""
        root = np.sqrt(np.exp(np.repeat(log_ratios, sizes)))
        system = root[:, None] * crossed * root + np.eye(len(root))
        factor = scipy.linalg.cholesky(system, lower=True, check_finite=False)
        inverse = scipy.linalg.solve_triangular(
            factor, np.eye(len(root)), lower=True, overwrite_b=True, check_finite=False
        )
        half = inverse @ (root[:, None] * products)
        inner = moments - half.T @ half
        slope = inner[0, 1] / inner[0, 0]
        squares = max(float(inner[1, 1] - inner[0, 1] * slope), 1e-300)
        variance = squares / (n - 1)
        deviance = 2 * float(np.log(np.diag(factor)).sum()) + float(np.log(inner[0, 0]))
        # tr(P Z Z') - (n - 1) |Z' P y|^2 / y' P y, times the ratio, for the columns Z of each group
        of_mean, of_values = (inverse.T @ half).T
        each = 1 - np.square(inverse).sum(axis=0) - np.square(of_mean) / inner[0, 0]
        each -= np.square(of_values - of_mean * slope) / variance
        return deviance + (n - 1) * float(np.log(variance)), np.add.reduceat(each, starts), variance

    best, _, _ = scipy.optimize.fmin_l_bfgs_b(
        lambda x: profile(x)[:2],
        _starting_ratios(by_moments(y, groups), groups),
        bounds=[(LOG_NOTHING, 12.0)] * len(groups),
        factr=10.0,
        pgtol=1e-8,
    )
    variance = profile(best)[2]
    ratios = np.where(best <= LOG_NOTHING + 4, 0.0, np.exp(best))
    estimates = {name: float(r * variance) for name, r in zip(groups, ratios, strict=True)}
    return estimates | {RESIDUAL: float(variance)}


def _starting_ratios(moments: Mapping[str, float], groups: Mapping[str, Integers]) -> Floats:
    residual = moments[RESIDUAL]
    if isnan(residual) or residual <= 0:
        return np.zeros(len(groups))
    ratios = [max(moments[name] / residual, 1e-3) for name in groups]
    return np.clip(np.log(ratios), LOG_NOTHING, 12.0)
