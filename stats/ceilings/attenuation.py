"""What noise in ratings does to correlations, and how more ratings would lessen it."""

from math import nan, sqrt

from error_codes import InvalidValue


def spearman_brown(reliability: float, factor: float) -> float:
    """The reliability of a measure lengthened by a factor.

    Parameters
    ----------
    reliability : float
        That of the measure as it is; at most 1.
    factor : float
        How many times as many ratings.

    Returns
    -------
    float
        NaN where the reliability is, or where lengthening such a negative one means nothing.

    Raises
    ------
    ValueError
        If `factor` is not positive.

    References
    ----------
    C. Spearman (1910). Correlation calculated from faulty data. British Journal of Psychology 3.
    W. Brown (1910). Some experimental results in the correlation of mental abilities. Ibid.

    Examples
    --------
    >>> round(spearman_brown(0.5, 3), 4)
    0.75
    """
    if not factor > 0:
        raise InvalidValue(f"factor must be positive, not {factor}", code="factor_out_of_range")
    denominator = 1 + (factor - 1) * reliability
    return factor * reliability / denominator if denominator > 0 else nan


def disattenuated(value: float, reliability: float) -> float:
    """A correlation with ratings corrected for the ratings' noise.

    Parameters
    ----------
    value : float
        The correlation of a metric with mean ratings.
    reliability : float
        The reliability of the mean ratings.

    Returns
    -------
    float
        What the correlation with noiseless ratings would be; it may exceed 1 by chance. NaN
        where the reliability is not positive.

    References
    ----------
    C. Spearman (1904). The proof and measurement of association between two things. American
    Journal of Psychology 15(1), 72-101.

    Examples
    --------
    >>> disattenuated(0.3, 0.25)
    0.6
    """
    return value / sqrt(reliability) if reliability > 0 else nan
