"""Systems ranked by the judgments of one assessor a topic, drawn at random, many times."""

from dataclasses import dataclass

import numpy as np

from error_codes import InvalidValue
from stats.arguments import Floats
from stats.ranking.rank_similarity import tau_b_rows

BLOCK = 1 << 22


@dataclass(frozen=True)
class RandomAssessors:
    """Rankings of systems by assessors drawn topic by topic, held against a merged ranking.

    Attributes
    ----------
    tau : ndarray of float, shape (n_draws,)
        Tau-b of each draw's ranking to the merged one; NaN where a draw ties all systems.
    means : ndarray of float, shape (n_draws, n_systems)
    swapped : ndarray of float, shape (n_systems, n_systems)
        The share of draws that put the system of the row below that of the column, where the
        merged ranking puts it above; 0 elsewhere.
    n_topics_with_choice : int
        Topics that more than one assessor judged.
    """

    tau: Floats
    means: Floats
    swapped: Floats
    n_topics_with_choice: int


def random_assessors(
    values: Floats,
    has_judged: Floats,
    merged: Floats,
    *,
    n_draws: int = 1000,
    rng: int | np.random.Generator = 0,
) -> RandomAssessors:
    """Draw one assessor a topic at random, again and again, and rank the systems.

    Parameters
    ----------
    values : ndarray of float, shape (n_assessors, n_systems, n_topics)
        The systems' values by each assessor's judgments; NaN where a system lacks a topic, or
        the assessor did not judge it.
    has_judged : ndarray of bool, shape (n_assessors, n_topics)
        Which topics each assessor judged; somebody judged each.
    merged : ndarray of float, shape (n_systems,)
        The systems' means by the merged judgments.
    n_draws : int
    rng : int or Generator

    Returns
    -------
    RandomAssessors

    Raises
    ------
    ValueError
        If shapes do not fit, or nobody judged a topic.

    References
    ----------
    E. M. Voorhees (2000). Variations in relevance judgments and the measurement of retrieval
    effectiveness. Information Processing and Management 36(5), 697-716.

    Examples
    --------
    >>> values = np.array([[[0.9, 0.8], [0.5, 0.4]], [[0.9, 0.3], [0.5, 0.8]]])
    >>> drawn = random_assessors(values, np.ones((2, 2), bool), np.array([0.9, 0.5]), n_draws=50)
    >>> drawn.n_topics_with_choice, sorted(set(drawn.tau.tolist()))
    (2, [-1.0, 1.0])
    """
    n_assessors, n_systems, n_topics = values.shape
    if has_judged.shape != (n_assessors, n_topics) or merged.shape != (n_systems,):
        raise InvalidValue(
            f"has_judged and merged must fit values of shape {values.shape}, and have shapes "
            f"{has_judged.shape} and {merged.shape}",
            code="has_judged_shape",
        )
    n_judges = has_judged.sum(axis=0)
    if not n_judges.all():
        raise InvalidValue(
            f"has_judged must have an assessor for each topic; {_first(n_judges)}",
            code="has_judged_empty",
        )
    # The assessors of each topic first, by number: a draw below their count is one of them.
    order = np.argsort(~has_judged.astype(bool), axis=0, kind="stable")
    generator = np.random.default_rng(rng)
    drawn = order[generator.integers(n_judges, size=(n_draws, n_topics)), np.arange(n_topics)]
    means = np.empty((n_draws, n_systems))
    step = max(1, BLOCK // (n_systems * n_topics))
    for at in range(0, n_draws, step):
        chosen = values[drawn[at : at + step], :, np.arange(n_topics)]
        means[at : at + step] = _means(chosen)
    merged = np.round(merged, 12)
    tau = tau_b_rows(np.broadcast_to(merged, means.shape), means)
    return RandomAssessors(tau, means, _swapped(means, merged), int((n_judges > 1).sum()))


def _means(chosen: Floats) -> Floats:
    """Systems' means over the topics they have; shape (n_draws, n_topics, n_systems) in."""
    present = ~np.isnan(chosen)
    total, count = np.nan_to_num(chosen).sum(axis=1), present.sum(axis=1)
    means = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    return np.asarray(np.round(means, 12))


def _swapped(means: Floats, merged: Floats) -> Floats:
    n_systems = len(merged)
    below = np.zeros((n_systems, n_systems))
    step = max(1, BLOCK // n_systems**2)
    for at in range(0, len(means), step):
        rows = means[at : at + step]
        below += (rows[:, :, None] < rows[:, None, :]).sum(axis=0)
    return np.where(merged[:, None] > merged, below / len(means), 0.0)


def _first(n_judges: Floats) -> str:
    return f"topic {int(np.argmin(n_judges))} has none"
