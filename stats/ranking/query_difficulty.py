"""How difficult topics will be, predicted from their lists' scores: a row each, NaN behind it.

Without a score a topic has NaN. An item as a query counts as one term.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.arguments import Floats, require, require_one_of

Predictor = Literal["nqc", "wig", "smv", "sigma_k", "sigma_max", "n_sigma", "max", "mean"]
NEEDS_CORPUS_SCORE: frozenset[Predictor] = frozenset({"nqc", "wig", "smv"})


def max_score(scores: ArrayLike) -> Floats:
    """The first document's score.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If `scores` has not two dimensions or is infinite.

    References
    ----------
    S. Tomlinson (2004). Robust, Web and Terabyte retrieval with Hummingbird SearchServer at TREC
    2004. Proceedings of TREC 2004.

    Examples
    --------
    >>> max_score([[3.0, 1.0, 2.0], [5.0, np.nan, np.nan]]).tolist()
    [3.0, 5.0]
    """
    return _falling(scores)[:, 0]


def mean_score(scores: ArrayLike, *, cutoff: int = 100) -> Floats:
    """The mean of the first scores.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)
    cutoff : int
        Ranks that count; of a shorter list, all.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If `scores` has not two dimensions or is infinite, or the cutoff is not positive.

    References
    ----------
    A. Shtok, O. Kurland, D. Carmel, F. Raiber and G. Markovits (2012). Predicting query performance
    by query-drift estimation. ACM TOIS 30(2), article 11.

    Examples
    --------
    >>> mean_score([[3.0, 1.0, 2.0], [5.0, np.nan, np.nan]], cutoff=2).tolist()
    [2.5, 5.0]
    """
    return _mean(_first(scores, cutoff))


def sigma_k(scores: ArrayLike, *, cutoff: int = 100) -> Floats:
    """The standard deviation of the first scores, in its population form.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)
    cutoff : int
        Ranks that count; of a shorter list, all.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If `scores` has not two dimensions or is infinite, or the cutoff is not positive.

    References
    ----------
    J. Pérez-Iglesias and L. Araujo (2010). Standard deviation as a query hardness estimator. SPIRE
    2010, 207-212.

    Examples
    --------
    >>> sigma_k([[4.0, 2.0, 0.0]], cutoff=2).tolist()
    [1.0]
    """
    first = _first(scores, cutoff)
    return np.sqrt(_mean(np.square(first - _mean(first)[:, None])))


def sigma_max(scores: ArrayLike) -> Floats:
    """The greatest standard deviation of the first k scores, over every k.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If `scores` has not two dimensions or is infinite.

    References
    ----------
    J. Pérez-Iglesias and L. Araujo (2010). Standard deviation as a query hardness estimator. SPIRE
    2010, 207-212.

    Examples
    --------
    >>> sigma_max([[4.0, 2.0, 2.0, 2.0]]).tolist()
    [1.0]
    """
    falling = _falling(scores)
    # From the first score down, so that a large mean does not swallow a small variance.
    below = falling - falling[:, :1]
    n = np.arange(1, falling.shape[1] + 1)
    variance = np.cumsum(np.square(below), axis=1) / n - np.square(np.cumsum(below, axis=1) / n)
    greatest: Floats = np.fmax.reduce(np.maximum(variance, 0), axis=1)
    return np.sqrt(greatest)


def n_sigma(scores: ArrayLike, *, share: float = 0.5, query_terms: ArrayLike = 1) -> Floats:
    """The standard deviation of the scores that reach a share of the first one's.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)
        Positive: of negative ones none reaches a share of the first.
    share : float
        Above 0 and at most 1.
    query_terms : array-like of int
        Terms of each query, by the square root of which the deviation is divided.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If `scores` has not two dimensions, is infinite or not positive, or `share` or
        `query_terms` is out of range.

    References
    ----------
    R. Cummins, J. Jose and C. O'Riordan (2011). Improved query performance prediction using
    standard deviation. SIGIR 2011, 1089-1090.

    Examples
    --------
    >>> n_sigma([[4.0, 2.0, 1.0]], share=0.5).tolist()
    [1.0]
    """
    require(
        0 < share <= 1,
        f"share must be above 0 and at most 1, got {share}",
        code="share_out_of_range",
    )
    falling = _falling(scores)
    _require_positive(falling)
    reaching = np.where(falling >= share * falling[:, :1], falling, np.nan)
    return sigma_k(reaching, cutoff=falling.shape[1]) / np.sqrt(_terms(query_terms))


def nqc(scores: ArrayLike, corpus_score: ArrayLike, *, cutoff: int = 100) -> Floats:
    """Normalised query commitment: the deviation of the first scores over the corpus score.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)
    corpus_score : array-like of float
        The score of the whole corpus for each topic, such as the mean over the catalogue.
    cutoff : int
        Ranks that count; of a shorter list, all.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        ``sigma_k / |corpus_score|``; NaN where the corpus score is 0.

    Raises
    ------
    ValueError
        If `scores` has not two dimensions or is infinite, or the cutoff is not positive.

    References
    ----------
    A. Shtok, O. Kurland, D. Carmel, F. Raiber and G. Markovits (2012). Predicting query performance
    by query-drift estimation. ACM TOIS 30(2), article 11.

    Examples
    --------
    >>> nqc([[4.0, 2.0, 0.0]], [-0.5], cutoff=2).tolist()
    [2.0]
    """
    return _over_corpus(sigma_k(scores, cutoff=cutoff), corpus_score)


def wig(
    scores: ArrayLike, corpus_score: ArrayLike, *, cutoff: int = 5, query_terms: ArrayLike = 1
) -> Floats:
    """Weighted information gain: the mean distance of the first scores from the corpus score.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)
    corpus_score : array-like of float
        The score of the whole corpus for each topic, such as the mean over the catalogue.
    cutoff : int
        Ranks that count; of a shorter list, all.
    query_terms : array-like of int
        Terms of each query, by the square root of which the gain is divided.

    Returns
    -------
    ndarray of float, shape (n_topics,)

    Raises
    ------
    ValueError
        If `scores` has not two dimensions or is infinite, or the cutoff or `query_terms` is not
        positive.

    References
    ----------
    Y. Zhou and W. B. Croft (2007). Query performance prediction in web search environments. SIGIR
    2007, 543-550.

    Examples
    --------
    >>> wig([[4.0, 2.0, 0.0]], [1.0], cutoff=2, query_terms=[4]).tolist()
    [1.0]
    """
    gain = mean_score(scores, cutoff=cutoff) - np.asarray(corpus_score, dtype=np.float64)
    return gain / np.sqrt(_terms(query_terms))


def smv(scores: ArrayLike, corpus_score: ArrayLike, *, cutoff: int = 100) -> Floats:
    """Score magnitude and variance together.

    Parameters
    ----------
    scores : array-like of float, shape (n_topics, depth)
        Positive.
    corpus_score : array-like of float
        The score of the whole corpus for each topic, such as the mean over the catalogue.
    cutoff : int
        Ranks that count; of a shorter list, all.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        The mean of ``s |ln(s / mean)|`` over ``|corpus_score|``; NaN where that is 0.

    Raises
    ------
    ValueError
        If `scores` has not two dimensions, is infinite or not positive, or the cutoff is not
        positive.

    References
    ----------
    Y. Tao and S. Wu (2014). Query performance prediction by considering score magnitude and
    variance together. CIKM 2014, 1891-1894.

    Examples
    --------
    >>> smv([[3.0, 1.0]], [1.0]).round(4).tolist()
    [0.9548]
    """
    first = _first(scores, cutoff)
    _require_positive(first)
    mean = _mean(first)[:, None]
    return _over_corpus(_mean(first * np.abs(np.log(first / mean))), corpus_score)


def query_difficulty(
    predictor: Predictor,
    scores: ArrayLike,
    *,
    corpus_score: Any = None,
    cutoff: int | None = None,
    share: float = 0.5,
    query_terms: ArrayLike = 1,
) -> Floats:
    """A predictor by its name; of what it does not use, nothing is read.

    Parameters
    ----------
    predictor : {"nqc", "wig", "smv", "sigma_k", "sigma_max", "n_sigma", "max", "mean"}
    scores : array-like of float, shape (n_topics, depth)
    corpus_score : array-like of float, optional
        Of nqc, wig and smv.
    cutoff : int, optional
        Ranks that count; by default the predictor's own.
    share : float
        Of n_sigma.
    query_terms : array-like of int
        Of wig and n_sigma.

    Returns
    -------
    ndarray of float, shape (n_topics,)
        Higher is easier, by hypothesis.

    Raises
    ------
    ValueError
        If the predictor is unknown, lacks its corpus score, or refuses its arguments.

    References
    ----------
    D. Carmel and E. Yom-Tov (2010). Estimating the query difficulty for information retrieval.

    Examples
    --------
    >>> query_difficulty("sigma_k", [[4.0, 2.0, 0.0]], cutoff=2).tolist()
    [1.0]
    """
    require_one_of(predictor=(predictor, get_args(Predictor)))
    ranks: dict[str, Any] = {} if cutoff is None else {"cutoff": cutoff}
    require(
        predictor not in NEEDS_CORPUS_SCORE or corpus_score is not None,
        f"corpus_score is needed for {predictor}",
        code="corpus_score_missing",
    )
    computed: dict[Predictor, Callable[[], Floats]] = {
        "nqc": lambda: nqc(scores, corpus_score, **ranks),
        "wig": lambda: wig(scores, corpus_score, query_terms=query_terms, **ranks),
        "smv": lambda: smv(scores, corpus_score, **ranks),
        "sigma_k": lambda: sigma_k(scores, **ranks),
        "sigma_max": lambda: sigma_max(scores),
        "n_sigma": lambda: n_sigma(scores, share=share, query_terms=query_terms),
        "max": lambda: max_score(scores),
        "mean": lambda: mean_score(scores, **ranks),
    }
    return computed[predictor]()


def _falling(scores: ArrayLike) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    require(
        array.ndim == 2 and array.shape[1],
        f"scores must have a row for each topic, not the shape {array.shape}",
        code="scores_shape",
    )
    require(not np.isinf(array).any(), "scores must be finite", code="scores_not_finite")
    falling: Floats = -np.sort(-array, axis=1)
    return falling


def _first(scores: ArrayLike, cutoff: int) -> Floats:
    require(cutoff >= 1, f"cutoff must be positive, got {cutoff}", code="cutoff_out_of_range")
    return _falling(scores)[:, :cutoff]


def _mean(values: Floats) -> Floats:
    return _divided(np.nansum(values, axis=1), (~np.isnan(values)).sum(axis=1))


def _over_corpus(values: Floats, corpus_score: ArrayLike) -> Floats:
    corpus = np.abs(np.asarray(corpus_score, dtype=np.float64))
    return _divided(values, np.broadcast_to(corpus, values.shape))


def _divided(values: Floats, by: NDArray[Any]) -> Floats:
    quotients = np.full(len(values), np.nan)
    np.divide(values, by, out=quotients, where=by > 0)
    return quotients


def _terms(query_terms: ArrayLike) -> Floats:
    terms = np.asarray(query_terms, dtype=np.float64)
    require((terms >= 1).all(), "query_terms must be at least 1", code="query_terms_out_of_range")
    return terms


def _require_positive(scores: Floats) -> None:
    require(
        not (scores <= 0).any(),
        "scores must be positive for this predictor; use 1 / (1 + distance), say",
        code="scores_not_positive",
    )
