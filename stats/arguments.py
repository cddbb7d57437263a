"""Columns of a long frame as callers hand them in: checked, coded, and summed by group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from error_codes import InvalidValue
from stats.libraries import np, pd

if TYPE_CHECKING:
    Column: TypeAlias = Sequence[Any] | NDArray[Any] | pd.Series[Any] | pd.Index[Any]
else:  # pandas is imported by the functions that use it
    Column: TypeAlias = Sequence[Any] | NDArray[Any]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]
Signs: TypeAlias = NDArray[np.int8]


def require(condition: object, message: str, *, code: str) -> None:
    if not condition:
        raise InvalidValue(message, code=code)


def series(values: Column, name: str) -> pd.Series[Any]:
    """The column as a Series with a fresh index, whatever kind of sequence it came as."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidValue(
            f"{name} must be one-dimensional, not of shape {values.shape}",
            code=f"{name}_not_a_column",
        )
    require(
        not isinstance(values, str),
        f"{name} must be a column of values, not a single string",
        code=f"{name}_not_a_column",
    )
    return pd.Series(values).reset_index(drop=True)


def require_same_length(**columns: Column) -> int:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        description = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InvalidValue(
            f"{', '.join(columns)} must have the same length: {description}", code="unequal_lengths"
        )
    return next(iter(lengths.values()))


def coded(values: Column, name: str) -> tuple[Integers, list[Hashable]]:
    """Integer codes by order of appearance, and the distinct values they stand for."""
    try:
        codes, distinct = pd.factorize(series(values, name))
    except TypeError as error:
        raise InvalidValue(
            f"{name} holds a value that cannot be hashed: {error}", code=f"{name}_not_hashable"
        ) from error
    if (codes < 0).any():
        missing = int((codes < 0).sum())
        raise InvalidValue(
            f"{name} has {missing} missing values; leave their rows out", code=f"{name}_missing"
        )
    return codes.astype(np.intp, copy=False), list(distinct)


def coded_in_order(values: Column, name: str) -> tuple[Integers, list[Hashable]]:
    """Like `coded`, by ascending value where the values can be ordered."""
    if (small := _small_integers(values)) is not None:
        return small
    codes, distinct = coded(values, name)
    try:
        order = _ascending(distinct)
    except TypeError:
        return codes, distinct
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    return position[codes], [distinct[index] for index in order]


def _ascending(distinct: list[Hashable]) -> Sequence[int] | Integers:
    array = np.asarray(distinct) if all(isinstance(v, int | float) for v in distinct) else None
    if array is not None and array.dtype.kind in "iuf":
        return np.argsort(array, kind="stable")
    return sorted(range(len(distinct)), key=distinct.__getitem__)  # type: ignore[arg-type]


def _small_integers(values: Column) -> tuple[Integers, list[Hashable]] | None:
    """Codes of integers in a narrow range, found by counting, which is several times as fast."""
    data = values.to_numpy() if isinstance(values, pd.Series) else values
    if not isinstance(data, np.ndarray) or data.dtype.kind != "i" or data.ndim != 1:
        return None
    if not len(data) or int(data.max()) - int(data.min()) > len(data):
        return None
    low = int(data.min())
    above = data.astype(np.intp, copy=False) - low
    present = np.bincount(above) > 0
    return (np.cumsum(present) - 1)[above].astype(np.intp, copy=False), [
        int(index) + low for index in np.flatnonzero(present)
    ]


def numbers(values: Column, name: str) -> Floats:
    """The column as floats; missing values are NaN, and infinite ones are refused."""
    column = series(values, name)
    if column.dtype == object and column.map(lambda value: isinstance(value, str)).any():
        raise InvalidValue(f"{name} must be numeric, and holds text", code=f"{name}_not_numeric")
    require(
        pd.api.types.is_numeric_dtype(column) or column.dtype == object or column.empty,
        f"{name} must be numeric, not {column.dtype}",
        code=f"{name}_not_numeric",
    )
    try:
        result = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InvalidValue(
            f"{name} must be numeric: {error}", code=f"{name}_not_numeric"
        ) from error
    require(not np.isinf(result).any(), f"{name} must be finite", code=f"{name}_not_finite")
    return result


def complete_numbers(values: Column, name: str) -> Floats:
    result = numbers(values, name)
    missing = int(np.isnan(result).sum())
    require(
        not missing,
        f"{name} has {missing} missing values; leave their rows out",
        code=f"{name}_missing",
    )
    return result


def require_shares(**named: float) -> None:
    for name, value in named.items():
        require(
            0 < value < 1,
            f"{name} must lie between 0 and 1, not {value}",
            code=f"{name}_out_of_range",
        )


def require_confidence(confidence: float) -> None:
    require_shares(confidence=confidence)


def require_at_least(least: float, **named: float) -> None:
    for name, value in named.items():
        if value < least:
            raise InvalidValue(
                f"{name} must be at least {least}, not {value}", code=f"{name}_out_of_range"
            )


def require_one_of(**arguments: tuple[str, tuple[str, ...]]) -> None:
    for name, (value, known) in arguments.items():
        require(
            value in known,
            f"{name} must be one of {', '.join(known)}, not {value!r}",
            code=f"unknown_{name}",
        )


def sum_by(group: Integers, values: Floats, n_groups: int) -> Floats:
    """The sum of the values in each of groups 0 to ``n_groups - 1``; 0 in an empty one.

    Examples
    --------
    >>> sum_by(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 3).tolist()
    [1.0, 0.0, 5.0]
    """
    return np.bincount(group, values, n_groups).astype(np.float64, copy=False)


def pairs_within(group: Integers, n_groups: int) -> tuple[Integers, Integers]:
    """Every two rows of the same group, as two columns of row numbers.

    Examples
    --------
    >>> left, right = pairs_within(np.array([0, 1, 0, 0]), 2)
    >>> list(zip(left.tolist(), right.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    order = np.argsort(group, kind="stable")
    end = np.cumsum(np.bincount(group, minlength=n_groups))[group[order]]
    partners = end - np.arange(len(order)) - 1
    left = np.repeat(np.arange(len(order)), partners)
    step = np.arange(len(left)) - np.repeat(np.cumsum(partners) - partners, partners)
    return order[left], order[left + 1 + step]
