"""One label an item from many annotators' labels, with its uncertainty."""

import inspect
from collections.abc import Callable
from typing import Any

from error_codes import InvalidValue
from stats.aggregation.averages import mean, median, trimmed_mean, zscore
from stats.aggregation.bias_precision import bias_precision
from stats.aggregation.bradley_terry import bradley_terry
from stats.aggregation.dawid_skene import dawid_skene, one_coin
from stats.aggregation.glad import glad
from stats.aggregation.mace import mace, mace_em
from stats.aggregation.majority import majority
from stats.aggregation.preferences import best_worst, preference_strengths
from stats.aggregation.result import Aggregation, Reason
from stats.arguments import Column, require_one_of

__all__ = [
    "METHODS",
    "Aggregation",
    "Reason",
    "aggregate",
    "best_worst",
    "bias_precision",
    "bradley_terry",
    "dawid_skene",
    "glad",
    "mace",
    "mace_em",
    "majority",
    "mean",
    "median",
    "one_coin",
    "preference_strengths",
    "trimmed_mean",
    "zscore",
]


METHODS: dict[str, Callable[..., Aggregation]] = {
    "majority": majority,
    "dawid_skene": dawid_skene,
    "one_coin": one_coin,
    "mace": mace,
    "mace_em": mace_em,
    "glad": glad,
    "mean": mean,
    "trimmed_mean": trimmed_mean,
    "median": median,
    "zscore": zscore,
    "bias_precision": bias_precision,
    "bradley_terry": preference_strengths,
}


def aggregate(
    items: Column, annotators: Column, values: Column, *, method: str, **options: Any
) -> Aggregation:
    """One label an item from the labels of a crowd, by the method of this name.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    method : str
        A key of `METHODS`, whose function says what it does with the columns.
    **options
        The keyword arguments of that function.

    Returns
    -------
    Aggregation

    Raises
    ------
    ValueError
        If the method is unknown, has no such option, or does not accept the columns.

    Examples
    --------
    >>> aggregate([1, 1, 1], list("abc"), list("xyx"), method="majority").label_by_item
    {1: 'x'}
    """
    require_one_of(method=(method, tuple(METHODS)))
    function = METHODS[method]
    known = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if unknown := sorted(set(options) - set(known)):
        raise InvalidValue(
            f"{method} has no option {', '.join(unknown)}; it has {', '.join(known)}",
            code="unknown_option",
        )
    return function(items, annotators, values, **options)
