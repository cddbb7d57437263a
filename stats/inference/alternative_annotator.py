from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import nan
from typing import get_args

from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    require,
    require_at_least,
    require_confidence,
    require_one_of,
    require_shares,
    sum_by,
)
from stats.inference.annotator_wins import (
    ROUNDING,
    AlternativeTest,
    AnnotatorLabels,
    AnnotatorTest,
    Control,
    Level,
    Undecided,
    is_whole,
    labels_of,
    wins,
)
from stats.libraries import np, scipy
from stats.proportions import jeffreys_limits
from stats.significance.adjustments import benjamini_yekutieli

LEAST_ANNOTATORS = 3
WINS_AT = 0.5
EPSILON_STEPS = 1000


def alternative_annotator_test(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    judge: Hashable,
    level: Level = "nominal",
    epsilon: float = 0.1,
    clusters: Column | None = None,
    min_items: int = 30,
    q: float = 0.05,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    n_shuffles: int = 100,
    rng: int | np.random.Generator = 0,
) -> AlternativeTest:
    """Test whether a judge is as good as leaving one of the annotators in.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; the judge is one of the annotators.
    judge : Hashable
        The name of the judge among `annotators`.
    level : {"nominal", "interval"}
        Labels that are equal or not, or numbers whose root mean square distance counts. Where
        all the annotators' numbers are whole, the judge's are rounded, so that ties can occur.
    epsilon : float
        By how much an annotator may win more often than the judge. The authors advise .2 for
        experts, .15 for skilled annotators, .1 for a crowd; fix it before seeing the data.
    clusters : array-like, shape (n_labels,), optional
        The cluster of each row's item, where items are not independent.
    min_items : int
        Annotators with fewer usable items are left out.
    q : float
        Rate of false discoveries over annotators.
    confidence : float
        Confidence level of the intervals.
    n_resamples, n_shuffles : int
        Bootstrap resamples of items (or clusters) for the advantage; shuffles of the judge.
    rng : int or Generator
        Seed or generator of both.

    Returns
    -------
    AlternativeTest
        With a `reason` and NaN where fewer than three annotators have enough items.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, a label is repeated, `judge`
        is not among the annotators, an item is in two clusters, or `level`, `epsilon`, `q`,
        `min_items` or `confidence` is out of range.

    Notes
    -----
    For each annotator and item, the judge and the annotator are scored against the others;
    who scores at least as high wins, so that ties count for both. A one-sided t test asks
    whether the annotator's wins exceed the judge's by less than epsilon. With clusters the mean
    is a ratio with a linearised standard error and t has one degree of freedom less than there
    are clusters. A judge that always says the commoner class passes where that class is common
    enough: that is what the controls are for.

    References
    ----------
    N. Calderon, R. Reichart and R. Dror (2025). The alternative annotator test for
    LLM-as-a-judge: How to statistically justify replacing human annotators with LLMs. ACL 2025.
    Y. Benjamini and D. Yekutieli (2001). The control of the false discovery rate in multiple
    testing under dependency. Annals of Statistics 29(4), 1165-1188.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 4, 60)
    >>> said = [np.where(rng.random(60) < share, truth, 9) for share in (0.7, 0.7, 0.7, 0.95)]
    >>> result = alternative_annotator_test(
    ...     np.tile(np.arange(60), 4), np.repeat(list("abcJ"), 60), np.concatenate(said), judge="J"
    ... )
    >>> result.passes, result.controls["constant"].passes
    (True, False)
    """
    _require(level, epsilon, min_items, q, confidence, n_resamples, n_shuffles)
    ratings = labels_of(items, annotators, values, judge, level, clusters)
    rules = _Rules(epsilon, min_items, q, confidence)
    result = _tested(ratings, rules)
    if result.reason is not None:
        return result
    generator = np.random.default_rng(rng)
    low, high = _advantage_interval(ratings, rules, n_resamples, generator)
    return replace(
        result,
        advantage_low=low,
        advantage_high=high,
        least_epsilon=_least_epsilon(ratings, rules),
        controls={
            "constant": _constant(ratings, rules),
            "shuffled": _shuffled(ratings, rules, n_shuffles, generator),
        },
        notes=_notes(result),
    )


@dataclass(frozen=True)
class _Rules:
    epsilon: float
    min_items: int
    q: float
    confidence: float


def _require(
    level: str,
    epsilon: float,
    min_items: int,
    q: float,
    confidence: float,
    n_resamples: int,
    n_shuffles: int,
) -> None:
    require_one_of(level=(level, get_args(Level)))
    require_confidence(confidence)
    require(
        0 <= epsilon < 1,
        f"epsilon must lie between 0 and 1, not {epsilon}",
        code="epsilon_out_of_range",
    )
    require_shares(q=q)
    require_at_least(2, min_items=min_items)
    require(
        n_resamples >= 2 and n_shuffles >= 1,
        "n_resamples must be at least 2 and n_shuffles at least 1",
        code="n_resamples_out_of_range",
    )


def _tested(
    ratings: AnnotatorLabels, rules: _Rules, judge: Floats | None = None
) -> AlternativeTest:
    nearer, farther = wins(ratings, ratings.judge if judge is None else judge)
    n_usable = (~np.isnan(nearer)).sum(axis=0)
    tested = np.flatnonzero(n_usable >= rules.min_items)
    skipped = tuple(
        name
        for name, count in zip(ratings.annotators, n_usable, strict=True)
        if count < rules.min_items
    )
    n_items = int((~np.isnan(nearer)).any(axis=1).sum())
    if len(tested) < LEAST_ANNOTATORS:
        return AlternativeTest(
            epsilon=rules.epsilon,
            n_items=n_items,
            skipped=skipped,
            rounded=ratings.rounded,
            reason=Undecided.TOO_FEW_ANNOTATORS if n_items else Undecided.NO_JUDGE,
        )
    tests = [
        _annotator_test(ratings.annotators[at], nearer[:, at], farther[:, at], ratings, rules)
        for at in tested
    ]
    adjusted = benjamini_yekutieli([test.p for test in tests])
    tests = [replace(t, p_adjusted=float(p)) for t, p in zip(tests, adjusted, strict=True)]
    rate = float((adjusted <= rules.q).mean())
    return AlternativeTest(
        winning_rate=rate,
        passes=rate >= WINS_AT,
        advantage_probability=float(np.mean([test.judge_wins for test in tests])),
        epsilon=rules.epsilon,
        n_items=n_items,
        annotators=tuple(tests),
        skipped=skipped,
        rounded=ratings.rounded,
    )


def _annotator_test(
    name: Hashable, nearer: Floats, farther: Floats, ratings: AnnotatorLabels, rules: _Rules
) -> AnnotatorTest:
    known = ~np.isnan(nearer)
    difference = farther[known] - nearer[known]
    mean, se, n_clusters = _clustered_mean(difference, ratings.cluster[known])
    freedom = n_clusters - 1
    half = (
        float(scipy.stats.t.ppf((1 + rules.confidence) / 2, freedom)) * se if freedom > 0 else nan
    )
    no_spread = not se > ROUNDING
    return AnnotatorTest(
        annotator=name,
        n=len(difference),
        n_clusters=n_clusters,
        judge_wins=float(nearer[known].mean()),
        annotator_wins=float(farther[known].mean()),
        mean_difference=mean,
        ci_low=nan if no_spread else mean - half,
        ci_high=nan if no_spread else mean + half,
        p=_p_below(mean, se, rules.epsilon, freedom),
        no_spread=no_spread,
    )


def _clustered_mean(values: Floats, cluster: Integers) -> tuple[float, float, int]:
    codes = np.unique(cluster, return_inverse=True)[1]
    count = int(codes.max()) + 1
    mean = float(values.mean())
    if count < 2:
        return mean, nan, count
    sums = sum_by(codes, values - mean, count)
    return mean, float(np.sqrt(count / (count - 1) * np.square(sums).sum())) / len(values), count


def _p_below(mean: float, se: float, epsilon: float, freedom: int) -> float:
    if freedom < 1:
        return nan
    if not se > ROUNDING:
        return 0.0 if mean < epsilon else 1.0
    return float(scipy.stats.t.cdf((mean - epsilon) / se, freedom))


def _least_epsilon(ratings: AnnotatorLabels, rules: _Rules) -> float:
    low, high = 0, EPSILON_STEPS
    if not _tested(ratings, replace(rules, epsilon=1.0)).passes:
        return nan
    while low < high:
        middle = (low + high) // 2
        if _tested(ratings, replace(rules, epsilon=middle / EPSILON_STEPS)).passes:
            high = middle
        else:
            low = middle + 1
    return high / EPSILON_STEPS


def _advantage_interval(
    ratings: AnnotatorLabels, rules: _Rules, n_resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    nearer, _ = wins(ratings, ratings.judge)
    nearer = nearer[:, (~np.isnan(nearer)).sum(axis=0) >= rules.min_items]
    used = ~np.isnan(nearer).all(axis=1)
    nearer = nearer[used]
    cluster = np.unique(ratings.cluster[used], return_inverse=True)[1]
    n_clusters = int(cluster.max()) + 1
    sums, counts = (
        np.stack([sum_by(cluster, column, n_clusters) for column in table.T], axis=1)
        for table in (np.nan_to_num(nearer), (~np.isnan(nearer)).astype(np.float64))
    )
    drawn = rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), n_resamples)
    shares = (drawn @ sums) / np.where(drawn @ counts > 0, drawn @ counts, np.nan)
    means = np.nanmean(shares, axis=1)
    low, high = np.quantile(means, [(1 - rules.confidence) / 2, (1 + rules.confidence) / 2])
    if high - low < ROUNDING:  # the judge won or tied everywhere: a share of all items is 1
        return jeffreys_limits(float(means.mean()) * n_clusters, n_clusters, rules.confidence)
    return float(low), float(high)


def _constant(ratings: AnnotatorLabels, rules: _Rules) -> Control:
    humans = ratings.humans[~np.isnan(ratings.humans)]
    if ratings.level == "nominal":
        value = float(np.bincount(humans.astype(np.intp)).argmax())
        constant: object = ratings.domain[int(value)]
    else:
        value = float(np.median(humans))
        value = float(np.round(value)) if is_whole(humans) else value
        constant = value
    result = _tested(ratings, rules, np.where(np.isnan(ratings.judge), np.nan, value))
    return Control(
        winning_rate=result.winning_rate,
        advantage_probability=result.advantage_probability,
        share_passing=float(result.passes),
        passes=result.passes,
        value=constant,
    )


def _shuffled(
    ratings: AnnotatorLabels, rules: _Rules, n_shuffles: int, rng: np.random.Generator
) -> Control:
    known = np.flatnonzero(~np.isnan(ratings.judge))
    results = []
    for _ in range(n_shuffles):
        judge = ratings.judge.copy()
        judge[known] = judge[rng.permutation(known)]
        results.append(_tested(ratings, rules, judge))
    passing: Flags = np.array([result.passes for result in results])
    return Control(
        winning_rate=float(np.mean([result.winning_rate for result in results])),
        advantage_probability=float(np.mean([r.advantage_probability for r in results])),
        share_passing=float(passing.mean()),
        passes=bool(passing.mean() > rules.q),
    )


def _notes(result: AlternativeTest) -> tuple[str, ...]:
    named = ", ".join(str(name) for name in result.skipped)
    no_spread = any(test.no_spread for test in result.annotators)
    notes = (
        (result.skipped, f"too few items with others, not counted: {named}"),
        (no_spread, "an annotator's differences are all the same, so that its p says nothing"),
        (
            result.rounded,
            "the judge's ratings were rounded to whole numbers, as the annotators' are",
        ),
        (result.n_items < 50, f"{result.n_items} items; 50 to 100 are advised"),
    )
    return tuple(text for is_due, text in notes if is_due)
