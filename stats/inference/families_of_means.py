"""Degrees of freedom of means that are tested together, from what all of them vary by."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stats.arguments import Floats
from stats.inference.crossed_means import QUASI_F, SKEWED, MeanOfCells, satterthwaite


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
