"""Where the variation of ratings comes from: items, systems, annotators, and what they share."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from math import isnan, nan
from typing import Literal, get_args

import numpy as np
from scipy import linalg, optimize

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require_one_of,
    require_same_length,
)
from stats.groups import sum_by

Method = Literal["auto", "anova", "reml"]
REML_UP_TO_LEVELS = 800
"""Of all random effects together; a step solves a system of that size."""
RESIDUAL = "residual"


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
        """The components, those below 0 as 0."""
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
    by_likelihood = method == "reml" or (
        method == "auto" and not balanced and n_levels <= REML_UP_TO_LEVELS
    )
    if by_likelihood and n_levels > REML_UP_TO_LEVELS:
        raise ValueError(f"method 'reml' is for up to {REML_UP_TO_LEVELS} levels, not {n_levels}")
    estimated = _by_likelihood(y, groups) if by_likelihood else _by_moments(y, groups)
    raw = {name: estimated.get(name, nan) for name in (*_names(factors), RESIDUAL)}
    return Components(
        raw=raw,
        confounded=confounded,
        mean=float(y.mean()),
        levels=levels,
        n_ratings=len(y),
        balanced=balanced,
        method="reml" if by_likelihood else "anova",
        notes=_notes(raw, confounded, levels),
    )


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a study of so many items and annotators would be worth.

    Attributes
    ----------
    n_items, n_annotators : int
        Items, and annotators of each rated output; all rate the same ones.
    se_of_mean : float
        Of a system's mean (without systems: of an item's), for new items and annotators.
    se_of_difference : float
        Of the difference of two systems (without systems: of two items).
    generalizability : float
        The reliability of the order of systems (items).
    dependability : float
        The reliability of their values.
    """

    n_items: int
    n_annotators: int
    se_of_mean: float
    se_of_difference: float
    generalizability: float
    dependability: float


def decision_study(
    components: Mapping[str, float], *, n_items: int = 1, n_annotators: int
) -> Decision:
    """How sure systems (or, without systems, items) would be with other numbers of ratings.

    Parameters
    ----------
    components : mapping of str to float
        From `variance_components`; what is missing counts as 0, negative ones as 0.
    n_items : int
        Items of each system; not used without systems.
    n_annotators : int
        Annotators who each rate every output.

    Returns
    -------
    Decision

    Raises
    ------
    ValueError
        If a number is below 1.

    References
    ----------
    R. L. Brennan (2001). Generalizability Theory. Springer, chapters 2 and 4.

    Examples
    --------
    >>> parts = {"item": 0.98, "annotator": 0.29, "residual": 0.71}
    >>> round(decision_study(parts, n_annotators=3).generalizability, 2)
    0.81
    """
    if n_items < 1 or n_annotators < 1:
        raise ValueError("n_items and n_annotators must be at least 1")
    part = {
        name: 0.0 if isnan(value) else max(float(value), 0.0) for name, value in components.items()
    }

    def of(name: str) -> float:
        return part.get(name, 0.0)

    if "system" in part:
        cells = n_items * n_annotators
        object_ = of("system")
        relative = of("item_system") / n_items + of("system_annotator") / n_annotators
        relative += of(RESIDUAL) / cells
        absolute = relative + of("item") / n_items + of("annotator") / n_annotators
        absolute += of("item_annotator") / cells
    else:
        object_ = of("item")
        relative = of(RESIDUAL) / n_annotators
        absolute = relative + of("annotator") / n_annotators
    return Decision(
        n_items=n_items,
        n_annotators=n_annotators,
        se_of_mean=float(np.sqrt(absolute)),
        se_of_difference=float(np.sqrt(2 * relative)),
        generalizability=_share(object_, relative),
        dependability=_share(object_, absolute),
    )


def _share(signal: float, error: float) -> float:
    return signal / (signal + error) if signal + error > 0 else nan


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
            raise ValueError(f"{name}s must have two levels or more, and have {one!r} only")
        factors[name] = codes
    return factors


def _names(factors: Mapping[str, Integers]) -> list[str]:
    pairs = list(combinations(factors, 2)) if len(factors) > 2 else []
    return [*factors, *("_".join(pair) for pair in pairs)]


def _groups(factors: Mapping[str, Integers], n: int) -> tuple[dict[str, Integers], dict[str, str]]:
    """The groups of each component that the design distinguishes, and what the others are of."""
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
    """Whether two codings make the same groups."""
    count = int(one.max()) + 1
    if count != int(other.max()) + 1:
        return False
    return len(np.unique(one * count + other)) == count


def _is_balanced(factors: Mapping[str, Integers], levels: Mapping[str, int]) -> bool:
    cell = np.zeros(len(next(iter(factors.values()))), dtype=np.intp)
    for name, codes in factors.items():
        cell = cell * levels[name] + codes
    counts = np.bincount(cell, minlength=int(np.prod(list(levels.values()))))
    return bool((counts == counts[0]).all())


def _by_moments(y: Floats, groups: Mapping[str, Integers]) -> dict[str, float]:
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


def _by_likelihood(y: Floats, groups: Mapping[str, Integers]) -> dict[str, float]:
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

    def profile(log_ratios: Floats) -> tuple[float, float]:
        root = np.sqrt(np.exp(np.repeat(log_ratios, sizes)))
        system = root[:, None] * crossed * root + np.eye(len(root))
        factor = linalg.cholesky(system, lower=True, check_finite=False)
        half = linalg.solve_triangular(
            factor, root[:, None] * products, lower=True, check_finite=False
        )
        inner = moments - half.T @ half
        squares = max(float(inner[1, 1] - inner[0, 1] ** 2 / inner[0, 0]), 1e-300)
        variance = squares / (n - 1)
        deviance = 2 * float(np.log(np.diag(factor)).sum()) + float(np.log(inner[0, 0]))
        return deviance + (n - 1) * float(np.log(variance)), variance

    start = _starting_ratios(_by_moments(y, groups), groups)
    best, _, _ = optimize.fmin_l_bfgs_b(
        lambda x: profile(x)[0],
        start,
        approx_grad=True,
        bounds=[(LOG_NOTHING, 12.0)] * len(groups),
        factr=10.0,
        pgtol=1e-8,
    )
    variance = profile(best)[1]
    ratios = np.where(best <= LOG_NOTHING + 4, 0.0, np.exp(best))
    estimates = {name: float(r * variance) for name, r in zip(groups, ratios, strict=True)}
    return estimates | {RESIDUAL: float(variance)}


LOG_NOTHING = -16.0
"""Of a component's ratio to the residual: as good as 0."""


def _starting_ratios(moments: Mapping[str, float], groups: Mapping[str, Integers]) -> Floats:
    residual = moments[RESIDUAL]
    if isnan(residual) or residual <= 0:
        return np.zeros(len(groups))
    ratios = [max(moments[name] / residual, 1e-3) for name in groups]
    return np.clip(np.log(ratios), LOG_NOTHING, 12.0)


def _notes(
    raw: Mapping[str, float], confounded: Mapping[str, str], levels: Mapping[str, int]
) -> tuple[str, ...]:
    notes = [
        f"{name} cannot be distinguished from {other} in this design"
        for name, other in confounded.items()
    ]
    notes += [
        f"the estimate of {name} is {value:.3g}, below 0, and counts as 0"
        for name, value in raw.items()
        if value < 0
    ]
    if levels["annotator"] < 5:
        notes.append(f"{levels['annotator']} annotators: their component is a rough guide below 5")
    if levels["item"] < 20:
        notes.append(f"{levels['item']} items: their component is a rough guide below 20")
    return tuple(notes)
