"""Whether values from a command line or a file are of the kinds that were declared for them."""

from collections.abc import Mapping, Sequence
from inspect import Parameter, formatannotation
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from error_codes import InvalidValue

NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    NoneType: "null",
}


def check_kinds(values: Mapping[str, object], declared: Mapping[str, Any]) -> None:
    """Refuse a value of another kind than its annotation says, before it is computed with.

    Parameters
    ----------
    values : mapping of str to object
        Values by name; those that are not declared are not checked.
    declared : mapping of str to annotation

    Raises
    ------
    ValueError
        If a value is of another kind; the message names it.

    Examples
    --------
    >>> check_kinds({"n": 2, "model": "tiny"}, {"n": int, "model": str | Path})
    >>> check_kinds({"lowercase": "no"}, {"lowercase": bool})
    Traceback (most recent call last):
    error_codes.InvalidValue: lowercase must be true or false, got 'no'
    """
    for name, value in values.items():
        kind = declared.get(name, Parameter.empty)
        if kind is not Parameter.empty and not _is_of(kind, value):
            raise InvalidValue(
                f"{name} must be {_description(kind)}, got {value!r}", code="wrong_kind"
            )


def _is_of(kind: Any, value: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_of(one, value) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) for one in inner)
    if origin is Sequence:
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        return is_list and all(_is_of(inner[0], part) for part in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _is_of(inner[0], key) and _is_of(inner[1], part) for key, part in value.items()
        )
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _description(kind: Any) -> str:
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return " or ".join(
        NAMES.get(part) or formatannotation(part).removeprefix("collections.abc.") for part in parts
    )
