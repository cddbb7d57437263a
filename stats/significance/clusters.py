"""Metrics ranked, where those that do not differ significantly share a rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan

from error_codes import InvalidValue
from stats.libraries import pd


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
    if not 0 < alpha < 1:
        raise InvalidValue(
            f"alpha must lie between 0 and 1, not {alpha}", code="alpha_out_of_range"
        )
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
    if any(of is None for of in p_values):
        raise InvalidValue(
            f"p has no value for '{name}' and a metric it must be compared with", code="p_missing"
        )
    return [of for of in p_values if of is not None]
