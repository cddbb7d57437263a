"""Whether people rate one system above another, whichever items and annotators are taken."""

from math import nan

import numpy as np

from error_codes import InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require_confidence,
    require_same_length,
    sum_by,
)
from stats.inference.crossed_means import (
    ROUNDING,
    MeanOfCells,
    mean_over_items_and_annotators,
    mean_with_limits,
    spread_by_items,
    two_way_spread,
)
from stats.libraries import scipy

PAIRED_SHARE = 0.8
"""Of ratings whose annotator rated the other system's output of the item too."""


def difference_of_systems(
    items: Column,
    annotators: Column,
    is_first: Column,
    values: Column,
    *,
    confidence: float = 0.95,
    skewed: bool = False,
) -> MeanOfCells:
    """The difference of two systems' means, whoever rated which of their outputs.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_ratings,)
        One row a rating of one of the two systems' output of an item.
    is_first : array-like of bool, shape (n_ratings,)
        Whether it is of the first system.
    confidence : float
        Confidence level of the interval.
    skewed : bool
        Whether to correct for skewness, as `mean_over_items_and_annotators` does.

    Returns
    -------
    MeanOfCells
        The first's mean less the second's. Where nearly every annotator rated both systems'
        outputs of an item, of their differences, as `mean_over_items_and_annotators`; otherwise
        by leaving out items and annotators.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, or a system has no rating.

    References
    ----------
    As `mean_over_items_and_annotators`.

    Examples
    --------
    >>> items, annotators = [1, 1, 2, 2, 3, 3], list("aaaaaa")
    >>> one = difference_of_systems(items, annotators, [1, 0] * 3, [5, 4, 4, 2, 3, 3])
    >>> one.value, one.method
    (1.0, 'items')
    """
    require_confidence(confidence)
    require_same_length(items=items, annotators=annotators, is_first=is_first, values=values)
    item, names = coded_in_order(items, "items")
    annotator, people = coded_in_order(annotators, "annotators")
    first = complete_numbers(is_first, "is_first") > 0
    y = complete_numbers(values, "values")
    if first.all() or not first.any():
        raise InvalidValue("is_first must name ratings of both systems", code="one_system")
    cell = item * len(people) + annotator
    paired, differences = _paired(cell, first, y)
    largest = float(np.abs(y).max())
    differences[np.abs(differences) < ROUNDING * largest] = 0.0
    if 2 * len(paired) >= PAIRED_SHARE * len(y):
        return mean_over_items_and_annotators(
            paired // len(people),
            paired % len(people),
            differences,
            confidence=confidence,
            skewed=skewed,
        )
    moved = np.where(first, y - y[first].mean(), -(y - y[~first].mean()))
    system = first.astype(np.intp)
    if len(people) < 2 or len(np.unique(cell)) == len(people):
        spread = spread_by_items(moved, item, system)
    else:
        spread = two_way_spread(moved, item, annotator, cell, system)
    return mean_with_limits(
        float(y[first].mean() - y[~first].mean()),
        spread,
        confidence,
        largest=largest,
        skewed=skewed,
        busiest_share=float(np.bincount(annotator).max() / len(y)),
        n_items=len(names),
        n_annotators=len(people),
        n=len(y),
    )


def _paired(
    cell: Integers, first: "np.ndarray[tuple[int], np.dtype[np.bool_]]", y: Floats
) -> tuple[Integers, Floats]:
    """Cells in which an annotator rated both systems, and the differences of their means."""
    size = int(cell.max()) + 1
    sums, counts = zip(
        *(
            (sum_by(cell[s], y[s], size), np.bincount(cell[s], minlength=size))
            for s in (first, ~first)
        ),
        strict=True,
    )
    both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    return both, sums[0][both] / counts[0][both] - sums[1][both] / counts[1][both]


def equivalence(mean: MeanOfCells, *, margin: float, side: str = "equivalent") -> tuple[float, str]:
    """Whether two systems are equivalent, or one not worse, by a margin fixed beforehand.

    Parameters
    ----------
    mean : MeanOfCells
        Of the differences, first less second.
    margin : float
        The largest difference that does not matter, above 0.
    side : {"equivalent", "not_worse"}
        Two one-sided tests, or only that the first is not worse than the second by the margin.

    Returns
    -------
    p : float
        One-sided; equivalence (or being not worse) is shown where it is below .05.
    conclusion : str
        ``side`` where shown at .05, else ``"not_shown"``.

    Raises
    ------
    ValueError
        If the margin is not positive or the side unknown.

    References
    ----------
    D. J. Schuirmann (1987). A comparison of the two one-sided tests procedure and the power
    approach. Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680.

    Examples
    --------
    >>> items = np.repeat(np.arange(40), 2)
    >>> values = 0.1 * np.random.default_rng(0).normal(size=80)
    >>> mean = mean_over_items_and_annotators(items, list("ab") * 40, values)
    >>> equivalence(mean, margin=0.5)[1]
    'equivalent'
    """
    if not margin > 0:
        raise InvalidValue(f"margin must be above 0, not {margin}", code="margin_out_of_range")
    if side not in ("equivalent", "not_worse"):
        raise InvalidValue(
            f"side must be 'equivalent' or 'not_worse', not {side!r}", code="unknown_side"
        )
    if not mean.se > 0 or mean.freedom < 1:
        return nan, "not_shown"
    above = float(scipy.stats.t.sf(mean.t_against(-margin), mean.freedom))
    below = float(scipy.stats.t.cdf(mean.t_against(margin), mean.freedom))
    p = max(above, below) if side == "equivalent" else above
    return p, side if p < 0.05 else "not_shown"
