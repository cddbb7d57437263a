from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan, nan
from typing import Literal, get_args

from error_codes import CodedText, InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_one_of,
    require_same_length,
    sum_by,
)
from stats.libraries import np, scipy

Method = Literal["auto", "anova", "reml"]
# Of all random effects together; a step solves a system of that size.
REML_UP_TO_LEVELS = 800
# Of the mean square of ratings: smaller components come from how decimals are stored.
ROUNDING = 1e-13


@dataclass(frozen=True, kw_only=True)
class Components:
    """Variance components of a rating.

    Attributes
    ----------
    raw : dict of str to float
        Each component as estimated; an unbiased estimate can be negative. NaN where the design
        cannot distinguish it.
    confounded : dict of str to str
        Components that the design cannot distinguish, and the one they are part of.
    mean : float
        The mean of all ratings.
    levels : dict of str to int
        How many items, systems and annotators there are.
    balanced : bool
        Whether every combination was rated equally often.
    method : str
        ``"anova"`` (expected mean squares, or Henderson's method where unbalanced) or
        ``"reml"``.
    """

    raw: dict[str, float]
    confounded: dict[str, str] = field(default_factory=dict)
    mean: float
    levels: dict[str, int]
    n_ratings: int
    balanced: bool
    method: str
    notes: tuple[str, ...] = ()

    @property
    def components(self) -> dict[str, float]:
        return {name: max(value, 0.0) for name, value in self.raw.items() if not isnan(value)}


def variance_components(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    systems: Column | None = None,
    method: Method = "auto",
) -> Components:
    """Variance components of ratings of items (under systems) by annotators.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_ratings,)
        One row a rating. Not every annotator need have rated every item.
    systems : array-like, shape (n_ratings,), optional
        The system of each rating.
    method : {"auto", "anova", "reml"}
        Expected mean squares, which in unbalanced designs are Henderson's first method, or
        restricted maximum likelihood, which is never negative. ``"auto"`` takes the first where
        the design is balanced or has over 800 levels, and the second elsewhere.

    Returns
    -------
    Components
        ``item, annotator`` and ``residual``; with systems also ``system, item_system,
        item_annotator`` and ``system_annotator``.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, a factor has one level only,
        or `method` is unknown or asks for likelihood of too many levels.

    Notes
    -----
    All effects are random. With one rating a cell, the highest interaction is the residual. A
    component whose groups are those of another (annotators who rated one item each, say) cannot
    be distinguished from it and is reported so.

    References
    ----------
    C. R. Henderson (1953). Estimation of variance and covariance components. Biometrics 9(2),
    226-252 (method 1).
    H. D. Patterson and R. Thompson (1971). Recovery of inter-block information when block sizes
    are unequal. Biometrika 58(3), 545-554.
    R. L. Brennan (2001). Generalizability Theory. Springer.

    Examples
    --------
    >>> items, annotators = np.repeat([1, 2, 3], 2), list("ab") * 3
    >>> found = variance_components(items, annotators, [1, 2, 3, 5, 4, 6])
    >>> {name: round(value, 2) for name, value in found.components.items()}
    {'item': 3.17, 'annotator': 1.33, 'residual': 0.17}
    """
    require_one_of(method=(method, get_args(Method)))
    factors = _factors(items, annotators, systems, values)
    y = complete_numbers(values, "values")
    groups, confounded = _groups(factors, len(y))
    levels = {name: int(codes.max()) + 1 for name, codes in factors.items()}
    balanced = _is_balanced(factors, levels)
    n_levels = sum(int(codes.max()) + 1 for codes in groups.values())
    is_by_likelihood = method == "reml" or (
        method == "auto" and not balanced and n_levels <= REML_UP_TO_LEVELS
    )
    require(
        not is_by_likelihood or n_levels <= REML_UP_TO_LEVELS,
        f"method 'reml' is for up to {REML_UP_TO_LEVELS} levels, not {n_levels}",
        code="too_many_levels",
    )
    estimated = by_likelihood(y, groups) if is_by_likelihood else by_moments(y, groups)
    nothing = ROUNDING * float(np.square(y).mean())
    raw = {name: estimated.get(name, nan) for name in (*_names(factors), RESIDUAL)}
    raw = {name: 0.0 if abs(value) <= nothing else value for name, value in raw.items()}
    return Components(
        raw=raw,
        confounded=confounded,
        mean=float(y.mean()),
        levels=levels,
        n_ratings=len(y),
        balanced=balanced,
        method="reml" if is_by_likelihood else "anova",
        notes=_notes(raw, confounded, levels),
    )


def _factors(
    items: Column, annotators: Column, systems: Column | None, values: Column
) -> dict[str, Integers]:
    columns: dict[str, Column] = {"item": items}
    if systems is not None:
        columns["system"] = systems
    columns["annotator"] = annotators
    factors = {}
    for name, column in columns.items():
        require_same_length(**{f"{name}s": column, "values": values})
        codes, distinct = coded_in_order(column, f"{name}s")
        if len(distinct) < 2:
            one: Hashable = distinct[0] if distinct else "none"
            raise InvalidValue(
                f"{name}s must have two levels or more, and have {one!r} only",
                code="too_few_levels",
            )
        factors[name] = codes
    return factors


def _names(factors: Mapping[str, Integers]) -> list[str]:
    pairs = list(combinations(factors, 2)) if len(factors) > 2 else []
    return [*factors, *("_".join(pair) for pair in pairs)]


def _groups(factors: Mapping[str, Integers], n: int) -> tuple[dict[str, Integers], dict[str, str]]:
    groups: dict[str, Integers] = {}
    confounded: dict[str, str] = {}
    for name in _names(factors):
        code = np.zeros(n, dtype=np.intp)
        for factor in name.split("_"):
            code = code * (int(factors[factor].max()) + 1) + factors[factor]
        code = np.unique(code, return_inverse=True)[1]
        same = [other for other, codes in groups.items() if _is_same(code, codes)]
        if same or int(code.max()) + 1 == n:
            confounded[name] = same[0] if same else RESIDUAL
        else:
            groups[name] = code
    return groups, confounded


def _is_same(one: Integers, other: Integers) -> bool:
    count = int(one.max()) + 1
    return count == int(other.max()) + 1 == len(np.unique(one * count + other))


def _is_balanced(factors: Mapping[str, Integers], levels: Mapping[str, int]) -> bool:
    cell = np.zeros(len(next(iter(factors.values()))), dtype=np.intp)
    for name, codes in factors.items():
        cell = cell * levels[name] + codes
    counts = np.bincount(cell, minlength=int(np.prod(list(levels.values()))))
    return bool((counts == counts[0]).all())


def _notes(
    raw: Mapping[str, float], confounded: Mapping[str, str], levels: Mapping[str, int]
) -> tuple[str, ...]:
    notes = [
        f"{name} cannot be distinguished from {other} in this design"
        for name, other in confounded.items()
    ]
    notes += [
        CodedText(
            f"the estimate of {name} is {value:.3g}, below 0, and counts as 0",
            code="negative_component",
        )
        for name, value in raw.items()
        if value < 0
    ]
    if raw[RESIDUAL] == 0:
        notes.append("nothing is left that more ratings would lower: plans are not given")
    if levels["annotator"] < 5:
        notes.append(f"{levels['annotator']} annotators: their component is a rough guide below 5")
    if levels["item"] < 20:
        notes.append(f"{levels['item']} items: their component is a rough guide below 20")
    return tuple(notes)


RESIDUAL = "residual"
# Of a component's ratio to the residual: as good as 0.
LOG_NOTHING = -16.0


def by_moments(y: Floats, groups: Mapping[str, Integers]) -> dict[str, float]:
    """Henderson's method 1: uncorrected sums of squares and what they are expected to be."""
    n = len(y)
    y = y - y.mean()
    by = {"": np.zeros(n, dtype=np.intp), **groups}
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
