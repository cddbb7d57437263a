from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Literal, get_args

import numpy as np

from error_codes import CodedText
from stats.arguments import Floats, require, require_confidence, require_one_of
from stats.correlation.coefficients import signs
from stats.ranking.rank_biased_overlap import RankTies, rbo_rows
from stats.ranking.rank_similarity import tau_ap_a_rows, tau_ap_b_rows, tau_b_rows

Similarity = Literal["tau_b", "tau_ap_a", "tau_ap_b", "rbo"]
MOST_UNDEFINED = 0.05
BLOCK = 1 << 22
TINY = 1e-12
UNMOVED = "every sample of topics gives the same value, so that there is no spread to tell"


@dataclass(frozen=True)
class RankingSimilarity:
    """A coefficient of two rankings of systems.

    Attributes
    ----------
    name : {"tau_b", "tau_ap_a", "tau_ap_b", "rbo"}
    value, ci_low, ci_high : float
        NaN with the `reason` where undefined.
    method : str
        How the limits were computed.
    n_systems, n_topics : int
    reason : str or None
        Why what is NaN is undefined.
    """

    name: Similarity
    value: float
    ci_low: float
    ci_high: float
    method: str
    n_systems: int
    n_topics: int
    reason: str | None = None


@dataclass(frozen=True)
class TopicSamples:
    """Samples of topics: how often each topic is in each of them.

    Attributes
    ----------
    bootstrap : ndarray of float, shape (n_resamples, n_topics)
    halves : ndarray of float, shape (n_resamples, n_topics)
        0 or 1: half of the topics, drawn at random.
    """

    bootstrap: Floats
    halves: Floats


def topic_samples(n_topics: int, n_resamples: int, rng: int | np.random.Generator) -> TopicSamples:
    """Bootstrap samples of topics, and random halves of them.

    Parameters
    ----------
    n_topics, n_resamples : int
    rng : int or Generator

    Returns
    -------
    TopicSamples

    Examples
    --------
    >>> samples = topic_samples(5, 100, 1)
    >>> samples.bootstrap.sum(axis=1).tolist()[:2], samples.halves.sum(axis=1).tolist()[:2]
    ([5.0, 5.0], [2.0, 2.0])
    """
    generator = np.random.default_rng(rng)
    share = np.full(n_topics, 1 / n_topics)
    bootstrap = generator.multinomial(n_topics, share, n_resamples).astype(np.float64)
    order = generator.random((n_resamples, n_topics)).argsort(axis=1)
    return TopicSamples(bootstrap, (order < n_topics // 2).astype(np.float64))


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """Systems' means over topics they have, for each row of weights of topics.

    Parameters
    ----------
    values : ndarray of float, shape (n_systems, n_topics)
        NaN where a system lacks a topic.
    weights : ndarray of float, shape (n_rows, n_topics)

    Returns
    -------
    ndarray of float, shape (n_rows, n_systems)
        NaN where a system has no topic of the row. Rounded to 12 digits, so that the order of
        sums breaks no tie.

    Examples
    --------
    >>> weighted_means(np.array([[0.0, 1.0], [nan, 0.5]]), np.array([[1.0, 3.0]])).tolist()
    [[0.75, 0.5]]
    """
    total, weight = weights @ np.nan_to_num(values).T, weights @ (~np.isnan(values)).T
    means = np.divide(total, weight, out=np.full_like(total, nan), where=weight > 0)
    return np.asarray(np.round(means, 12))


def weighted_scores(values: Floats, weights: Floats) -> Floats:
    """What orders systems, for each row of weights of topics.

    Parameters
    ----------
    values : ndarray of float, shape (n_systems, n_topics)
        NaN where a system lacks a topic.
    weights : ndarray of float, shape (n_rows, n_topics)

    Returns
    -------
    ndarray of float, shape (n_rows, n_systems)
        Means where no system lacks a topic. Otherwise means of a system's differences from each
        of the others on the topics that both have: means over different topics may contradict
        every comparison of two. NaN where a system has no topic in common with another.

    Examples
    --------
    >>> values = np.array([[0.9, nan, nan], [1.0, 0.2, 0.3]])
    >>> weighted_scores(values, np.ones((1, 3))).tolist()
    [[-0.1, 0.1]]
    """
    present = ~np.isnan(values)
    if present.all() or len(values) < 2:
        return weighted_means(values, weights)
    filled, known = np.nan_to_num(values), present.astype(np.float64)
    scores = np.empty((len(weights), len(values)))
    for at, row in enumerate(weights):
        weight = (known * row) @ known.T
        total = (filled * row) @ known.T
        gaps = np.divide(total - total.T, weight, out=np.zeros_like(total), where=weight > 0)
        n_others = (weight > 0).sum(axis=1) - (weight.diagonal() > 0)
        sums = gaps.sum(axis=1)
        scores[at] = np.divide(sums, n_others, out=np.full_like(sums, nan), where=n_others > 0)
    return np.asarray(np.round(scores, 12))


def similarities_over_topics(
    first: Floats,
    second: Floats,
    names: Sequence[Similarity],
    *,
    samples: TopicSamples,
    confidence: float = 0.95,
    p: float = 0.9,
    ties: RankTies = "b",
) -> list[RankingSimilarity]:
    """Coefficients of the rankings of systems by two sets of judgments of the same topics.

    Parameters
    ----------
    first, second : ndarray of float, shape (n_systems, n_topics)
        The systems' values by topic under either set, NaN where a system lacks the topic. The
        first is the truth for ``"tau_ap_a"``.
    names : sequence of {"tau_b", "tau_ap_a", "tau_ap_b", "rbo"}
        `rbo` is extrapolated.
    samples : TopicSamples
        Of `topic_samples`: samples of the topics, which both sets share.
    confidence : float
    p, ties
        Of rank-biased overlap.

    Returns
    -------
    list of RankingSimilarity
        In the order of `names`. The limits are for the rankings by means over all topics of the
        kind; without limits where every sample of topics gives the same value.

    Raises
    ------
    ValueError
        If the tables differ in shape, the samples are of other topics, or an option is unknown.

    Notes
    -----
    Noise of topics swaps systems, so that bootstrap samples agree less than the sample does, and
    the sample less than all topics would: where ten systems' true rankings are the same,
    percentile limits hardly ever hold that. The upper limit is therefore at least the
    coefficient with every swap undone that fewer than ``(1 + confidence) / 2`` of the samples
    show, the second ranking then being by the number of systems below each.

    Noise that both sets share, being of the same runs and topics, makes systems of about the same
    quality agree more than they should. The lower limit is the lowest of the percentile limit, its
    reflection ``2 value - upper percentile``, and the quantile at ``1 - confidence`` of random
    halves of topics, of which one ranks by the first set and the other by the second, without
    common noise.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap. Chapman & Hall,
    chapter 13.

    Examples
    --------
    >>> one = np.array([[0.9, 0.8, 0.7], [0.5, 0.6, 0.4], [0.1, 0.2, 0.3]])
    >>> samples = topic_samples(3, 200, 1)
    >>> (found,) = similarities_over_topics(one, one / 2, ["tau_b"], samples=samples)
    >>> found.value, found.ci_low, found.ci_high
    (1.0, nan, nan)
    >>> found.reason
    'every sample of topics gives the same value, so that there is no spread to tell'
    """
    require_confidence(confidence)
    for name in names:
        require_one_of(names=(name, get_args(Similarity)))
    require(
        first.shape == second.shape and first.shape[1] == samples.bootstrap.shape[1],
        f"first, second and samples must have the same topics, not shapes {first.shape}, "
        f"{second.shape} and {samples.bootstrap.shape}",
        code="different_topics",
    )
    n_systems, n_topics = first.shape
    every = np.ones((1, n_topics))
    here, there = weighted_scores(first, every)[0], weighted_scores(second, every)[0]
    resampled = _scores(first, second, samples.bootstrap, samples.bootstrap)
    halves = _scores(first, second, samples.halves, 1 - samples.halves)
    undone = _without_chance_swaps(here, there, *resampled, confidence)
    found = []
    for name in names:
        rows = _coefficient(name, p, ties)
        value, highest = rows(np.stack([here, here]), np.stack([there, undone])).tolist()
        low, high, reason = nan, nan, _reason(name, len(first)) if np.isnan(value) else None
        if reason is None:
            replicates = [_defined(rows, sides, samples) for sides in (resampled, halves)]
            low, high, reason = _limits(value, replicates, highest, confidence)
        method = "none" if reason else "bootstrap-topics"
        low = max(low, 0.0 if name == "rbo" else -1.0)
        found.append(RankingSimilarity(name, value, low, high, method, n_systems, n_topics, reason))
    return found


def _scores(first: Floats, second: Floats, one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Both sets' scores by weights of topics, without rows of which a system has no topic."""
    here, there = weighted_scores(first, one), weighted_scores(second, other)
    known = ~np.isnan(here + there).any(axis=1)
    return here[known], there[known]


def _defined(
    rows: Callable[[Floats, Floats], Floats], sides: tuple[Floats, Floats], samples: TopicSamples
) -> Floats:
    values = rows(*sides) if len(sides[0]) else np.empty(0)
    values = values[~np.isnan(values)]
    return values if len(values) >= (1 - MOST_UNDEFINED) * len(samples.halves) else values[:0]


def _coefficient(name: Similarity, p: float, ties: RankTies) -> Callable[[Floats, Floats], Floats]:
    rows: dict[Similarity, Callable[[Floats, Floats], Floats]] = {
        "tau_b": tau_b_rows,
        "tau_ap_a": tau_ap_a_rows,
        "tau_ap_b": tau_ap_b_rows,
        "rbo": partial(rbo_rows, p=p, ties=ties),
    }
    return rows[name]


def _without_chance_swaps(
    here: Floats, there: Floats, one: Floats, other: Floats, confidence: float
) -> Floats:
    """The second ranking, as numbers of systems below each, with the order of the first wherever
    samples of topics do not establish that both differ."""
    order, order_there = (signs(means[:, None], means) for means in (here, there))
    above, below = np.nonzero((order > 0) & (order_there < 0))
    step = max(1, BLOCK // max(1, len(one)))
    for at in range(0, len(above), step):
        a, b = above[at : at + step], below[at : at + step]
        shown = ((one[:, a] > one[:, b]) & (other[:, a] < other[:, b])).mean(axis=0)
        certain = shown >= (1 + confidence) / 2
        order[a[certain], b[certain]], order[b[certain], a[certain]] = -1, 1
    return np.asarray(order.sum(axis=1), dtype=np.float64)


def _limits(
    value: float, replicates: Sequence[Floats], highest: float, confidence: float
) -> tuple[float, float, str | None]:
    bootstrap, halves = replicates
    if not (len(bootstrap) and len(halves)):
        return nan, nan, "more than one in twenty samples of topics leave it undefined"
    tail = (1 - confidence) / 2
    low, high = np.quantile(bootstrap, [tail, 1 - tail])
    lowest = float(min(low, 2 * value - high, np.quantile(halves, 2 * tail)))
    upper = float(np.nanmax([high, highest]))
    # without a spread there is no interval: one of no width would claim certainty
    return (nan, nan, UNMOVED) if upper - lowest < TINY else (lowest, upper, None)


def _reason(name: Similarity, n_systems: int) -> str:
    if n_systems < 2:
        return CodedText("fewer than two systems", code="too_few_systems")
    if name == "tau_ap_a":
        return CodedText("the truth has systems of the same value", code="truth_tied")
    return CodedText("all systems have the same value", code="all_tied")
