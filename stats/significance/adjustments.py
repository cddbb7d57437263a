from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isnan

from stats.arguments import Column, Floats, numbers, require, require_shares
from stats.libraries import np, pd


def holm(p: Column, *, n_untested: int = 0) -> Floats:
    """Holm's step-down adjustment, which bounds the chance of any false rejection.

    Parameters
    ----------
    p : array-like of float, shape (n_tests,)
        p-values; NaN for a test that could not be done, which does not count.
    n_untested : int
        Further tests that were left out because the same values promised less of them; they count
        as done, and as not rejected.

    Returns
    -------
    ndarray of float, shape (n_tests,)
        Adjusted p-values in the same order, NaN where `p` is.

    Raises
    ------
    ValueError
        If a p-value lies outside 0 to 1, or `n_untested` below 0.

    References
    ----------
    S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal
    of Statistics 6(2), 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
    [0.03, 0.06, 0.06, 0.02]
    >>> holm([0.01], n_untested=3).tolist()
    [0.04]
    """
    require(
        n_untested >= 0,
        f"n_untested must not be below 0, but is {n_untested}",
        code="n_untested_out_of_range",
    )
    tested = numbers(p, "p")
    return _adjusted(np.concatenate([tested, np.ones(n_untested)]), _holm)[: len(tested)]


def benjamini_hochberg(p: Column) -> Floats:
    """Benjamini and Hochberg's step-up adjustment, which bounds the rate of false discoveries.

    Parameters
    ----------
    p : array-like of float, shape (n_tests,)
        p-values; NaN for a test that could not be done, which does not count.

    Returns
    -------
    ndarray of float, shape (n_tests,)
        Adjusted p-values in the same order, NaN where `p` is.

    Raises
    ------
    ValueError
        If a p-value lies outside 0 to 1.

    References
    ----------
    Y. Benjamini and Y. Hochberg (1995). Controlling the false discovery rate. Journal of the
    Royal Statistical Society B 57(1), 289-300.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
    [0.02, 0.04, 0.04, 0.02]
    """
    return _adjusted(p, _benjamini_hochberg)


def benjamini_yekutieli(p: Column) -> Floats:
    """Benjamini and Yekutieli's adjustment: false discoveries under any dependence of the tests.

    Parameters
    ----------
    p : array-like of float, shape (n_tests,)
        p-values; NaN for a test that could not be done, which does not count.

    Returns
    -------
    ndarray of float, shape (n_tests,)
        Adjusted p-values in the same order, NaN where `p` is.

    Raises
    ------
    ValueError
        If a p-value lies outside 0 to 1.

    References
    ----------
    Y. Benjamini and D. Yekutieli (2001). The control of the false discovery rate in multiple
    testing under dependency. Annals of Statistics 29(4), 1165-1188.

    Examples
    --------
    >>> benjamini_yekutieli([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
    [0.042, 0.083, 0.083, 0.042]
    """
    return _adjusted(p, _benjamini_yekutieli)


def _adjusted(p: Column, of_ascending: Callable[[Floats], Floats]) -> Floats:
    values = numbers(p, "p")
    defined = np.flatnonzero(~np.isnan(values))
    require(
        not ((values[defined] < 0) | (values[defined] > 1)).any(),
        "p must lie between 0 and 1",
        code="p_out_of_range",
    )
    order = defined[np.argsort(values[defined], kind="stable")]
    result = np.full(len(values), np.nan)
    result[order] = np.minimum(of_ascending(values[order]), 1.0)
    return result


def _holm(p: Floats) -> Floats:
    return np.maximum.accumulate(p * np.arange(len(p), 0, -1))


def _benjamini_hochberg(p: Floats) -> Floats:
    scaled = p * len(p) / np.arange(1, len(p) + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _benjamini_yekutieli(p: Floats) -> Floats:
    return _benjamini_hochberg(p) * float((1 / np.arange(1, len(p) + 1)).sum())


def significance_clusters(
    values: Mapping[str, float], p: Mapping[tuple[str, str], float], *, alpha: float = 0.05
) -> pd.Series[int]:
    """Ranks of metrics, best first, a new one where a metric is worse than any of the last.

    Parameters
    ----------
    values : mapping of str to float
        Each metric's coefficient; higher is better. Undefined ones are left out.
    p : mapping of pair of str to float
        p-values of pairs of metrics, named in either order, adjusted or not.
    alpha : float
        A pair differs where its p is below this.

    Returns
    -------
    Series of int
        Ranks from 1, indexed by metric, best first.

    Raises
    ------
    ValueError
        If `alpha` is not between 0 and 1, or `p` lacks a pair.

    Notes
    -----
    As in the WMT metrics task: going down from the best, a metric joins the cluster above unless
    it is significantly worse than one of its members. A pair without a p does not differ.

    References
    ----------
    M. Freitag et al. (2023). Results of WMT23 metrics shared task: Metrics might be guilty but
    references are not innocent. WMT 2023, 578-628, section 7.

    Examples
    --------
    >>> p = {("a", "b"): 0.2, ("a", "c"): 0.01, ("b", "c"): 0.3}
    >>> significance_clusters({"a": 0.5, "b": 0.4, "c": 0.3}, p).to_dict()
    {'a': 1, 'b': 1, 'c': 2}
    """
    require_shares(alpha=alpha)
    defined = {name: value for name, value in values.items() if not isnan(value)}
    ranks: dict[str, int] = {}
    cluster: list[str] = []
    rank = 1
    for name in sorted(defined, key=defined.__getitem__, reverse=True):
        if any(of < alpha for of in _against(name, cluster, p)):
            rank, cluster = rank + 1, []
        cluster.append(name)
        ranks[name] = rank
    return pd.Series(ranks, dtype="int64")


def _against(name: str, cluster: Iterable[str], p: Mapping[tuple[str, str], float]) -> list[float]:
    p_values = [p.get((other, name), p.get((name, other))) for other in cluster]
    require(
        all(of is not None for of in p_values),
        f"p has no value for '{name}' and a metric it must be compared with",
        code="p_missing",
    )
    return [of for of in p_values if of is not None]
