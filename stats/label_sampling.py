from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from error_codes import CodedText
from stats.arguments import Flags, Floats, Integers, sum_by
from stats.jackknife import TINY, effective_freedom, mean_left_out
from stats.libraries import np, scipy

# A false warning in one of a hundred samples, over all columns together.
SIGNIFICANT = 0.01

MOST_CATEGORIES = 20
# Two labeled clusters may be the highest of a dozen by chance.
LEAST_CLUSTERS = 3


@dataclass(frozen=True, kw_only=True)
class LabelSampling:
    """How labeled items differ from the others in the column in which they differ most.

    `p` is two-sided and adjusted over columns. `is_apart` means that all labeled items are at one
    end of the column and all others at the other end, so that nothing is known of those.
    """

    column: str
    p: float
    is_apart: bool
    # Mean rank of labeled items less that of the others, as a share of all ranks.
    shift: float

    @property
    def is_random(self) -> bool:
        return not self.p < SIGNIFICANT

    @property
    def p_text(self) -> str:
        return "p < 0.0001" if self.p < 1e-4 else f"p = {self.p:.4f}"

    @property
    def notes(self) -> tuple[CodedText, ...]:
        if self.is_random:
            return ()
        if self.is_apart:
            side = "above" if self.shift > 0 else "below"
            text = (
                f"all labeled items are {side} the others in {self.column} ({self.p_text}): they "
                "are no random sample. Label items at random, or give the probabilities with "
                "which they were drawn"
            )
        else:
            text = (
                f"the labeled items differ from the others in {self.column} ({self.p_text}), "
                "unlike a random sample, and the result may be biased. Give the probabilities "
                "with which they were drawn"
            )
        return (CodedText(text, code="labels_not_random"),)


def compare_labeled(
    labeled: Flags,
    columns: Mapping[str, Floats],
    *,
    cluster: Integers | None = None,
    stratum: Integers | None = None,
) -> LabelSampling:
    """Labeled items against the others, in columns that are known of all items.

    Parameters
    ----------
    labeled : ndarray of bool, shape (n_items,)
        Whether people labeled the item.
    columns : mapping of str to ndarray of float, shape (n_items,)
        The judge's scores and covariates, by their names.
    cluster : ndarray of int, shape (n_items,), optional
        Codes from 0 of clusters of items that are not independent.
    stratum : ndarray of int, shape (n_items,), optional
        Codes of strata that were labeled at rates of their own: items are compared within them.

    Returns
    -------
    LabelSampling
        With p of 1 if nothing can be compared.

    Notes
    -----
    Two rank tests per column: Wilcoxon's of location, and the same of the ranks' distances from
    the middle, which shows labels of the middle or of both ends. Their variance is that of random
    labels (with ties, normal approximation). With clusters p is at least that of Student's t with
    the variance of the difference by leaving out clusters. p is multiplied by the number of tests.

    References
    ----------
    F. Wilcoxon (1945). Individual comparisons by ranking methods. Biometrics Bulletin 1, 80-83.
    A. R. Ansari and R. A. Bradley (1960). Rank-sum tests for dispersions. Annals of Mathematical
    Statistics 31(4), 1174-1189.

    Examples
    --------
    >>> judge = np.arange(100.0)
    >>> found = compare_labeled(judge > 79, {"judge": judge})
    >>> found.is_apart, found.is_random
    (True, False)
    >>> compare_labeled(judge % 5 == 2, {"judge": judge}).is_random
    True
    """
    groups = np.zeros(len(labeled), dtype=np.intp) if stratum is None else stratum
    found = []
    for name, values in columns.items():
        ranks = _centered_ranks(values, groups)
        p_location, shift = _test(labeled, ranks, groups, cluster)
        p_spread, _ = _test(labeled, _centered(np.abs(ranks), groups), groups, cluster)
        p = min(1.0, 2 * len(columns) * min(p_location, p_spread))
        is_apart = p < SIGNIFICANT and _are_apart(labeled, values, groups)
        found.append(LabelSampling(column=name, p=p, is_apart=is_apart, shift=shift))
    nothing = LabelSampling(column="", p=1.0, is_apart=False, shift=0.0)
    return min(found, key=lambda one: (not one.is_apart, one.p), default=nothing)


def label_columns(
    codes: Integers, categories: Sequence[Hashable], *, has_order: bool
) -> dict[str, Floats]:
    """Labels as columns that `compare_labeled` takes: their codes, or one column per category.

    Examples
    --------
    >>> columns = label_columns(np.array([0, 1, 1]), ["no", "yes"], has_order=False)
    >>> columns["how many are 'yes'"].tolist()
    [0.0, 1.0, 1.0]
    """
    if has_order or len(categories) > MOST_CATEGORIES:
        return {"their labels": codes.astype(np.float64)}
    return {
        f"how many are {str(name)!r}": (codes == code).astype(np.float64)
        for code, name in enumerate(categories)
    }


def _centered(values: Floats, group: Integers) -> Floats:
    size = np.maximum(np.bincount(group), 1)
    return np.asarray(values - (sum_by(group, values, len(size)) / size)[group])


def _centered_ranks(values: Floats, group: Integers) -> Floats:
    """Mid-ranks within each group, as shares of its size, less their mean."""
    ranks = np.zeros(len(values))
    for code in np.unique(group):
        rows = np.flatnonzero(group == code)
        _, position, count = np.unique(values[rows], return_inverse=True, return_counts=True)
        ranks[rows] = ((np.cumsum(count) - (count - 1) / 2)[position] - 0.5) / len(rows) - 0.5
    return ranks


def _test(
    labeled: Flags, centered: Floats, group: Integers, cluster: Integers | None
) -> tuple[float, float]:
    total = np.bincount(group).astype(np.float64)
    n = np.bincount(group[labeled], minlength=len(total)).astype(np.float64)
    both = (n > 0) & (n < total)
    used = both[group]
    if not used.any():
        return 1.0, 0.0
    weight = np.where(labeled, 1.0, 0.0) - (n / np.maximum(total, 1))[group]
    terms = np.where(used, weight * centered, 0.0)
    squares = sum_by(group, np.square(centered), len(total))
    sizes = n[both] * (1 - n[both] / total[both])
    variance = float((squares[both] / np.maximum(total[both] - 1, 1) * sizes).sum())
    if not variance > 1e-12:
        return 1.0, 0.0
    statistic = float(terms.sum())
    p = float(2 * scipy.stats.norm.sf(abs(statistic) / variance**0.5))
    if cluster is not None:
        p = max(p, _p_of_clusters(labeled[used], centered[used], cluster[used]))
    return p, statistic / float(sizes.sum())


def _p_of_clusters(labeled: Flags, values: Floats, cluster: Integers) -> float:
    """Two-sided p of a difference of means by leaving out clusters; 1 with too few of a kind.

    The degrees of freedom are Welch's: often few clusters are labeled of many.
    """
    parts = []
    for rows in (labeled, ~labeled):
        code = np.unique(cluster[rows], return_inverse=True)[1]
        if int(code.max()) + 1 < LEAST_CLUSTERS:
            return 1.0
        parts.append(mean_left_out(values[rows] - values[rows].mean(), code))
    variances = np.array([float(part.variance) for part in parts])
    code = np.unique(cluster, return_inverse=True)[1]
    means = values[labeled].mean(), values[~labeled].mean()
    residuals = np.where(labeled, values - means[0], means[1] - values)
    variance = float(mean_left_out(residuals, code, labeled.astype(np.intp)).variance)
    difference = float(means[0] - means[1])
    if not variance > TINY:
        return 1.0 if abs(difference) <= TINY else 0.0
    spare = np.array([effective_freedom(part.effective) for part in parts])
    squares = float((variances**2 / spare).sum())
    freedom = float(variances.sum()) ** 2 / squares if squares > 0 else float(spare.min())
    return float(2 * scipy.stats.t.sf(abs(difference) / variance**0.5, freedom))


def _are_apart(labeled: Flags, values: Floats, group: Integers) -> bool:
    """Whether in each group that has both no value lies on both sides, except at their border."""
    sides = set()
    for code in np.unique(group):
        inside = group == code
        own, others = values[inside & labeled], values[inside & ~labeled]
        if not len(own) or not len(others):
            continue
        if own.min() >= others.max():
            sides.add("above")
        elif own.max() <= others.min():
            sides.add("below")
        else:
            return False
    return bool(sides)
