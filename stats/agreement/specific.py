from __future__ import annotations

from dataclasses import dataclass
from math import nan

from error_codes import CodedText
from stats.agreement.alpha_sums import (
    distance_table,
    masi,
    ratio_table,
    unit_disagreement,
    unit_table,
)
from stats.agreement.design import Design, design_of
from stats.agreement.intervals import jackknife_t
from stats.agreement.krippendorff import MAX_TABLED_VALUES, LevelOfMeasurement
from stats.agreement.result import CiMethod, Reason, Sums, by_cluster, few_items_warnings, row_forms
from stats.arguments import (
    Column,
    Floats,
    coded,
    require,
    require_confidence,
    require_same_length,
    sum_by,
)
from stats.libraries import np, pd


def item_agreement(
    items: Column, annotators: Column, values: Column, *, level: LevelOfMeasurement = "nominal"
) -> pd.DataFrame:
    """How far the labels of each item agree.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    level : {"nominal", "ordinal", "interval", "ratio", "set"}
        Level of measurement of the values.

    Returns
    -------
    DataFrame
        A row an item, in order of appearance: ``item, n_labels, n_distinct, agreement,
        reason``. Agreement is one minus the mean distance of two labels of the item over the
        largest distance in the data: at the nominal level the share of equal pairs. It is NaN,
        and `reason` ``no_pairable_units``, for an item labelled once.

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing or not of the kind the level
        needs, an annotator labels an item twice, or there are over 4,000 different ratios or
        sets.

    References
    ----------
    J. L. Fleiss (1971). Measuring nominal scale agreement among many raters. Psychological
    Bulletin 76(5), 378-382 (the extent of agreement on a subject).

    Examples
    --------
    >>> table = item_agreement([1, 1, 1, 2, 2], list("abcab"), list("xxyxx"))
    >>> table[["item", "agreement"]].round(3)
       item  agreement
    0     1      0.333
    1     2      1.000
    """
    design = design_of(items, annotators, values, level=level)
    labels, size = design.labels, design.size
    paired = size >= 2
    agreement = np.full(labels.n_items, nan)
    if paired.any():
        agreement[pd.unique(labels.item[paired[labels.item]])] = 1 - _mean_distances(design)
    names = pd.Series(items).reset_index(drop=True)[np.unique(labels.item, return_index=True)[1]]
    reasons = [None if pairs else Reason.NO_PAIRABLE_UNITS for pairs in paired]
    return pd.DataFrame(
        {
            "item": names.to_numpy(),
            "n_labels": size.astype(np.intp),
            "n_distinct": np.diff(design.table.indptr),
            "agreement": agreement,
            "reason": pd.Series(reasons, dtype=object),
        }
    )


def category_agreement(items: Column, annotators: Column, values: Column) -> pd.DataFrame:
    """How far annotators agree on each category: positive and negative agreement, if two.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.

    Returns
    -------
    DataFrame
        A row a category, ascending: ``category, n_labels, share, agreement, kappa``. Counts
        and shares are of pairable labels. Agreement is specific: given one label of the
        category, the chance that another label of the item is of it too. Kappa is Fleiss'
        kappa of the category. NaN where the category has no pairable label, and kappa where it
        has all.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, or an annotator labels an item
        twice.

    References
    ----------
    J. L. Fleiss (1971). Measuring nominal scale agreement among many raters. Psychological
    Bulletin 76(5), 378-382.
    D. V. Cicchetti and A. R. Feinstein (1990). High agreement but low kappa: II. Resolving the
    paradoxes. Journal of Clinical Epidemiology 43(6), 551-558.

    Examples
    --------
    >>> category_agreement([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy")).round(3)
      category  n_labels  share  agreement  kappa
    0        x         3    0.5      0.667  0.333
    1        y         3    0.5      0.667  0.333
    """
    design = design_of(items, annotators, values)
    size, table = design.size, design.table
    item = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    n, category = len(design.domain), table.indices.astype(np.intp)
    pairable = sum_by(category, table.data * (size[item] >= 2), n)
    together = sum_by(category, table.data * (table.data - 1), n)
    pairs = sum_by(category, table.data * (size[item] - 1), n)
    with np.errstate(divide="ignore", invalid="ignore"):
        share, agreement = pairable / pairable.sum(), together / pairs
        kappa = np.where(share < 1, (agreement - share) / (1 - share), nan)
    return pd.DataFrame(
        {
            "category": pd.Series(design.domain),
            "n_labels": pairable.astype(np.intp),
            "share": share,
            "agreement": agreement,
            "kappa": kappa,
        }
    )


def _mean_distances(design: Design) -> Floats:
    """The mean distance of two labels of each unit, over the largest in the data."""
    units = design.units
    if len(units.categories) == 1:
        return np.zeros(units.n_units)
    if design.level == "nominal":
        together = row_forms(unit_table(units), None)
        return np.asarray((np.square(units.size) - together) / (units.size * (units.size - 1)))
    if design.level in ("ratio", "set"):
        require(
            len(units.categories) <= MAX_TABLED_VALUES,
            f"values hold over {MAX_TABLED_VALUES} different ones",
            code="too_many_values",
        )
        ratio = design.level == "ratio"
        table = ratio_table(units.categories) if ratio else distance_table(units.categories, masi)
        pairs = units.size * (units.size - 1)
        return np.asarray(row_forms(unit_table(units), table) / pairs / table.max())
    scale = np.asarray(units.categories, dtype=np.float64)
    if design.level == "ordinal":
        scale = np.cumsum(units.counts) - units.counts / 2
    mean = unit_disagreement(units, scale[units.value]) / units.size
    return np.asarray(mean / np.ptp(scale) ** 2)


@dataclass(frozen=True)
class LabelOverlap:
    """Items that both call relevant over items that either does.

    Attributes
    ----------
    value, ci_low, ci_high : float
        Between 0 and 1; NaN with the `reason`.
    method : str
        How the limits were computed.
    n_both, n_either, n_items : int
        Items that both call relevant, that either does, and all.
    reason : str or None
        Why what is NaN is undefined.
    warnings : tuple of str
    """

    value: float
    ci_low: float
    ci_high: float
    method: str
    n_both: int
    n_either: int
    n_items: int
    reason: str | None = None
    warnings: tuple[str, ...] = ()


def relevant_overlap(
    first: Column, second: Column, clusters: Column, *, confidence: float = 0.95
) -> LabelOverlap:
    """The overlap of two assessors' relevant items, with an interval for new clusters (topics).

    Parameters
    ----------
    first, second : array-like of bool, shape (n_items,)
        Whether either calls the item relevant.
    clusters : array-like, shape (n_items,)
        The cluster of each item: its topic.
    confidence : float

    Returns
    -------
    LabelOverlap
        Of all items together; limits by the jackknife over clusters and Student's t, cut at 0
        and 1.

    Raises
    ------
    ValueError
        If the columns differ in length, a cluster is missing, or `confidence` is out of range.

    References
    ----------
    E. M. Voorhees (2000). Variations in relevance judgments and the measurement of retrieval
    effectiveness. Information Processing and Management 36(5), 697-716.
    B. Efron and C. Stein (1981). The jackknife estimate of variance. Annals of Statistics 9.

    Examples
    --------
    >>> overlap = relevant_overlap([1, 1, 0, 1], [1, 0, 0, 1], ["s", "s", "t", "t"])
    >>> round(overlap.value, 3), overlap.n_both, overlap.n_either
    (0.667, 2, 3)
    """
    require_confidence(confidence)
    n = require_same_length(first=first, second=second, clusters=clusters)
    one, other = (np.asarray(side, dtype=bool) for side in (first, second))
    both, either = one & other, one | other
    counts = int(both.sum()), int(either.sum()), n
    if not either.any():
        reason = (
            CodedText("neither calls an item relevant", code="nothing_relevant")
            if n
            else "no item is judged by both"
        )
        return LabelOverlap(nan, nan, nan, "none", *counts, reason)
    cluster, names = coded(clusters, "clusters")
    sums = Sums(by_cluster(cluster, len(names), both * 1.0, either * 1.0), np.divide)
    limits = jackknife_t(
        sums.value(), sums.without_each(), confidence, CiMethod.JACKKNIFE_CLUSTERS, least=0.0
    )
    return LabelOverlap(
        sums.value(),
        limits.low,
        limits.high,
        limits.method.value,
        *counts,
        limits.missing or None,
        few_items_warnings(n, len(names)),
    )
