"""Whether an answer fails a check whose right answer is known."""

from __future__ import annotations

from math import isnan

from error_codes import InvalidValue


def band_failed(value: float, expected: float, tolerance: float = 0.0) -> bool:
    """Whether a value lies further from the known one than is tolerated.

    Parameters
    ----------
    value, expected : float
        What was answered and what is right, in the units of the scale.
    tolerance : float
        How far off an answer may be, in the same units; its edges pass.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a number is NaN or the tolerance is negative.

    Examples
    --------
    >>> band_failed(70, expected=80, tolerance=15), band_failed(60, expected=80, tolerance=15)
    (False, True)
    """
    _require_numbers(value=value, expected=expected, tolerance=tolerance)
    return abs(value - expected) > tolerance


def repeat_failed(first: float, second: float, tolerance: float = 0.0) -> bool:
    """Whether two answers about the same thing lie further apart than is tolerated.

    Parameters
    ----------
    first, second : float
        Both answers, in the units of the scale.
    tolerance : float
        How far apart they may be, in the same units; its edges pass.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a number is NaN or the tolerance is negative.

    Examples
    --------
    >>> repeat_failed(55, 60, tolerance=10), repeat_failed(20, 60, tolerance=10)
    (False, True)
    """
    return band_failed(first, second, tolerance)


def degraded_failed(
    degraded: float, original: float, *, lowest: float, tolerance: float = 0.0
) -> bool:
    """Whether something made worse on purpose was not rated lower than what it was made of.

    Parameters
    ----------
    degraded, original : float
        Both ratings, in the units of the scale.
    lowest : float
        The low end of the scale: where both are there, nothing lower can be said, and it passes.
    tolerance : float
        By how much the degraded one may still be rated higher.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a number is NaN or the tolerance is negative.

    References
    ----------
    Y. Graham, T. Baldwin, A. Moffat and J. Zobel (2017). Can machine translation systems be
    evaluated by the crowd alone. Natural Language Engineering 23(1), 3-30.

    Examples
    --------
    >>> degraded_failed(20, 80, lowest=0), degraded_failed(80, 80, lowest=0)
    (False, True)
    >>> degraded_failed(0, 0, lowest=0)
    False
    """
    _require_numbers(degraded=degraded, original=original, lowest=lowest, tolerance=tolerance)
    if degraded == original == lowest:
        return False
    return degraded > original + tolerance if tolerance else degraded >= original


def _require_numbers(tolerance: float, **values: float) -> None:
    for name, value in {**values, "tolerance": tolerance}.items():
        if isnan(value):
            raise InvalidValue(f"{name} must be a number, not NaN", code=f"{name}_missing")
    if tolerance < 0:
        raise InvalidValue(
            f"tolerance must not be negative, and is {tolerance}", code="tolerance_out_of_range"
        )
