from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stats.arguments import Flags, Floats, require, require_shares
from stats.inference.crossed_means import (
    FEW,
    FREEDOM_OF_FEWER,
    QUASI_F,
    SKEWED,
    MeanOfCells,
    satterthwaite,
)
from stats.libraries import np, scipy

# Items, or annotators, that are tried: nobody buys more.
LEAST_LEVELS, MOST_LEVELS = 2, 10_000_000
# Between those: each is 8 % more than the one before, and whole numbers are found between two.
SIZES_TRIED = 200
# Ratings an item: of fewer what annotators differ by is told from noise in too few items.
LEAST_AN_ITEM = 1.5
# Of a difference: a study of the size there is shows what it shows.
ROUNDING = 1e-9


def least_distinguishable(
    se: float, freedom: float, *, power: float = 0.8, alpha: float = 0.05
) -> float:
    """The least difference that a study of this precision tells from 0 as often as `power`.

    Parameters
    ----------
    se, freedom : float
        Of the difference: its standard error and degrees of freedom; without any, infinity is
        taken.
    power : float
        The chance of telling it.
    alpha : float
        The level of the two-sided test; less than .05 where p is adjusted for many tests.

    Returns
    -------
    float
        In units of `se`.

    Raises
    ------
    ValueError
        If `power` or `alpha` is not between 0 and 1.

    References
    ----------
    H. S. Bloom (1995). Minimum detectable effects. Evaluation Review 19(5), 547-556.

    Examples
    --------
    >>> round(least_distinguishable(1.0, 1000), 2), round(least_distinguishable(1.0, 2), 2)
    (2.8, 5.36)
    """
    require_shares(power=power, alpha=alpha)
    return float(se * _reach(np.array([freedom if freedom >= 1 else np.inf]), power, alpha)[0])


@dataclass(frozen=True)
class FamilyOfMeans:
    """By what cells of complete tables vary, on average over means that are tested together.

    Attributes
    ----------
    items, annotators, cells : float
        Variances of an item's, an annotator's and a cell's own part; the first two are below 0
        where they are so estimated.
    """

    items: float
    annotators: float
    cells: float

    def freedom(self, n_items: Floats | float, n_annotators: Floats | float) -> Floats:
        """Satterthwaite's degrees of freedom of a mean over tables of these sizes.

        Parameters
        ----------
        n_items, n_annotators : float or array-like of float
            Levels, at least 2 of each.

        Returns
        -------
        ndarray of float

        References
        ----------
        As of `family_of_means`.

        Examples
        --------
        >>> family = FamilyOfMeans(items=0.3, annotators=0.02, cells=1.0)
        >>> family.freedom(50, [4, 8]).round(1).tolist()
        [7.1, 23.9]
        """
        items, annotators = (np.asarray(n, dtype=float) for n in (n_items, n_annotators))
        of_cells = self.cells / (items * annotators)
        of_items, of_annotators = self.items / items, self.annotators / annotators
        return satterthwaite(
            of_items + of_cells, of_annotators + of_cells, of_cells, items, annotators
        )[1]

    def freedom_of(self, mean: MeanOfCells) -> float:
        """Degrees of freedom of one of the means, where it is tested with the others.

        Parameters
        ----------
        mean : MeanOfCells
            Of the family.

        Returns
        -------
        float
            Its own where they are fewer, or where its table is not complete.

        References
        ----------
        As of `family_of_means`.

        Examples
        --------
        >>> mean = MeanOfCells(
        ...     value=1.0, se=0.5, ci_low=0.0, ci_high=2.0, freedom=40.0, p=0.05,
        ...     method="quasi-f", n_items=50, n_annotators=4, n=200,
        ... )
        >>> round(FamilyOfMeans(items=0.3, annotators=0.02, cells=1.0).freedom_of(mean), 1)
        7.1
        """
        if mean.method.removesuffix(SKEWED) != QUASI_F:
            return mean.freedom
        return min(mean.freedom, float(self.freedom(mean.n_items, mean.n_annotators)))


@dataclass(frozen=True)
class Purchase:
    """How much more would tell a difference from 0, either by items or by annotators.

    Attributes
    ----------
    items : float
        Items in all, with as many annotators an item as now; infinite where annotators differ
        too much for any number of items.
    annotators : float
        Annotators in all, of the same items; infinite likewise.
    """

    items: float
    annotators: float


def purchase_to_distinguish(
    mean: MeanOfCells,
    difference: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    family: FamilyOfMeans | None = None,
) -> Purchase:
    """How many items, or annotators, would tell a difference of this size from 0.

    Parameters
    ----------
    mean : MeanOfCells
        Of the differences seen so far.
    difference : float
        The difference to be told from 0, not 0: the one seen, or the least that matters.
    power : float
        The chance of telling it.
    alpha : float
        The level of the two-sided test; less than .05 where p is adjusted for many tests.
    family : FamilyOfMeans, optional
        Of the tests over which p is adjusted: the test has at most its degrees of freedom.

    Returns
    -------
    Purchase
        Whole numbers, or infinity.

    Raises
    ------
    ValueError
        If `difference` is 0, or `power` or `alpha` not between 0 and 1.

    Notes
    -----
    Of the variances of the mean by items V_i, by annotators V_a and by cells V_c, k times as many
    items with the same annotators leave ``V_i / k + V_a - V_c``, and k times as many annotators of
    the same items ``V_a / k + V_i - V_c``. Either is enough where `least_distinguishable` by it,
    with the degrees of freedom that the test will then have, is no more than the difference: with
    two or three annotators those stay few, however many items there are. As many times the
    annotators are as many times the ratings an item. Of incomplete tables the components are
    estimated from the same sums.

    References
    ----------
    R. L. Brennan (2001). Generalizability Theory. Springer, chapter 4 (decision studies).

    Examples
    --------
    >>> from stats.inference.crossed_means import mean_over_items_and_annotators
    >>> items, annotators = np.repeat(np.arange(10), 4), np.tile(np.arange(4), 10)
    >>> values = np.random.default_rng(0).normal(size=10)[items] + 0.4
    >>> mean = mean_over_items_and_annotators(items, annotators, values)
    >>> purchase_to_distinguish(mean, 0.4)
    Purchase(items=32.0, annotators=inf)
    """
    require(difference != 0, "difference must not be 0", code="difference_out_of_range")
    require_shares(power=power, alpha=alpha)

    def enough(n_items: Floats, n_annotators: Floats) -> Flags:
        least = _least(mean, (n_items, n_annotators), power, alpha, family)
        return least <= abs(difference) * (1 + ROUNDING)

    items = _fewest(lambda sizes: enough(sizes, np.full_like(sizes, mean.n_annotators)))
    # Of items most of which were rated once nobody knows what others would rate otherwise.
    if not mean.of_annotators > 0 or mean.n < LEAST_AN_ITEM * mean.n_items:
        return Purchase(items, np.inf)
    of_items = _fewest(lambda sizes: enough(np.full_like(sizes, mean.n_items), sizes))
    return Purchase(items, of_items)


def least_with_items(
    mean: MeanOfCells,
    n_items: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    family: FamilyOfMeans | None = None,
) -> float:
    """The least difference that a study of so many items by the same annotators would tell from 0.

    Parameters
    ----------
    mean : MeanOfCells
        Of the differences seen so far.
    n_items : float
        Items in all, at least 2.
    power, alpha : float
        As of `least_distinguishable`.
    family : FamilyOfMeans, optional
        As of `purchase_to_distinguish`.

    Returns
    -------
    float
        As `purchase_to_distinguish` reckons.

    Raises
    ------
    ValueError
        If there are fewer than 2 items, or `power` or `alpha` is not between 0 and 1.

    References
    ----------
    As of `purchase_to_distinguish`.

    Examples
    --------
    >>> from stats.inference.crossed_means import mean_over_items_and_annotators
    >>> values = np.random.default_rng(0).normal(size=10)
    >>> mean = mean_over_items_and_annotators(np.arange(10), ["a"] * 10, values)
    >>> [round(least_with_items(mean, n) / mean.se, 2) for n in (10, 40)]
    [3.15, 1.44]
    """
    require(
        n_items >= LEAST_LEVELS,
        f"n_items must be at least {LEAST_LEVELS}, not {n_items}",
        code="n_items_out_of_range",
    )
    require_shares(power=power, alpha=alpha)
    sizes = np.array([float(n_items)]), np.array([float(mean.n_annotators)])
    return float(_least(mean, sizes, power, alpha, family)[0])


def _least(
    mean: MeanOfCells,
    sizes: tuple[Floats, Floats],
    power: float,
    alpha: float,
    family: FamilyOfMeans | None,
) -> Floats:
    variance, freedom = _precision(mean, *sizes)
    if family is not None and mean.method.removesuffix(SKEWED) == QUASI_F:
        freedom = np.minimum(freedom, family.freedom(*sizes))
    return np.sqrt(variance) * _reach(freedom, power, alpha)


def _precision(mean: MeanOfCells, n_items: Floats, n_annotators: Floats) -> tuple[Floats, Floats]:
    """The variance of the mean in studies of these sizes, and the degrees of freedom of its test,
    as `mean_over_items_and_annotators` has them."""
    times = n_items / mean.n_items
    method = mean.method.removesuffix(SKEWED)
    effective = times * mean.effective_items
    if method == "items":
        return mean.of_items / times, np.maximum(effective - 1, 1)
    people = n_annotators / mean.n_annotators
    own_items, own_annotators, both = _components(mean, is_complete=method == QUASI_F)
    of_cells = both / (times * people)
    of_items, of_annotators = own_items / times + of_cells, own_annotators / people + of_cells
    variance = of_items + of_annotators - of_cells
    if method != QUASI_F:
        fewer = np.minimum(effective, people * mean.effective_annotators)
        return variance, np.maximum(fewer - 1, 1)
    fewer = np.minimum(n_items, n_annotators)
    squares = of_items**2 / (n_items - 1) + of_annotators**2 / (n_annotators - 1)
    squares = squares + of_cells**2 / ((n_items - 1) * (n_annotators - 1))
    freedom = variance**2 / squares
    if min(own_items, own_annotators) == 0:
        freedom = (n_items if mean.of_items >= mean.of_annotators else n_annotators) - 1
    return variance, np.where(
        fewer < FEW, np.minimum(freedom, FREEDOM_OF_FEWER * (fewer - 1)), freedom
    )


def _components(mean: MeanOfCells, *, is_complete: bool) -> tuple[float, float, float]:
    """What items, annotators and both together add to the variance; one that is estimated below 0
    counts as 0."""
    if is_complete:
        both = min(mean.of_cells, max(mean.of_items, mean.of_annotators))
        return max(0.0, mean.of_items - both), max(0.0, mean.of_annotators - both), both
    # Of an incomplete table sums over cells, as if they were independent, hold what items and what
    # annotators share as well: of an item with k ratings the k-th part. Of annotators who rate
    # unequally many it is that of as many equal ones.
    an_item, an_annotator = mean.n / mean.effective_items, mean.n / mean.effective_annotators
    items, annotators = (
        max(0.0, part - mean.of_cells) / (1 - 1 / n) if n > 1 else 0.0
        for part, n in ((mean.of_items, an_item), (mean.of_annotators, an_annotator))
    )
    both = max(0.0, mean.of_cells - items / an_item - annotators / an_annotator)
    return items, annotators, both


def _reach(freedom: Floats, power: float, alpha: float) -> Floats:
    of_test = scipy.special.stdtrit(freedom, 1 - alpha / 2)
    return np.asarray(
        np.where(freedom >= 1, of_test + scipy.special.stdtrit(freedom, power), np.inf)
    )


def _fewest(is_enough: Callable[[Floats], Flags]) -> float:
    sizes = np.unique(np.geomspace(LEAST_LEVELS, MOST_LEVELS, SIZES_TRIED).round())
    found = np.flatnonzero(is_enough(sizes))
    if not len(found):
        return np.inf
    high = sizes[found[0]]
    low = sizes[found[0] - 1] if found[0] else high - 1
    while high - low > 1:
        middle = np.floor((low + high) / 2)
        low, high = (low, middle) if is_enough(np.array([middle]))[0] else (middle, high)
    return float(high)


def family_of_means(means: Sequence[MeanOfCells]) -> FamilyOfMeans | None:
    """What means that are tested together vary by.

    Parameters
    ----------
    means : sequence of MeanOfCells
        Of all tests over which p is adjusted.

    Returns
    -------
    FamilyOfMeans or None
        Of those of complete tables; None where there are none.

    Notes
    -----
    Satterthwaite's degrees of freedom are estimated from the mean squares that the standard error
    is made of. Where few annotators happen to differ little, the standard error is too small and
    the degrees of freedom are too many, both at once. At .05 that hardly matters; of many tests,
    at a small part of .05 each, the least p is of just such a pair: of ten to thirty equal
    systems rated by four or five annotators, Holm's method found two that differ in up to .82 of
    simulated studies, and of thirty rated by eight in up to .21. What all tests vary by on average
    says how many degrees of freedom they have independently of one that came out small: with it at
    most .05 (3 to 30 systems, 3 to 20 annotators, 4 to 100 items, ratings on two to five points
    as well, and systems on some of which annotators differ more; 3,000 studies of each setting
    where it is most).

    References
    ----------
    F. E. Satterthwaite (1946). An approximate distribution of estimates of variance components.
    Biometrics Bulletin 2(6), 110-114.

    Examples
    --------
    >>> from stats.inference.crossed_means import mean_over_items_and_annotators
    >>> rng = np.random.default_rng(3)
    >>> items, annotators = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    >>> means = [
    ...     mean_over_items_and_annotators(
    ...         items, annotators, 0.3 * rng.normal(size=4)[annotators] + rng.normal(size=120)
    ...     )
    ...     for _ in range(3)
    ... ]
    >>> family = family_of_means(means)
    >>> [(round(mean.freedom, 1), round(family.freedom_of(mean), 1)) for mean in means]
    [(3.2, 3.1), (3.0, 3.0), (29.0, 3.1)]
    """
    tables = [mean for mean in means if mean.method.removesuffix(SKEWED) == QUASI_F]
    if not tables:
        return None
    parts = [
        (
            mean.n_items * (mean.of_items - mean.of_cells),
            mean.n_annotators * (mean.of_annotators - mean.of_cells),
            mean.n * mean.of_cells,
        )
        for mean in tables
    ]
    return FamilyOfMeans(*(float(part) for part in np.mean(parts, axis=0)))


def variances_of_means(means: Sequence[MeanOfCells]) -> FamilyOfMeans | None:
    """What means vary by, on average, whether or not their tables are complete.

    Parameters
    ----------
    means : sequence of MeanOfCells
        Of a pilot, such as the differences of its pairs of systems.

    Returns
    -------
    FamilyOfMeans or None
        Components that are estimated below 0 count as 0. None if no mean generalises over
        annotators: then the parts of items and of ratings cannot be separated.

    References
    ----------
    As of `purchase_to_distinguish`.

    Examples
    --------
    >>> from stats.inference.crossed_means import mean_over_items_and_annotators
    >>> rng = np.random.default_rng(0)
    >>> items, annotators = np.repeat(np.arange(400), 3), rng.integers(0, 40, 1200)
    >>> values = 0.5 * rng.normal(size=400)[items] + rng.normal(size=1200)
    >>> found = variances_of_means([mean_over_items_and_annotators(items, annotators, values)])
    >>> round(found.items, 2), round(found.annotators, 2), round(found.cells, 2)
    (0.21, 0.0, 1.07)
    """
    parts = [
        np.array(_components(mean, is_complete=mean.method.removesuffix(SKEWED) == QUASI_F))
        * (mean.n_items, mean.n_annotators, mean.n)
        for mean in means
        if mean.of_annotators >= 0
    ]
    return FamilyOfMeans(*np.mean(parts, axis=0).tolist()) if parts else None


def least_of_design(
    family: FamilyOfMeans,
    *,
    n_items: int,
    n_annotators: int,
    n_each: int,
    power: float = 0.8,
    alpha: float = 0.05,
) -> float:
    """The least difference that a planned study distinguishes from 0 as often as `power`.

    Parameters
    ----------
    family : FamilyOfMeans
        By what the difference varies.
    n_items, n_annotators : int
        Items, and annotators in all, who share the work equally.
    n_each : int
        Annotators of each item, at most `n_annotators`.
    power, alpha : float
        As of `least_distinguishable`.

    Returns
    -------
    float
        NaN if there are fewer than two items or annotators.

    Raises
    ------
    ValueError
        If `n_each` is not between 1 and `n_annotators`, or `power` or `alpha` is not between 0
        and 1.

    Notes
    -----
    The test is that of `mean_over_items_and_annotators`. Its degrees of freedom are those of a
    complete table if all annotators rate all items, and otherwise one less than the fewer of items
    and annotators. In 600 simulated studies of each of seven designs (8 to 200 items, 2 to 5
    annotators of each, 4 to 180 in all, levels of .05 to .008) the power at this difference was
    .77 to .81.

    References
    ----------
    As of `least_distinguishable`.

    Examples
    --------
    >>> family = FamilyOfMeans(items=0.3, annotators=0.0, cells=1.0)
    >>> round(least_of_design(family, n_items=60, n_annotators=180, n_each=3), 3)
    0.293
    """
    require(
        1 <= n_each <= n_annotators,
        f"n_each must be between 1 and n_annotators ({n_annotators}), not {n_each}",
        code="n_each_out_of_range",
    )
    if min(n_items, n_annotators) < LEAST_LEVELS:
        return np.nan
    parts = [max(0.0, part) for part in (family.items, family.annotators, family.cells)]
    variance = np.dot(parts, [1 / n_items, 1 / n_annotators, 1 / (n_items * n_each)])
    fewer = min(n_items, n_annotators)
    freedom = float(fewer - 1)
    if n_each == n_annotators:
        own = float(family.freedom(n_items, n_annotators))
        freedom = min(own, FREEDOM_OF_FEWER * freedom) if fewer < FEW else own
    return least_distinguishable(float(np.sqrt(variance)), freedom, power=power, alpha=alpha)
