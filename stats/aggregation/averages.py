from __future__ import annotations

from error_codes import note_if
from stats.aggregation.result import (
    Aggregation,
    Ratings,
    Reason,
    Repeats,
    annotator_table,
    code_ratings,
    name_of,
    nothing,
    repeat_warnings,
    sign,
    value_table,
)
from stats.arguments import Column, Flags, Floats, Integers, require, require_confidence, sum_by
from stats.libraries import np, pd, scipy


def sorted_positions(ratings: Ratings) -> tuple[Integers, Integers, Integers]:
    """Rows by item and ascending value; where each item starts; how many rows it has."""
    size = np.bincount(ratings.item, minlength=len(ratings.items))
    return np.lexsort((ratings.value, ratings.item)), np.cumsum(size) - size, size


def student_margin(se: Floats, freedom: Floats, confidence: float) -> Floats:
    degrees = np.where(freedom > 0, freedom, np.nan)
    return np.asarray(scipy.stats.t.ppf(0.5 + confidence / 2, degrees) * se)


def few_label_reasons(undefined: Flags, size: Integers) -> list[Reason | None]:
    return [
        (Reason.ONE_LABEL if count == 1 else Reason.TOO_FEW_LABELS) if missing else None
        for missing, count in zip(undefined.tolist(), size.tolist(), strict=True)
    ]


def coded(
    method: str, columns: tuple[Column, Column, Column], repeats: Repeats, **parameters: float
) -> tuple[Ratings, str]:
    require_confidence(parameters["confidence"])
    return code_ratings(*columns, repeats), sign(method, **parameters, repeats=repeats)


def average(
    signature: str, ratings: Ratings, label: Floats, se: Floats, margin: Floats, size: Integers
) -> Aggregation:
    reasons = few_label_reasons(np.isnan(margin), size)
    limits = (label - margin, label + margin)
    return averaged(signature, ratings, value_table(ratings, label, se, limits, reasons))


def averaged(signature: str, ratings: Ratings, labels: pd.DataFrame) -> Aggregation:
    bias, spread = departures(ratings, labels["label"].to_numpy())
    return Aggregation(
        method=name_of(signature),
        signature=signature,
        labels=labels,
        annotators=annotator_table(ratings, bias=bias, error_sd=spread),
        warnings=repeat_warnings(ratings),
    )


def departures(ratings: Ratings, label: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each annotator's ratings about the items' labels."""
    error = ratings.value - label[ratings.item]
    count = ratings.labels_per_annotator
    bias = ratings.per_annotator(error) / count
    squares = ratings.per_annotator((error - bias[ratings.annotator]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return bias, np.sqrt(squares / (count - 1))


def mean(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The mean of each item's ratings, with a t interval.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    confidence : float
        Confidence level of the intervals, between 0 and 1.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        An item with one rating has a label but no interval (``one_label``). ``annotators`` has
        ``bias`` and ``error_sd``: mean and standard deviation of an annotator's ratings about
        the labels of their items.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, or an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``.

    References
    ----------
    Student (1908). The probable error of a mean. Biometrika 6(1), 1-25.

    Examples
    --------
    >>> result = mean([1, 1, 2], list("aba"), [40, 60, 10])
    >>> result.labels[["item", "label", "se"]]
       item  label    se
    0     1   50.0  10.0
    1     2   10.0   NaN
    """
    ratings, signature = coded("mean", (items, annotators, values), repeats, confidence=confidence)
    if not ratings.n_labels:
        return nothing(signature)
    size = ratings.labels_per_item
    label = ratings.per_item(ratings.value) / size
    squares = ratings.per_item((ratings.value - label[ratings.item]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.sqrt(squares / (size * (size - 1)))
    margin = student_margin(se, size - 1, confidence)
    return average(signature, ratings, label, se, margin, size.astype(np.intp))


def trimmed_mean(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    trim: float = 0.2,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The mean of each item's ratings after cutting a share from both ends.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    trim : float
        Share cut from each end, at least 0 and below 0.5. Of n ratings, floor(trim * n) fall
        away at each end: with the default of 0.2, none below five ratings.
    confidence : float
        Confidence level of the intervals, between 0 and 1.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        Intervals are t intervals on the winsorised variance. ``annotators`` as for `mean`.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``, or `trim` or
        `confidence` is out of range.

    References
    ----------
    J. W. Tukey and D. H. McLaughlin (1963). Less vulnerable confidence and significance
    procedures for location based on a single sample. Sankhya A 25, 331-352.
    K. K. Yuen (1974). The two-sample trimmed t for unequal population variances. Biometrika
    61(1), 165-170.

    Examples
    --------
    >>> result = trimmed_mean([1] * 5, list("abcde"), [0, 48, 50, 52, 100])
    >>> result.labels[["item", "label", "n_labels"]]
       item  label  n_labels
    0     1   50.0         5
    """
    require(
        0 <= trim < 0.5,
        f"trim must be at least 0 and below 0.5, not {trim}",
        code="trim_out_of_range",
    )
    columns = (items, annotators, values)
    ratings, signature = coded("trimmed_mean", columns, repeats, trim=trim, confidence=confidence)
    if not ratings.n_labels:
        return nothing(signature)
    order, start, size = sorted_positions(ratings)
    item, value = ratings.item[order], ratings.value[order]
    n_items = len(ratings.items)
    # A tenth of ten is one, whatever the product of floats says.
    cut = np.floor(trim * size + 1e-9).astype(np.intp)
    lowest, highest = start + cut, start + size - cut - 1
    rank = np.arange(len(order))
    is_within = (rank >= lowest[item]) & (rank <= highest[item])
    n_within = (size - 2 * cut).astype(np.float64)
    label = sum_by(item[is_within], value[is_within], n_items) / n_within
    winsorised = value[np.clip(rank, lowest[item], highest[item])]
    centre = sum_by(item, winsorised, n_items) / size
    squares = sum_by(item, (winsorised - centre[item]) ** 2, n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        se = np.sqrt(squares / (n_within * (n_within - 1)))
    margin = student_margin(se, n_within - 1, confidence)
    return average(signature, ratings, label, se, margin, size)


MCKEAN_SCHRADER_Z = 2.5758293035489004


def median(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The median of each item's ratings, with an interval that assumes no distribution.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    confidence : float
        Least confidence level of the intervals, between 0 and 1.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        The limits are two of the item's own ratings, and cover the median with at least the
        level asked for. Where even its lowest and highest rating do not, which at 95 % is so
        below six ratings, they are NaN (``too_few_labels``; ``one_label``). ``se`` is McKean
        and Schrader's. ``annotators`` as for `mean`.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, or an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``.

    References
    ----------
    W. J. Conover (1999). Practical nonparametric statistics, section 3.2. Wiley.
    J. W. McKean and R. M. Schrader (1984). A comparison of methods for studentizing the sample
    median. Communications in Statistics - Simulation and Computation 13(6), 751-773.

    Examples
    --------
    >>> result = median([1] * 6, list("abcdef"), [10, 20, 30, 40, 50, 99])
    >>> result.labels[["label", "ci_low", "ci_high"]]
       label  ci_low  ci_high
    0   35.0    10.0     99.0
    """
    ratings, signature = coded(
        "median", (items, annotators, values), repeats, confidence=confidence
    )
    if not ratings.n_labels:
        return nothing(signature)
    order, start, size = sorted_positions(ratings)
    value = ratings.value[order]
    label = (value[start + (size - 1) // 2] + value[start + size // 2]) / 2
    depth = _depth(size, confidence)
    covered, inside = depth >= 0, np.maximum(depth, 0)
    limits = (
        np.where(covered, value[start + inside], np.nan),
        np.where(covered, value[start + size - 1 - inside], np.nan),
    )
    reasons = few_label_reasons(~covered, size)
    labels = value_table(ratings, label, _standard_error(value, start, size), limits, reasons)
    return averaged(signature, ratings, labels)


def _depth(size: Integers, confidence: float) -> Integers:
    """How many ratings lie outside the limits on each side; negative where there are none."""
    depth = np.asarray(scipy.stats.binom.ppf((1 - confidence) / 2, size, 0.5), dtype=np.intp)
    outside = scipy.stats.binom.cdf(depth, size, 0.5)
    return np.where(outside > (1 - confidence) / 2, depth - 1, depth)


def _standard_error(value: Floats, start: Integers, size: Integers) -> Floats:
    depth = np.rint((size + 1) / 2 - MCKEAN_SCHRADER_Z * np.sqrt(size / 4)).astype(np.intp)
    inside = np.maximum(depth, 1) - 1
    width = value[start + size - 1 - inside] - value[start + inside]
    return np.where(size > 1, width / (2 * MCKEAN_SCHRADER_Z), np.nan)


def zscore(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """The mean of each item's ratings in standard deviations of the annotator who gave them.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    confidence : float
        Confidence level of the intervals, between 0 and 1.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        ``label`` is in standard deviations, 0 being an annotator's mean; ``n_labels`` counts
        all ratings, ``n_used`` those that have a z-score. An annotator with one rating, or the
        same one each time, has none (their ``sd`` is NaN or 0); an item of such annotators
        only has no label (``no_usable_labels``).

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, or an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``.

    Notes
    -----
    z = (x - mean_j) / sd_j, with the n - 1 standard deviation of annotator j. It supposes that
    annotators saw items of like quality, as under random assignment; where they did not,
    `bias_precision` separates scale and items. Intervals take means and deviations as known.

    References
    ----------
    Y. Graham, T. Baldwin, A. Moffat and J. Zobel (2013). Continuous measurement scales in human
    evaluation of machine translation. LAW VII, 33-41.

    Examples
    --------
    >>> result = zscore([1, 2, 3] * 2, list("aaabbb"), [10, 20, 30, 70, 80, 90])
    >>> result.labels[["item", "label"]]
       item  label
    0     1   -1.0
    1     2    0.0
    2     3    1.0
    """
    ratings, signature = coded(
        "zscore", (items, annotators, values), repeats, confidence=confidence
    )
    if not ratings.n_labels:
        return nothing(signature)
    centre, spread = _scales(ratings)
    usable = (spread > 0)[ratings.annotator]
    z = np.zeros(ratings.n_labels)
    own = ratings.annotator[usable]
    z[usable] = (ratings.value[usable] - centre[own]) / spread[own]
    size = ratings.per_item(usable.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        label = ratings.per_item(z) / size
        squares = ratings.per_item(usable * (z - label[ratings.item]) ** 2)
        se = np.sqrt(squares / (size * (size - 1)))
    margin = student_margin(se, size - 1, confidence)
    labels = value_table(ratings, label, se, (label - margin, label + margin), _reasons(size))
    return Aggregation(
        method="zscore",
        signature=signature,
        labels=labels.assign(n_used=size.astype(np.intp)),
        annotators=annotator_table(ratings, mean=centre, sd=spread),
        warnings=repeat_warnings(ratings) + _scale_warnings(spread),
    )


def _scales(ratings: Ratings) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each annotator's ratings; exactly 0 where all are equal."""
    count = ratings.labels_per_annotator
    first = np.empty(len(count))
    first[ratings.annotator[::-1]] = ratings.value[::-1]
    # Centred on one of the ratings, equal ratings leave no rounding behind.
    offset = ratings.value - first[ratings.annotator]
    shift = ratings.per_annotator(offset) / count
    squares = ratings.per_annotator((offset - shift[ratings.annotator]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return first + shift, np.sqrt(squares / (count - 1))


def _reasons(size: Floats) -> list[Reason | None]:
    reasons: dict[int, Reason] = {0: Reason.NO_USABLE_LABELS, 1: Reason.ONE_LABEL}
    return [reasons.get(int(count)) for count in size]


def _scale_warnings(spread: Floats) -> tuple[str, ...]:
    without = int((~(spread > 0)).sum())
    return note_if(
        without,
        f"{without} of {len(spread)} annotators have no scale, having given one rating or the "
        "same one each time; their ratings were left out",
        "no_scale",
    )
