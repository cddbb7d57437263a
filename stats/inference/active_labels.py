from dataclasses import dataclass

from stats.arguments import (
    Column,
    Floats,
    Integers,
    complete_numbers,
    numbers,
    require,
    require_confidence,
    require_same_length,
)
from stats.libraries import np, scipy

UNIFORM_SHARE = 0.5
LEAST_OF_UNIFORM = 0.2
LEAST_OF_A_PILOT = 10
# Of the mean error: no item is taken for better known than that.
LEAST_SHARE = 0.3


@dataclass(frozen=True, kw_only=True)
class WeightedMean:
    value: float
    ci_low: float
    ci_high: float
    se: float
    n_labelled: int
    n: int
    freedom: float


def actively_labelled_mean(
    human: Column,
    judge: Column,
    probability: Column,
    *,
    small_sample: bool = True,
    confidence: float = 0.95,
) -> WeightedMean:
    """The mean human rating where each item was sent to people with a chance of its own.

    Parameters
    ----------
    human : array-like of float, shape (n_items,)
        Human ratings, NaN for items that were not sent.
    judge : array-like of float, shape (n_items,)
        The judge's scores of all items.
    probability : array-like of float, shape (n_items,)
        The chance each item had of being sent, above 0 and at most 1, as recorded then. Items
        picked by hand have no such chance, and no valid mean.
    small_sample : bool
        Student's t with one degree of freedom less than there are labels, instead of a normal.
    confidence : float
        Confidence level of the interval.

    Returns
    -------
    WeightedMean

    Raises
    ------
    ValueError
        If the columns differ in length, `judge` or `probability` has a missing value, a
        probability is not above 0 and at most 1, there are fewer than two items, or
        `confidence` is out of range.

    References
    ----------
    T. Zrnic and E. J. Candes (2024). Active statistical inference. ICML 2024.
    D. G. Horvitz and D. J. Thompson (1952). A generalization of sampling without replacement
    from a finite universe. JASA 47(260), 663-685.

    Examples
    --------
    >>> mean = actively_labelled_mean([3, np.nan, 5, np.nan], [2, 4, 5, 1], [0.5, 0.2, 0.5, 0.4])
    >>> round(mean.value, 2), mean.n_labelled
    (3.5, 2)
    """
    require_confidence(confidence)
    n = require_same_length(human=human, judge=judge, probability=probability)
    y, f = numbers(human, "human"), complete_numbers(judge, "judge")
    chance = complete_numbers(probability, "probability")
    require(
        not ((chance <= 0) | (chance > 1)).any(),
        "probability must be above 0 and at most 1 for every item",
        code="probability_out_of_range",
    )
    require(n >= 2, "human must have at least two items", code="too_few_ratings")
    labelled = ~np.isnan(y)
    terms = f + np.where(labelled, (np.nan_to_num(y) - f) / chance, 0.0)
    value, se = float(terms.mean()), float(terms.std(ddof=1)) / np.sqrt(n)
    n_labelled = int(labelled.sum())
    freedom = float(max(n_labelled - 1, 1)) if small_sample else np.inf
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * se
    return WeightedMean(
        value=value,
        ci_low=value - half,
        ci_high=value + half,
        se=float(se),
        n_labelled=n_labelled,
        n=n,
        freedom=freedom,
    )


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """A judge put on the scale of people, and how far it is expected to be off, item by item."""

    judge: Floats
    error: Floats


def expected_errors(human: Column, judge: Column, spread: Column) -> ExpectedErrors:
    """Where a judge is expected to err, learned from a pilot of items with human ratings.

    Parameters
    ----------
    human : array-like of float, shape (n_items,)
        Human ratings of the pilot's items, NaN for the others. Items of the pilot, drawn at
        random, must not be among those sent by the chances that come of this.
    judge, spread : array-like of float, shape (n_items,)
        The judge's score of every item, and the spread of its repeated replies.

    Returns
    -------
    ExpectedErrors
        Linear in score and spread, fitted by least squares: the ratings, then the size of what
        is left of them. The second fit is drawn towards the mean size by how little of it the
        pilot explains beyond chance, so that a spread that says nothing does no harm.

    Raises
    ------
    ValueError
        If the columns differ in length, `judge` or `spread` has a missing value, or fewer than
        10 items have a rating.

    References
    ----------
    T. Zrnic and E. J. Candes (2024). Active statistical inference. ICML 2024, section 4.
    J. B. Copas (1983). Regression, prediction and shrinkage. JRSS B 45(3), 311-354.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> spread, truth = rng.random(300), rng.normal(size=300)
    >>> judge = truth + 2 * spread * rng.normal(size=300)
    >>> found = expected_errors(np.where(np.arange(300) < 200, truth, np.nan), judge, spread)
    >>> bool(np.corrcoef(found.error, spread)[0, 1] > 0.5)
    True
    """
    require_same_length(human=human, judge=judge, spread=spread)
    y, f = numbers(human, "human"), complete_numbers(judge, "judge")
    features = np.stack([np.ones(len(f)), f, complete_numbers(spread, "spread")], axis=1)
    known = ~np.isnan(y)
    n, width = int(known.sum()), features.shape[1]
    require(
        n >= LEAST_OF_A_PILOT,
        f"human must have at least {LEAST_OF_A_PILOT} ratings, not {n}",
        code="too_few_ratings",
    )
    scale = np.linalg.lstsq(features[known], y[known], rcond=None)[0]
    size = np.abs(y[known] - features[known] @ scale)
    slope = np.linalg.lstsq(features[known], size, rcond=None)[0]
    total = float(np.square(size - size.mean()).sum())
    left = float(np.square(size - features[known] @ slope).sum())
    explained = 1 - left / total if total > 0 else 0.0
    adjusted = max(0.0, 1 - (1 - explained) * (n - 1) / (n - width))
    shrink = adjusted / explained if explained > 0 else 0.0
    error = size.mean() + shrink * (features @ slope - size.mean())
    return ExpectedErrors(
        judge=features @ scale, error=np.maximum(error, LEAST_SHARE * float(size.mean()))
    )


def labelling_probabilities(expected_error: Column, *, budget: float) -> Floats:
    """The chance with which to send each item to people, where the judge is expected to err.

    Parameters
    ----------
    expected_error : array-like of float, shape (n_items,)
        How far the judge is expected to be off at each item: its spread over repeated runs, or
        a model of earlier residuals. At least 0.
    budget : float
        How many items to send on average, at most all of them.

    Returns
    -------
    ndarray of float, shape (n_items,)
        Half of the budget goes to all items alike and half in proportion to the expected error;
        at least a fifth of the even chance, at most 1. They sum to the budget, where that can
        be. Record them with each HIT.

    Raises
    ------
    ValueError
        If an expected error is missing or negative, or the budget is not between 0 and the
        number of items.

    References
    ----------
    T. Zrnic and E. J. Candes (2024). Active statistical inference. ICML 2024.

    Examples
    --------
    >>> labelling_probabilities([0.0, 1.0, 3.0, 0.0], budget=2).round(3).tolist()
    [0.25, 0.5, 1.0, 0.25]
    """
    error = complete_numbers(expected_error, "expected_error")
    n = len(error)
    require(
        not (error < 0).any(),
        "expected_error must not be negative",
        code="expected_error_out_of_range",
    )
    require(
        0 < budget <= n,
        f"budget must lie between 0 and the number of items ({n}), not {budget}",
        code="budget_out_of_range",
    )
    even = np.full(n, budget / n)
    active = budget * error / error.sum() if error.sum() > 0 else even
    mixed = UNIFORM_SHARE * even + (1 - UNIFORM_SHARE) * active
    return _scaled_to(budget, np.maximum(mixed, LEAST_OF_UNIFORM * even))


def _scaled_to(budget: float, chance: Floats) -> Floats:
    """Chances of at most 1 with that sum: what is cut off goes to the others in proportion."""
    for _ in range(len(chance)):
        full = chance >= 1
        left = budget - float(full.sum())
        rest = float(chance[~full].sum())
        if full.all() or rest <= 0 or abs(rest - left) < 1e-12:
            break
        chance = np.where(full, 1.0, chance * left / rest)
    return np.minimum(chance, 1.0)


def systematic_sample(probability: Column, *, start: float) -> Integers:
    """A sample of fixed size in which each item is with just its own probability.

    Parameters
    ----------
    probability : array-like of float, shape (n_items,)
        Above 0 and at most 1, of items in a random order; they sum to a whole number.
    start : float
        Drawn evenly from 0 to 1: where the first step falls.

    Returns
    -------
    ndarray of int
        The positions of the sampled items, as many as the probabilities sum to.

    Raises
    ------
    ValueError
        If a probability is missing, not above 0 or above 1, if they do not sum to a whole number,
        or if `start` is not at least 0 and below 1.

    References
    ----------
    W. G. Madow (1949). On the theory of systematic sampling, II. Annals of Mathematical
    Statistics 20(3), 333-354.

    Examples
    --------
    >>> systematic_sample([0.5, 0.25, 1.0, 0.25], start=0.4).tolist()
    [1, 2]
    """
    chance = complete_numbers(probability, "probability")
    total = float(chance.sum())
    require(
        not ((chance <= 0) | (chance > 1)).any() and abs(total - round(total)) <= 1e-6,
        "probability must be above 0 and at most 1 for every item, and sum to a whole number",
        code="probability_out_of_range",
    )
    require(
        0 <= start < 1,
        f"start must be at least 0 and below 1, not {start}",
        code="start_out_of_range",
    )
    ends = np.cumsum(chance) * (round(total) / total)
    ends[-1] = round(total)  # so that rounding loses no step at the end
    return np.flatnonzero(np.diff(np.floor(np.concatenate([[0.0], ends]) + start)) > 0)
