from functools import cache
from typing import Literal, get_args

from stats.arguments import Floats, require, require_confidence, require_one_of
from stats.libraries import np, scipy

Spending = Literal["pocock", "obrien_fleming"]
# Points of the grid on which the density of what was not rejected is integrated.
STEPS = 1001


def confidence_at_look(
    look: int, looks: int, *, confidence: float = 0.95, spending: Spending = "pocock"
) -> float:
    """The level at which to compute the interval of one look, for all looks to hold together.

    Parameters
    ----------
    look, looks : int
        Which look this is, from 1, and how many were planned before the first.
    confidence : float
        Confidence that every look's interval holds the truth, between 0 and 1.
    spending : {"pocock", "obrien_fleming"}
        How the error is spent: about as much at each look, so that intervals narrow as labels
        come in; or little at first and nearly all at the last.

    Returns
    -------
    float
        The level of this look's own interval, above `confidence` where there are several.

    Raises
    ------
    ValueError
        If `look` does not lie between 1 and `looks`, or `confidence` or `spending` is not usable.

    Notes
    -----
    The looks are taken to come after equal shares of the information, and an estimate to differ
    from the one before by what came in since (independent increments), as means do. Boundaries
    are found look by look: of those whose statistic stayed inside the earlier ones, the share
    that leaves at this look is what the spending function allows up to now less what is spent:
    ``a log(1 + (e - 1) t)``, or ``2 - 2 Phi(z / sqrt(t))`` with z of a / 2, a being half of the
    error, for each side.
    Where looks are more alike than their labels say, as with a judge that predicts people well,
    this errs on the safe side. A quantile of Student's t at the same level serves small samples.

    References
    ----------
    K. K. G. Lan and D. L. DeMets (1983). Discrete sequential boundaries for clinical trials.
    Biometrika 70(3), 659-663.
    P. Armitage, C. K. McPherson and B. C. Rowe (1969). Repeated significance tests on
    accumulating data. Journal of the Royal Statistical Society A 132(2), 235-244.
    C. Jennison and B. W. Turnbull (1989). Interim analyses: the repeated confidence interval
    approach. Journal of the Royal Statistical Society B 51(3), 305-361.

    Examples
    --------
    >>> [round(confidence_at_look(look, 3), 4) for look in (1, 2, 3)]
    [0.9774, 0.9783, 0.9783]
    >>> confidence_at_look(1, 1)
    0.95
    """
    require_confidence(confidence)
    require_one_of(spending=(spending, get_args(Spending)))
    require(
        1 <= look <= looks,
        f"look must lie between 1 and looks ({looks}), not {look}",
        code="look_out_of_range",
    )
    if looks == 1:
        return confidence
    return float(
        2 * scipy.stats.norm.cdf(_boundaries(looks, 1 - confidence, spending)[look - 1]) - 1
    )


def p_of_look(p: float, level: float, *, confidence: float = 0.95) -> float:
    """The p that rejects at ``1 - confidence`` just where this look's interval excludes 0.

    Parameters
    ----------
    p : float
        Of this look alone; NaN stays NaN.
    level, confidence : float
        Of this look's interval, and of those of all looks together.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `level` or `confidence` is not between 0 and 1.

    References
    ----------
    As `confidence_at_look`.

    Examples
    --------
    >>> round(p_of_look(0.01, confidence_at_look(1, 3)), 4)
    0.0221
    """
    require_confidence(level)
    require_confidence(confidence)
    return p if np.isnan(p) else min(1.0, p * (1 - confidence) / (1 - level))


def spent(share: float, alpha: float, spending: Spending) -> float:
    """The error that may be spent by the time that share of the information is in.

    Examples
    --------
    >>> round(spent(0.5, 0.05, "obrien_fleming"), 4), round(spent(1, 0.05, "pocock"), 4)
    (0.0031, 0.05)
    """
    if spending == "pocock":
        return float(alpha * np.log1p((np.e - 1) * share))
    return float(4 * scipy.stats.norm.sf(scipy.stats.norm.isf(alpha / 4) / np.sqrt(share)))


@cache
def _boundaries(looks: int, alpha: float, spending: Spending) -> tuple[float, ...]:
    bounds: list[float] = []
    # the sum of increments of variance 1 so far, where no boundary was crossed: a density on a grid
    points, density = np.zeros(1), np.ones(1)
    before = 0.0
    for look in range(1, looks + 1):
        after = spent(look / looks, alpha, spending)
        bound = _crossed_by(after - before, points, density) / np.sqrt(look)
        bounds.append(float(bound))
        edge = bound * np.sqrt(look)
        grid = np.linspace(-edge, edge, STEPS)
        density = scipy.stats.norm.pdf(grid[:, None] - points) @ density
        weights = np.full(STEPS, grid[1] - grid[0])
        weights[[0, -1]] /= 2
        points, density, before = grid, density * weights, after
    return tuple(bounds)


def _crossed_by(share: float, points: Floats, density: Floats) -> float:
    """The distance from 0 beyond which that share of the next sums lies."""

    def beyond(edge: float) -> float:
        tails = scipy.stats.norm.sf(edge - points) + scipy.stats.norm.sf(edge + points)
        return float(tails @ density) - share

    return float(scipy.optimize.brentq(beyond, 0.0, np.abs(points).max() + 12, xtol=1e-10))
