from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

from numpy.typing import NDArray

from error_codes import InvalidValue
from stats.agreement.intervals import TINY
from stats.agreement.result import Labels, Reason, code_labels
from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    require,
    require_at_least,
    require_confidence,
    sum_by,
)
from stats.libraries import np, pd, scipy

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
    same_category: Flags


def agreement_weights(weights: AnyWeights | None, n_categories: int) -> Floats | None:
    """Weights of agreement by distance of the categories' positions; None for plain kappa."""
    if weights is None:
        return None
    if not isinstance(weights, str):
        return _weight_table(weights, n_categories)
    require(
        weights in ("linear", "quadratic"),
        f"weights must be None, 'linear', 'quadratic' or a table, not {weights!r}",
        code="unknown_weights",
    )
    position = np.arange(n_categories)
    distance = np.abs(position[:, None] - position) / max(1, n_categories - 1)
    return np.asarray(1 - (distance if weights == "linear" else np.square(distance)))


def _weight_table(
    weights: NDArray[np.float64] | Sequence[Sequence[float]], n_categories: int
) -> Floats:
    table = np.array(weights, dtype=np.float64)
    require(
        table.shape == (n_categories, n_categories),
        f"weights must have a row and a column for each of {n_categories} categories, "
        f"not shape {table.shape}",
        code="weights_shape",
    )
    require(
        np.isfinite(table).all() and not (np.diag(table) != 1).any() and not (table > 1).any(),
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
    require(len(position) >= len(domain), "categories must be distinct", code="repeated_categories")
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
    chance_left = np.where(same | (overlap < 2), np.nan, 1 - expected)
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


# Co-labelled items handled at a time, some 32 MB a column.
CHUNK = 1 << 22


def pairwise_kappa(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    weights: Weights | None = None,
    min_overlap: int = 1,
    categories: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Cohen's kappa of every pair of annotators, each on the items both labelled.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    weights : {None, "linear", "quadratic"}
        As in `cohen_kappa`.
    min_overlap : int
        Leave out pairs that share fewer items. With 0 every pair is listed, also those without
        a shared item, whose reason is ``no_overlap``.
    categories : sequence, optional
        All categories in order; without it, all that occur in `values`, ascending, for every
        pair alike.
    confidence : float
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    DataFrame
        A row a pair, by annotators: ``annotator_a, annotator_b, n_overlap, observed, expected,
        kappa, se, ci_low, ci_high, reason``. Where kappa is undefined it is NaN and `reason`
        one of ``no_overlap``, ``single_item``, ``single_category``; elsewhere `reason` is None.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, an annotator labels an item
        twice, or `weights`, `categories`, `min_overlap` or `confidence` is not usable.

    Notes
    -----
    Pairs of labels are walked item by item in blocks of annotators, so time and memory grow
    with the shared items and not with the square of the annotators.

    References
    ----------
    J. Cohen (1960). A coefficient of agreement for nominal scales. Educational and
    Psychological Measurement 20(1), 37-46.
    J. L. Fleiss, J. Cohen and B. S. Everitt (1969). Large sample standard errors of kappa and
    weighted kappa. Psychological Bulletin 72(5), 323-327.

    Examples
    --------
    >>> table = pairwise_kappa([1, 1, 2, 2, 3, 3, 3], list("abababc"), list("xxyyxyx"))
    >>> table[["annotator_a", "annotator_b", "n_overlap", "kappa"]].round(2)
      annotator_a annotator_b  n_overlap  kappa
    0           a           b          3    0.4
    1           a           c          1    NaN
    2           b           c          1    NaN
    >>> [reason and str(reason) for reason in table["reason"]]
    [None, 'single_item', 'single_item']
    """
    require_confidence(confidence)
    require_at_least(0, min_overlap=min_overlap)
    labels = code_labels(items, annotators, values)
    value, domain = recoded(labels.value, labels.categories, categories, "values")
    weight_table = agreement_weights(weights, len(domain))
    blocks = [
        _block(labels, value, left, right, len(domain), weight_table)
        for left, right in _shared_items(labels, max(1, CHUNK // max(1, len(domain))))
    ]
    table = pd.concat([_empty(), *blocks], ignore_index=True) if blocks else _empty()
    if min_overlap == 0:
        table = _with_strangers(table, len(labels.annotators))
    table = table[table["n_overlap"] >= min_overlap]
    return _labelled(table, labels.annotators, confidence)


def _shared_items(labels: Labels, size: int) -> Iterator[tuple[Integers, Integers]]:
    """Rows of two labels of one item, the lower annotator first, in blocks of annotators.

    A block holds all pairs of its lower annotators and about `size` rows (more where one
    annotator alone has more).
    """
    order = np.lexsort((labels.annotator, labels.item))
    end = np.cumsum(np.bincount(labels.item, minlength=labels.n_items))[labels.item[order]]
    partners = end - np.arange(len(order)) - 1
    annotator = labels.annotator[order]
    rows = np.argsort(annotator, kind="stable")
    per_annotator = np.bincount(annotator, partners, len(labels.annotators))
    block_of_annotator = (np.cumsum(per_annotator) - per_annotator) // size
    block_of_row = block_of_annotator[annotator[rows]]
    for block in np.split(rows, np.flatnonzero(np.diff(block_of_row)) + 1):
        count = partners[block]
        left = np.repeat(block, count)
        step = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count)
        if len(left):
            yield order[left], order[left + 1 + step]


def _block(
    labels: Labels,
    value: Integers,
    left: Integers,
    right: Integers,
    n_categories: int,
    weights: Floats | None,
) -> pd.DataFrame:
    n_annotators = len(labels.annotators)
    key = labels.annotator[left] * n_annotators + labels.annotator[right]
    pairs, pair = np.unique(key, return_inverse=True)
    terms = kappas(pair, value[left], value[right], len(pairs), n_categories, weights)
    return pd.DataFrame(
        {
            "annotator_a": pairs // n_annotators,
            "annotator_b": pairs % n_annotators,
            "n_overlap": terms.overlap,
            "observed": terms.observed,
            "expected": terms.expected,
            "kappa": terms.kappa,
            "se": terms.se,
            "reason": pd.Series(_reasons(terms), dtype=object),
        }
    )


def _reasons(terms: Kappas) -> NDArray[np.object_]:
    reasons = np.full(len(terms.overlap), None, dtype=object)
    reasons[terms.same_category] = Reason.SINGLE_CATEGORY
    reasons[terms.overlap == 1] = Reason.SINGLE_ITEM
    return reasons


def _empty() -> pd.DataFrame:
    codes = dict.fromkeys(["annotator_a", "annotator_b", "n_overlap"], np.dtype(np.intp))
    numbers = dict.fromkeys(["observed", "expected", "kappa", "se"], np.dtype(np.float64))
    kinds = codes | numbers | {"reason": np.dtype(object)}
    return pd.DataFrame({name: np.empty(0, dtype=kind) for name, kind in kinds.items()})


def _with_strangers(table: pd.DataFrame, n_annotators: int) -> pd.DataFrame:
    everyone = pd.DataFrame(
        np.array(list(combinations(range(n_annotators), 2)), dtype=np.intp).reshape(-1, 2),
        columns=["annotator_a", "annotator_b"],
    )
    merged = everyone.merge(table, how="left", on=["annotator_a", "annotator_b"])
    stranger = merged["n_overlap"].isna()
    merged["n_overlap"] = merged["n_overlap"].fillna(0).astype(np.intp)
    merged["reason"] = pd.Series(
        [
            Reason.NO_OVERLAP if alone else reason
            for alone, reason in zip(stranger, merged["reason"].to_numpy(dtype=object), strict=True)
        ],
        dtype=object,
    )
    return merged


def _labelled(table: pd.DataFrame, annotators: list[Hashable], confidence: float) -> pd.DataFrame:
    names = np.empty(len(annotators), dtype=object)
    names[:] = annotators
    quantile = scipy.stats.norm.ppf((1 + confidence) / 2)
    # without a spread there is no interval: one of no width would claim certainty
    se = table["se"].where(table["se"] > TINY)
    half = quantile * se
    return pd.DataFrame(
        {
            "annotator_a": pd.Series(names[table["annotator_a"]]).infer_objects(),
            "annotator_b": pd.Series(names[table["annotator_b"]]).infer_objects(),
            "n_overlap": table["n_overlap"].to_numpy(),
            "observed": table["observed"].to_numpy(),
            "expected": table["expected"].to_numpy(),
            "kappa": table["kappa"].to_numpy(),
            "se": se.to_numpy(),
            "ci_low": (table["kappa"] - half).clip(-1, 1).to_numpy(),
            "ci_high": (table["kappa"] + half).clip(-1, 1).to_numpy(),
            "reason": pd.Series(table["reason"].to_numpy(), dtype=object),
        }
    )
