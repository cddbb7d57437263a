from dataclasses import dataclass

from error_codes import note_if
from stats.aggregation.ascent import Ascent, Estimates, fit
from stats.aggregation.result import Aggregation, Ratings, Repeats, code_ratings, value_table
from stats.arguments import Column, Floats, require, require_confidence
from stats.libraries import np, scipy

# Of the variance of all ratings: keeps the precision of a perfect annotator finite.
FLOOR = 1e-12


def bias_precision(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    prior_labels: float = 2.0,
    confidence: float = 0.95,
    tolerance: float = 1e-9,
    max_iterations: int = 5000,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """Ratings freed of each annotator's bias and weighted by each annotator's precision.

    Parameters
    ----------
    items, annotators : array-like, shape (n_labels,)
        One row a rating. A missing rating is an absent row.
    values : array-like of float, shape (n_labels,)
        The ratings.
    prior_labels : float
        How many ratings of ordinary precision each annotator is credited with beforehand;
        above 0, since without it an annotator can become infinitely precise.
    confidence : float
        Level of the intervals, between 0 and 1.
    tolerance : float
        Iterations stop when one raises the log posterior by less than this, in nats a label.
    max_iterations : int
        Iterations after which the result is given up as not converged.
    repeats : {"refuse", "count"}
        Whether an annotator may rate an item more than once; each rating then counts.

    Returns
    -------
    Aggregation
        ``label``, ``se`` and limits are those of the posterior of an item's value on the scale
        of the ratings, shrunk to the mean of all items. ``annotators`` has ``bias`` (the mean
        over annotators is 0), ``error_sd`` and ``precision``, its inverse square.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, values are not numbers, an
        (item, annotator) pair repeats while `repeats` is ``"refuse"``, or an option is out of
        range.

    Notes
    -----
    Rating = value of the item + bias of the annotator + error, values N(mean, variance),
    errors N(0, 1 / precision of the annotator), error variances with an inverse-gamma prior
    worth `prior_labels` ratings of the pooled error variance. Fitted by EM. Intervals take
    biases and precisions as known, so are short where annotators gave few ratings. Biases and
    items can be separated only among annotators connected by shared items; a warning says
    where the crowd falls apart.

    References
    ----------
    V. C. Raykar et al. (2010). Learning from crowds. JMLR 11, 1297-1322 (section 5, regression).
    P. Welinder, S. Branson, S. Belongie and P. Perona (2010). The multidimensional wisdom of
    crowds. NeurIPS 23.

    Examples
    --------
    >>> ratings = [10, 20, 30, 15, 25, 35, 9, 32, 17]
    >>> result = bias_precision([1, 2, 3] * 3, list("aaabbbccc"), ratings)
    >>> result.annotators["bias"].round(1).tolist()
    [-1.4, 3.6, -2.1]
    >>> (result.annotators["error_sd"].rank() == [1, 1, 3]).tolist()
    [False, False, True]
    """
    require_confidence(confidence)
    require(
        prior_labels > 0,
        f"prior_labels must be above 0, not {prior_labels}",
        code="prior_labels_out_of_range",
    )
    ratings = code_ratings(items, annotators, values, repeats)
    return fit(
        "bias_precision",
        ratings,
        lambda ratings: _Model(ratings, prior_labels, confidence),
        prior_labels=prior_labels,
        confidence=confidence,
        tolerance=tolerance,
        max_iterations=max_iterations,
        repeats=repeats,
    )


@dataclass(frozen=True)
class _Expectation:
    mean: Floats
    variance: Floats


@dataclass(frozen=True)
class _Parameters:
    bias: Floats
    error_variance: Floats
    item_mean: float
    item_variance: float


class _Model:
    def __init__(self, ratings: Ratings, prior_labels: float, confidence: float = 0.95) -> None:
        self.ratings = ratings
        self.confidence = confidence
        self.prior_labels = prior_labels
        self.n_labels = ratings.labels_per_annotator
        self.least = FLOOR * max(float(np.var(ratings.value)), FLOOR)
        self.usual = self._pooled_variance()

    def start(self) -> _Expectation:
        ratings = self.ratings
        mean = ratings.per_item(ratings.value) / ratings.labels_per_item
        return _Expectation(mean, self.usual / ratings.labels_per_item)

    def estimates(self, ascent: Ascent[_Expectation, _Parameters]) -> Estimates:
        ratings, parameters = self.ratings, ascent.parameters
        shift = float(parameters.bias.mean())
        label, se = ascent.expectation.mean + shift, np.sqrt(ascent.expectation.variance)
        margin = scipy.stats.norm.ppf(0.5 + self.confidence / 2) * se
        reasons = [None] * len(ratings.items)
        variance = parameters.error_variance
        return Estimates(
            value_table(ratings, label, se, (label - margin, label + margin), reasons),
            {
                "bias": parameters.bias - shift,
                "error_sd": np.sqrt(variance),
                "precision": 1 / variance,
            },
            warnings=_island_warnings(ratings),
        )

    def _pooled_variance(self) -> float:
        """Variance of ratings about their item's mean; of all ratings where none are shared."""
        ratings, size = self.ratings, self.ratings.labels_per_item
        mean = ratings.per_item(ratings.value) / size
        squares = float(((ratings.value - mean[ratings.item]) ** 2).sum())
        freedom = ratings.n_labels - len(ratings.items)
        return max(squares / freedom if freedom else float(np.var(ratings.value)), self.least)

    def maximise(self, expectation: _Expectation) -> _Parameters:
        ratings = self.ratings
        error = ratings.value - expectation.mean[ratings.item]
        bias = ratings.per_annotator(error) / self.n_labels
        squares = (error - bias[ratings.annotator]) ** 2 + expectation.variance[ratings.item]
        total = ratings.per_annotator(squares) + self.prior_labels * self.usual
        item_mean = float(expectation.mean.mean())
        spread = (expectation.mean - item_mean) ** 2 + expectation.variance
        return _Parameters(
            bias,
            total / (self.n_labels + self.prior_labels),
            item_mean,
            max(float(spread.mean()), self.least),
        )

    def expect(self, parameters: _Parameters) -> tuple[_Expectation, float]:
        ratings = self.ratings
        precision = (1 / parameters.error_variance)[ratings.annotator]
        offset = ratings.value - parameters.bias[ratings.annotator] - parameters.item_mean
        total = ratings.per_item(precision) + 1 / parameters.item_variance
        weighted = ratings.per_item(precision * offset)
        departure = weighted / total
        log_likelihood = 0.5 * float(
            np.log(precision / (2 * np.pi)).sum()
            - np.log(total * parameters.item_variance).sum()
            - (precision * offset**2).sum()
            + (weighted * departure).sum()
        )
        mean = parameters.item_mean + departure
        return _Expectation(mean, 1 / total), log_likelihood + self._log_prior(parameters)

    def _log_prior(self, parameters: _Parameters) -> float:
        variance = parameters.error_variance
        return -0.5 * self.prior_labels * float((np.log(variance) + self.usual / variance).sum())


def _island_warnings(ratings: Ratings) -> tuple[str, ...]:
    n_items, n_annotators = len(ratings.items), len(ratings.annotators)
    ends = (ratings.item, n_items + ratings.annotator)
    shape = (n_items + n_annotators, n_items + n_annotators)
    graph = scipy.sparse.coo_array((np.ones(ratings.n_labels), ends), shape=shape).tocsr()
    n_islands, _ = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return note_if(
        n_islands >= 2,
        f"annotators fall into {n_islands} groups without a shared item between them: the bias "
        "of a group cannot be separated from the quality of its items",
        "separate_groups",
    )
