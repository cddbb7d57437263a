from collections.abc import Hashable, Sequence
from math import nan

from error_codes import note_if
from stats.agreement.intervals import (
    NO_INTERVAL,
    CiChoice,
    Interval,
    Request,
    interval_of,
    interval_warnings,
    is_few,
    kappa_posterior,
    linearised_t,
    normal,
)
from stats.agreement.kappa import AnyWeights, Kappas, agreement_weights, kappas, recoded
from stats.agreement.result import (
    Agreement,
    CiMethod,
    Reason,
    Sums,
    by_cluster,
    few_items_warnings,
    prevalence_warnings,
    rare_label_warnings,
    table_of,
)
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    coded_in_order,
    require_same_length,
    series,
    sum_by,
)
from stats.libraries import np, pd


def cohen_kappa(
    first: Column,
    second: Column,
    *,
    weights: AnyWeights | None = None,
    categories: Sequence[Hashable] | None = None,
    clusters: Column | None = None,
    confidence: float = 0.95,
    ci: CiChoice = "jackknife",
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> Agreement:
    """Cohen's kappa of two annotators who labelled the same items.

    Parameters
    ----------
    first, second : array-like, shape (n_items,)
        The labels of the two annotators, item by item.
    weights : {None, "linear", "quadratic"} or array-like, shape (n_categories, n_categories)
        Whether disagreements count all the same, or by the distance (or its square) of the two
        categories' positions in `categories`, or the weight of agreement of every two
        categories: 1 on the diagonal, at most 1 elsewhere, first annotator in rows.
    categories : sequence, optional
        All categories of the scale, in order. Without it, those that occur, ascending. A
        category nobody used leaves plain kappa as it is but changes a weighted one. Positions
        count, not numbers: for unevenly spaced numbers use `krippendorff_alpha` at the
        interval level.
    clusters : array-like, shape (n_items,), optional
        The cluster of each item, where items are not independent.
    confidence : float
        Confidence level of the interval, between 0 and 1.
    ci : {"jackknife", "analytic", "bootstrap"}
        How the interval is made. The default gives a Dirichlet posterior instead where items
        are fewer than 100, kappa exceeds .8 or a category is never agreed on, without clusters
        and with up to 20 categories: the others then cover far less than they say.
    n_resamples : int
        Bootstrap samples.
    rng : int or Generator
        Seed or generator of the bootstrap.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where there is no item, one item, or where both
        annotators gave one and the same category throughout.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value or one `categories` does not
        list, or if `weights`, `categories` or `confidence` is not usable.

    Notes
    -----
    Kappa is ``(p_o - p_e) / (1 - p_e)``. The analytic interval is normal, with the asymptotic
    standard error of Fleiss, Cohen and Everitt, which replaced the one of Cohen's own paper;
    with clusters it is Student's t of the summed influences. Beyond 2,000 categories it is
    given whatever `ci` asks for, as `ci_method` says.

    References
    ----------
    J. Cohen (1960). A coefficient of agreement for nominal scales. Educational and
    Psychological Measurement 20(1), 37-46.
    J. Cohen (1968). Weighted kappa. Psychological Bulletin 70(4), 213-220.
    J. L. Fleiss, J. Cohen and B. S. Everitt (1969). Large sample standard errors of kappa and
    weighted kappa. Psychological Bulletin 72(5), 323-327.

    Examples
    --------
    >>> result = cohen_kappa(list("yynn"), list("yyny"), ci="analytic")
    >>> result.value, round(result.se, 3), result.observed, result.expected
    (0.5, 0.375, 0.75, 0.5)
    >>> str(cohen_kappa(["y", "y"], ["y", "y"]).reason)
    'single_category'
    """
    request = Request(confidence, ci, n_resamples, rng)
    n = require_same_length(first=first, second=second)
    for column, name in ((first, "first"), (second, "second")):
        recoded(*coded(column, name), categories, name)  # refuses a missing or unlisted label
    both = pd.concat([series(first, "first"), series(second, "second")], ignore_index=True)
    codes, domain = recoded(
        *coded_in_order(both, "first and second"), categories, "first or second"
    )
    cluster = None
    if clusters is not None:
        require_same_length(first=first, clusters=clusters)
        cluster = coded(clusters, "clusters")[0]
    guessed = weights is not None and categories is None
    return cohen_kappa_of_codes(
        codes[:n], codes[n:], len(domain), weights, request, cluster=cluster, guessed=guessed
    )


def cohen_kappa_of_codes(
    first: Integers,
    second: Integers,
    n_categories: int,
    weights: AnyWeights | None,
    request: Request,
    *,
    cluster: Integers | None = None,
    guessed: bool = False,
) -> Agreement:
    name = kappa_name(weights)
    table = agreement_weights(weights, n_categories)
    if not len(first):
        return _result(name, None, first, request, NO_INTERVAL, guessed=guessed)
    terms = kappas(np.zeros(len(first), np.intp), first, second, 1, n_categories, table)
    interval = NO_INTERVAL
    if not np.isnan(terms.kappa[0]):
        interval = cohen_interval(first, second, n_categories, table, terms, request, cluster)
    return _result(name, terms, np.concatenate([first, second]), request, interval, guessed=guessed)


def kappa_name(weights: AnyWeights | None) -> str:
    if weights is None:
        return "cohen_kappa"
    return f"cohen_kappa_{weights if isinstance(weights, str) else 'weighted'}"


def _result(
    name: str,
    terms: Kappas | None,
    codes: Integers,
    request: Request,
    interval: Interval,
    *,
    guessed: bool,
) -> Agreement:
    n = len(codes) // 2
    reason = _reason(n, terms)
    value = nan if terms is None else float(terms.kappa[0])
    prevalence = float(np.bincount(codes).max()) / len(codes) if n else nan
    drawn = interval.method in (CiMethod.BOOTSTRAP_ITEMS, CiMethod.BOOTSTRAP_CLUSTERS)
    return Agreement(
        name=name,
        value=value,
        se=interval.se,
        ci_low=interval.low,
        ci_high=interval.high,
        ci_method=interval.method,
        confidence=request.confidence,
        observed=nan if terms is None else float(terms.observed[0]),
        expected=nan if terms is None else float(terms.expected[0]),
        n_items=n,
        n_items_dropped=0,
        n_annotators=2,
        n_labels=len(codes),
        n_pairable=len(codes),
        prevalence=prevalence,
        reason=reason,
        level="nominal" if name == "cohen_kappa" else "ordinal",
        n_resamples=request.n_resamples if drawn else 0,
        seed=request.seed if drawn else None,
        warnings=() if reason else _warnings(value, codes, prevalence, interval, guessed=guessed),
    )


def _reason(n: int, terms: Kappas | None) -> Reason | None:
    if terms is None:
        return Reason.NO_OVERLAP
    if n == 1:
        return Reason.SINGLE_ITEM
    return Reason.SINGLE_CATEGORY if terms.same_category[0] else None


def _warnings(
    value: float, codes: Integers, prevalence: float, interval: Interval, *, guessed: bool
) -> tuple[str, ...]:
    warnings = prevalence_warnings(prevalence) + few_items_warnings(len(codes) // 2)
    halves = np.split(codes, 2)
    classes, n_labels = np.unique(codes, return_counts=True)
    if len(classes) > 1:
        few, n_classes = int(n_labels.min()), len(classes)
        warnings += rare_label_warnings(few, n_annotators=2, n_categories=n_classes)
    for name, half in zip(("first", "second"), halves, strict=True):
        warnings += note_if(
            (half == half[0]).all(),
            f"the {name} annotator gave every item the same category",
            "constant_annotator",
        )
    warnings += note_if(
        guessed,
        "categories come from the data: an unused one changes a weighted kappa",
        "guessed_categories",
    )
    return warnings + interval_warnings(value, interval)


# Expected agreement within this of 1 counts as 1: what is left is rounding.
TINY = 1e-11
# Categories of a posterior, of which 20,000 tables are drawn.
MAX_POSTERIOR = 20
# Of a dense table of categories, which then takes 32 MB.
MAX_TABLED_CATEGORIES = 2000


def cohen_interval(
    first: Integers,
    second: Integers,
    n_categories: int,
    weights: Floats | None,
    terms: Kappas,
    request: Request,
    cluster: Integers | None,
) -> Interval:
    value, n = float(terms.kappa[0]), len(first)
    groups = np.arange(n) if cluster is None else cluster

    def analytic() -> Interval:
        if cluster is None:
            return normal(value, float(terms.se[0]), request.confidence)
        moved = _influence(first, second, n_categories, weights, terms)
        n_clusters = int(cluster.max()) + 1
        summed = sum_by(cluster, moved, n_clusters) * n_clusters / n
        return linearised_t(value, summed, request.confidence)

    if request.method == "jackknife" and cluster is None and n_categories <= MAX_POSTERIOR:
        symmetric = weights is None or bool(np.allclose(weights, weights.T))
        if symmetric and is_few(first, second, n_categories, value):
            table = np.zeros((n_categories, n_categories))
            np.add.at(table, (first, second), 1.0)
            return kappa_posterior(table, confidence=request.confidence, weights=weights)
    if n_categories > MAX_TABLED_CATEGORIES:  # the table of the quadratic form would not fit
        return analytic()
    return interval_of(
        value,
        cohen_sums(first, second, n_categories, weights, groups),
        request,
        clustered=cluster is not None,
        analytic=analytic,
        # Few clusters that differ in how much they disagree: limits of kappa's own scale lie too
        # high, as the part `kappa_clusters` of docs/coverage.md says.
        labels_per_item=None if cluster is None else 2.0,
    )


def cohen_sums(
    first: Integers, second: Integers, n_categories: int, weights: Floats | None, group: Integers
) -> Sums:
    n_groups = int(group.max()) + 1
    agree = (first == second).astype(np.float64) if weights is None else weights[first, second]
    linear = by_cluster(group, n_groups, np.ones(len(first)), agree)
    columns = np.concatenate([first, second + n_categories])
    rows, ones = np.concatenate([group, group]), np.ones(2 * len(first))
    vector = table_of(rows, columns, ones, (n_groups, 2 * n_categories))
    cross = np.eye(n_categories) if weights is None else weights
    empty = np.zeros_like(cross)
    form = np.block([[empty, cross / 2], [cross.T / 2, empty]])

    def evaluate(n: Floats, agreed: Floats, chance: Floats) -> Floats:
        expected = chance / np.square(n)
        value = (agreed / n - expected) / (1 - expected)
        return np.asarray(np.where((1 - expected > TINY) & (n >= 2), value, np.nan))

    return Sums(linear, evaluate, vector, form)


def _influence(
    first: Integers, second: Integers, n_categories: int, weights: Floats | None, terms: Kappas
) -> Floats:
    n = len(first)
    rows = np.bincount(first, minlength=n_categories) / n
    columns = np.bincount(second, minlength=n_categories) / n
    cross = np.eye(n_categories) if weights is None else weights
    observed, expected = float(terms.observed[0]), float(terms.expected[0])
    chance = (cross @ columns)[first] + (rows @ cross)[second]
    left = 1 - expected
    agreed = (cross[first, second] - observed) / left
    return np.asarray(agreed - (1 - observed) * (chance - 2 * expected) / left**2)
