"""Cohen's kappa of many pairs of annotators at once, from co-labelled items."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from error_codes import InvalidValue
from stats.arguments import Floats, Integers
from stats.groups import sum_by

Weights = Literal["linear", "quadratic"]
AnyWeights: TypeAlias = Weights | NDArray[np.float64] | Sequence[Sequence[float]]


@dataclass(frozen=True)
class Kappas:
    """One entry a pair: overlap, agreement terms, kappa and its standard error.

    `kappa` and `se` are NaN where the overlap is one item or both annotators gave one and the
    same category throughout (`same_category`).
    """

    overlap: Integers
    observed: Floats
    expected: Floats
    kappa: Floats
    se: Floats
    same_category: NDArray[np.bool_]


def agreement_weights(weights: AnyWeights | None, n_categories: int) -> Floats | None:
    """Weights of agreement by distance of the categories' positions; None for plain kappa."""
    if weights is None:
        return None
    if not isinstance(weights, str):
        return _weight_table(weights, n_categories)
    if weights not in ("linear", "quadratic"):
        raise InvalidValue(
            f"weights must be None, 'linear', 'quadratic' or a table, not {weights!r}",
            code="unknown_weights",
        )
    position = np.arange(n_categories)
    distance = np.abs(position[:, None] - position) / max(1, n_categories - 1)
    return np.asarray(1 - (distance if weights == "linear" else np.square(distance)))


def _weight_table(
    weights: NDArray[np.float64] | Sequence[Sequence[float]], n_categories: int
) -> Floats:
    """A table of weights of agreement: 1 for the same category, less for others."""
    table = np.array(weights, dtype=np.float64)
    if table.shape != (n_categories, n_categories):
        raise InvalidValue(
            f"weights must have a row and a column for each of {n_categories} categories, "
            f"not shape {table.shape}",
            code="weights_shape",
        )
    if not np.isfinite(table).all() or (np.diag(table) != 1).any() or (table > 1).any():
        raise InvalidValue(
            "weights must be weights of agreement, 1 on the diagonal and at most 1 elsewhere",
            code="weights_not_of_agreement",
        )
    return table


def recoded(
    codes: Integers, values: list[Hashable], categories: Sequence[Hashable] | None, name: str
) -> tuple[Integers, list[Hashable]]:
    """Codes by position in `categories`, or as they are where the domain is not given."""
    if categories is None:
        return codes, values
    domain = list(categories)
    position = {category: index for index, category in enumerate(domain)}
    if len(position) < len(domain):
        raise InvalidValue("categories must be distinct", code="repeated_categories")
    if unknown := [value for value in values if value not in position]:
        raise InvalidValue(
            f"{name} holds {unknown[0]!r}, which categories does not list", code="unknown_category"
        )
    return np.array([position[value] for value in values], dtype=np.intp)[codes], domain


def kappas(
    pair: Integers,
    first: Integers,
    second: Integers,
    n_pairs: int,
    n_categories: int,
    weights: Floats | None,
) -> Kappas:
    """Kappa and its asymptotic standard error for every pair of annotators.

    Parameters
    ----------
    pair : ndarray of int, shape (n_shared,)
        The pair, 0 to ``n_pairs - 1``, of each co-labelled item; each pair occurs.
    first, second : ndarray of int, shape (n_shared,)
        Category codes the two annotators of that pair gave the item.
    n_pairs, n_categories : int
        Number of pairs and of categories.
    weights : ndarray of float, shape (n_categories, n_categories), or None
        Weights of agreement, symmetric, 1 on the diagonal; None weighs by equality.

    Returns
    -------
    Kappas

    References
    ----------
    J. L. Fleiss, J. Cohen and B. S. Everitt (1969). Large sample standard errors of kappa and
    weighted kappa. Psychological Bulletin 72(5), 323-327.

    Examples
    --------
    >>> first, second = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])
    >>> result = kappas(np.zeros(4, np.intp), first, second, 1, 2, None)
    >>> result.kappa.round(3).tolist(), result.se.round(3).tolist()
    ([0.5], [0.375])
    """
    overlap = np.bincount(pair, minlength=n_pairs)
    rows = _counts(pair, first, n_pairs, n_categories)
    columns = _counts(pair, second, n_pairs, n_categories)
    same = (rows * columns).sum(axis=1) == np.square(overlap)
    rows, columns = rows / overlap[:, None], columns / overlap[:, None]
    chance_first = columns if weights is None else columns @ weights.T
    chance_second = rows if weights is None else rows @ weights
    agree = (first == second).astype(np.float64) if weights is None else weights[first, second]
    observed = sum_by(pair, agree, n_pairs) / overlap
    expected = (rows * chance_first).sum(axis=1)
    undefined = same | (overlap < 2)
    chance_left = np.where(undefined, np.nan, 1 - expected)
    influence = agree * (1 - expected)[pair] - (1 - observed)[pair] * (
        chance_first[pair, first] + chance_second[pair, second]
    )
    second_moment = sum_by(pair, np.square(influence), n_pairs) / overlap
    centre = observed * expected - 2 * expected + observed
    variance = np.maximum(second_moment - np.square(centre), 0) / (overlap * chance_left**4)
    kappa = 1 - (1 - observed) / chance_left
    return Kappas(overlap, observed, expected, kappa, np.sqrt(variance), same)


def _counts(pair: Integers, value: Integers, n_pairs: int, n_categories: int) -> Floats:
    flat = np.bincount(pair * n_categories + value, minlength=n_pairs * n_categories)
    return flat.reshape(n_pairs, n_categories).astype(np.float64)
