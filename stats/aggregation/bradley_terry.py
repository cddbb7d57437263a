from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from error_codes import CodedText
from stats.aggregation.ascent import convergence_warnings
from stats.aggregation.result import Aggregation, Reason, name_of, nothing, require_table, sign
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    coded_in_order,
    complete_numbers,
    require,
    require_at_least,
    require_confidence,
    require_same_length,
    sum_by,
)
from stats.inference.crossed_means import FEW, FREEDOM_OF_FEWER, satterthwaite
from stats.jackknife import (
    LeftOut,
    effective_freedom,
    maximum_left_out,
    uneven_notes,
    variance_of_both,
)
from stats.libraries import np, pd, scipy

# A step halved so often is below 1e-12 of itself.
HALVINGS = 40


@dataclass(frozen=True)
class Comparisons:
    """Who beat whom, how much it counts, and in which judgment (comparisons of one depend), or of
    which items and annotators, where new ones of these are meant."""

    winner: Integers
    loser: Integers
    weight: Floats
    judgment: Integers
    candidates: list[Hashable]
    drawn: Mapping[str, Integers] = field(default_factory=dict)


@dataclass(frozen=True)
class Strengths:
    """Log strengths with mean 0, their variances and the degrees of freedom of these, or the reason
    why there are none."""

    value: Floats
    variance: Floats
    freedom: Floats
    log_likelihood: float
    iterations: int
    converged: bool
    reason: Reason | None = None


def bradley_terry(
    winners: Column,
    losers: Column,
    *,
    weights: Column | None = None,
    judgments: Column | None = None,
    items: Column | None = None,
    annotators: Column | None = None,
    smoothing: float = 0.0,
    confidence: float = 0.95,
    max_iterations: int = 100,
) -> Aggregation:
    """Log strengths of candidates from comparisons of two.

    Parameters
    ----------
    winners, losers : array-like, shape (n_comparisons,)
        The preferred and the other candidate. A tie is two rows of weight 0.5, one each way.
    weights : array-like of float, optional
        How much each comparison counts, at least 0; 1 without it.
    judgments : array-like, optional
        The judgment each comparison comes from, where one judgment (a ranking, a best and
        worst of a set) implies several; intervals are then by leaving out judgments.
    items, annotators : array-like, optional
        What each comparison is of and by whom: intervals are then for new items and new
        annotators (of the two those that are several), by Student's t.
    smoothing : float
        Comparisons each candidate is made to win, and to lose, against one of strength 0.
    confidence : float
        Confidence level of the intervals, between 0 and 1.
    max_iterations : int
        Newton steps after which the result is given up as not converged.

    Returns
    -------
    Aggregation
        ``labels`` has a row a candidate: ``item``, the log strength ``label`` (mean 0; the
        chance that a beats b is expit(a - b)), ``n_labels`` (weight of its comparisons),
        ``wins``, ``se, ci_low, ci_high``. Without smoothing the strengths are all undefined
        (``not_connected``) where the candidates fall into two groups of which one never beat
        the other: the likelihood then has no maximum.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, a candidate is compared with
        itself, a weight is negative, or `smoothing`, `confidence` or `max_iterations` is out
        of range.

    Notes
    -----
    Newton's method with step halving on the concave log-likelihood. Without judgments that
    imply several comparisons, standard errors are from the inverse information, else from the
    jackknife over judgments; of items and annotators over each, less over both together, never
    below the larger of the two, with degrees of freedom as `mean_over_items_and_annotators` has
    them. Memory grows with the square of the number of candidates.

    References
    ----------
    R. A. Bradley and M. E. Terry (1952). Rank analysis of incomplete block designs I.
    Biometrika 39, 324-345.
    D. R. Hunter (2004). MM algorithms for generalized Bradley-Terry models. Annals of
    Statistics 32(1), 384-406 (the condition for a maximum).
    A. C. Cameron, J. B. Gelbach and D. L. Miller (2011). Robust inference with multiway
    clustering. Journal of Business & Economic Statistics 29(2), 238-249.

    Examples
    --------
    >>> result = bradley_terry(["a"] * 3 + ["b"], ["b"] * 3 + ["a"])
    >>> result.labels[["item", "label", "wins"]].round(3)
      item  label  wins
    0    a  0.549   3.0
    1    b -0.549   1.0
    """
    comparisons = _checked(winners, losers, weights, judgments)
    drawn = _drawn(len(comparisons.winner), items=items, annotators=annotators)
    comparisons = replace(comparisons, drawn=drawn)
    return aggregation_of(
        comparisons,
        method="bradley_terry",
        annotators=pd.DataFrame({"annotator": [], "n_labels": []}),
        smoothing=smoothing,
        confidence=confidence,
        max_iterations=max_iterations,
    )


def aggregation_of(
    comparisons: Comparisons,
    *,
    method: str,
    annotators: pd.DataFrame,
    smoothing: float,
    confidence: float,
    max_iterations: int,
) -> Aggregation:
    require_confidence(confidence)
    require_at_least(0, smoothing=smoothing)
    require_at_least(1, max_iterations=max_iterations)
    over = {"over": "+".join(comparisons.drawn)} if comparisons.drawn else {}
    signature = sign(
        method, smoothing=smoothing, confidence=confidence, max_iterations=max_iterations, **over
    )
    if not len(comparisons.winner):
        candidates = comparisons.candidates
        return nothing(signature, Reason.NO_COMPARISONS if candidates else Reason.NO_LABELS)
    estimate = strengths(comparisons, smoothing, max_iterations)
    return Aggregation(
        method=name_of(signature),
        signature=signature,
        labels=_table(comparisons, estimate, confidence),
        annotators=annotators,
        converged=estimate.converged,
        iterations=estimate.iterations,
        log_likelihood=estimate.log_likelihood,
        warnings=_warnings(estimate, comparisons),
        reason=estimate.reason,
    )


def strengths(comparisons: Comparisons, smoothing: float, max_iterations: int) -> Strengths:
    n = len(comparisons.candidates)
    require_table("comparisons", candidates=n, opponents=n)
    if not smoothing and not _has_maximum(comparisons, n):
        missing = np.full(n, np.nan)
        return Strengths(missing, missing, missing, np.nan, 0, False, Reason.NOT_CONNECTED)
    value, objective, iterations, converged = _newton(comparisons, n, smoothing, max_iterations)
    variance, freedom = _variances(comparisons, value, smoothing)
    return Strengths(value - value.mean(), variance, freedom, objective, iterations, converged)


def _checked(
    winners: Column, losers: Column, weights: Column | None, judgments: Column | None
) -> Comparisons:
    n = require_same_length(winners=winners, losers=losers)
    for name, column in (("winners", winners), ("losers", losers)):
        coded(column, name)
    both, candidates = coded_in_order([*winners, *losers], "winners and losers")
    winner, loser = both[:n], both[n:]
    require(
        not (winner == loser).any(),
        "winners and losers must differ: a candidate is compared with itself",
        code="compared_with_itself",
    )
    weight = np.ones(n)
    if weights is not None:
        require_same_length(winners=winners, weights=weights)
        weight = complete_numbers(weights, "weights")
        require(not (weight < 0).any(), "weights must not be negative", code="weights_out_of_range")
    judgment: Integers = np.arange(n)
    if judgments is not None:
        require_same_length(winners=winners, judgments=judgments)
        judgment, _ = coded(judgments, "judgments")
    return Comparisons(winner, loser, weight, judgment, candidates)


def _drawn(n: int, **columns: Column | None) -> dict[str, Integers]:
    """The codes of what is drawn anew; nothing is known of others where there is one alone."""
    drawn = {}
    for name, column in columns.items():
        if column is not None:
            require_same_length(**{"winners": np.zeros(n), name: column})
            drawn[name] = coded(column, name)[0]
    return {name: code for name, code in drawn.items() if n and int(code.max()) > 0}


def _has_maximum(comparisons: Comparisons, n: int) -> bool:
    counted = comparisons.weight > 0
    ends = (comparisons.winner[counted], comparisons.loser[counted])
    graph = scipy.sparse.coo_array((np.ones(len(ends[0])), ends), shape=(n, n)).tocsr()
    n_components, _ = scipy.sparse.csgraph.connected_components(
        graph, directed=True, connection="strong"
    )
    return bool(n_components == 1)


def _newton(
    comparisons: Comparisons, n: int, smoothing: float, max_iterations: int
) -> tuple[Floats, float, int, bool]:
    """Climb the log-likelihood; where a full step overshoots, half of it is tried."""
    value = np.zeros(n)
    objective = _log_likelihood(comparisons, value, smoothing)
    enough = 1e-9 * max(float(comparisons.weight.sum()), smoothing)
    for iteration in range(1, max_iterations + 1):
        gradient, information = _derivatives(comparisons, value, smoothing)
        if np.abs(gradient).max() <= enough:
            return value, objective, iteration, True
        step = np.linalg.lstsq(information, gradient, rcond=None)[0]
        for _ in range(HALVINGS):
            reached = _log_likelihood(comparisons, value + step, smoothing)
            if reached >= objective:
                break
            step /= 2
        else:
            return value, objective, iteration, True  # no step is an ascent beyond rounding
        value, objective = value + step, reached
    return value, objective, max_iterations, False


def _log_likelihood(comparisons: Comparisons, value: Floats, smoothing: float) -> float:
    gap = value[comparisons.winner] - value[comparisons.loser]
    prior = smoothing * float(
        (scipy.special.log_expit(value) + scipy.special.log_expit(-value)).sum()
    )
    return float(comparisons.weight @ scipy.special.log_expit(gap)) + prior


def _derivatives(
    comparisons: Comparisons, value: Floats, smoothing: float
) -> tuple[Floats, Floats]:
    n = len(value)
    winner, loser = comparisons.winner, comparisons.loser
    surprise = scipy.special.expit(value[loser] - value[winner])
    pull = comparisons.weight * surprise
    chance = scipy.special.expit(value)
    gradient = sum_by(winner, pull, n) - sum_by(loser, pull, n) + smoothing * (1 - 2 * chance)
    shared = sum_by(winner * n + loser, pull * (1 - surprise), n * n).reshape(n, n)
    information = -(shared + shared.T)
    own = -information.sum(axis=1) + 2 * smoothing * chance * (1 - chance)
    information[np.diag_indices(n)] = own
    return gradient, information


def _variances(comparisons: Comparisons, value: Floats, smoothing: float) -> tuple[Floats, Floats]:
    n = len(value)
    _, information = _derivatives(comparisons, value, smoothing)
    judged, judgment = np.unique(comparisons.judgment, return_inverse=True)
    is_each_alone = len(judged) == len(comparisons.winner) or len(judged) < 2
    if is_each_alone and not comparisons.drawn:
        centring = np.eye(n) - 1 / n
        inverse = centring @ np.linalg.pinv(information, hermitian=True) @ centring
        return np.diag(inverse), np.full(n, np.inf)
    left_out = _left_out(comparisons, value, information, smoothing)
    return _of_drawn(list(comparisons.drawn.values()) or [judgment], left_out, n)


def _left_out(
    comparisons: Comparisons, value: Floats, information: Floats, smoothing: float
) -> Callable[[Integers], LeftOut]:
    n = len(value)
    winner, loser = comparisons.winner, comparisons.loser
    surprise = scipy.special.expit(value[loser] - value[winner])
    pull = comparisons.weight * surprise
    curve = pull * (1 - surprise)
    at = np.arange(len(pull))
    scores = np.zeros((len(pull), n))
    scores[at, winner], scores[at, loser] = pull, -pull
    if not smoothing:  # only differences are known: this leaves their mean at 0
        information = information + np.trace(information) / n**2

    def information_by(rows: Integers, group: Integers, n_groups: int) -> Floats:
        pair = (group * n + winner[rows]) * n + loser[rows]
        shared = sum_by(pair, curve[rows], n_groups * n * n).reshape(n_groups, n, n)
        table = -(shared + shared.transpose(0, 2, 1))
        table[:, np.arange(n), np.arange(n)] = -table.sum(axis=2)
        return table

    def left_out(cluster: Integers) -> LeftOut:
        found = maximum_left_out(scores, information, information_by, cluster, comparisons.weight)
        centring = np.eye(n) - 1 / n
        return replace(found, variance=np.diag(centring @ found.variance @ centring))

    return left_out


def _of_drawn(
    drawn: Sequence[Integers], left_out: Callable[[Integers], LeftOut], n: int
) -> tuple[Floats, Floats]:
    """Variances for new ones of what was drawn, and degrees of freedom: over items and over
    annotators, less over both; no strength varies less than by the one alone."""
    sizes = [int(code.max()) + 1 for code in drawn]
    found = [left_out(code) for code in drawn]
    freedom = np.full(n, effective_freedom(*(one.effective for one in found)))
    if len(found) == 1:
        return found[0].variance, freedom
    cells, cell = np.unique(drawn[0] * sizes[1] + drawn[1], return_inverse=True)
    parts = [one.variance for one in (*found, left_out(cell))]
    if len(cells) < sizes[0] * sizes[1]:
        return variance_of_both(*parts), freedom
    variance, freedom = satterthwaite(*parts, *sizes)
    most = FREEDOM_OF_FEWER * (min(sizes) - 1) if min(sizes) < FEW else np.inf
    return variance, np.minimum(freedom, most)


def _table(comparisons: Comparisons, estimate: Strengths, confidence: float) -> pd.DataFrame:
    n = len(comparisons.candidates)
    wins = sum_by(comparisons.winner, comparisons.weight, n)
    se = np.sqrt(np.maximum(estimate.variance, 0))
    margin = scipy.stats.t.ppf(0.5 + confidence / 2, estimate.freedom) * se
    return pd.DataFrame(
        {
            "item": pd.Series(comparisons.candidates),
            "label": estimate.value,
            "n_labels": wins + sum_by(comparisons.loser, comparisons.weight, n),
            "wins": wins,
            "se": se,
            "ci_low": estimate.value - margin,
            "ci_high": estimate.value + margin,
            "reason": pd.Series([estimate.reason] * n, dtype=object),
        }
    )


def _warnings(estimate: Strengths, comparisons: Comparisons) -> tuple[str, ...]:
    if estimate.reason is Reason.NOT_CONNECTED:
        return (
            CodedText(
                "some candidates never beat any of the others, or are never compared with them, so "
                "the likelihood has no maximum; smoothing (such as 0.5) gives shrunk strengths",
                code="not_connected",
            ),
        )
    warnings = convergence_warnings(estimate.converged, estimate.iterations)
    if (annotator := comparisons.drawn.get("annotators")) is None:
        return warnings
    weight = np.bincount(annotator, comparisons.weight)
    return (*warnings, *uneven_notes(float(weight.max() / weight.sum()), len(weight)))
