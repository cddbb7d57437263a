from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log, nan
from typing import Any

from error_codes import CodedText, InvalidValue
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_confidence,
    require_same_length,
)
from stats.inference.penalised_logistic import Design, Mode, conditional_mode
from stats.libraries import np, scipy

INTERCEPT = "intercept"
LEAST_LEVELS = 3
# A coefficient or a standard error beyond it, in logits, says that the outcomes are separated.
WIDEST = 12.0
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
N_DRAWS = 20_000
# A deviation that has come down to it is reported as 0, and taken as known.
LEAST_DEVIATION = 1e-3
STEP = 1e-3
SEARCH: dict[str, Any] = {
    "method": "L-BFGS-B",
    "jac": "3-point",
    "options": {"ftol": 1e-13, "gtol": 1e-6, "finite_diff_rel_step": 1e-4},
}


@dataclass(frozen=True)
class Coefficient:
    name: str
    value: float
    se: float
    ci_low: float
    ci_high: float
    p: float


@dataclass(frozen=True)
class MarginalProbability:
    """The share of all annotators and targets, not that of the average one, with its interval."""

    value: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class MixedLogistic:
    """A fitted model.

    Attributes
    ----------
    coefficients : tuple of Coefficient
        The intercept first, then as named.
    deviations : dict of str to float
        The standard deviation of each group's intercepts, in logits.
    covariance : ndarray of float, shape (n_groups + n_coefficients,) * 2
        Of the deviations and the coefficients, from the curvature of the likelihood in both;
        0 for a deviation of 0.
    log_likelihood : float
        By Laplace's approximation.
    levels : dict of str to int
        How many annotators, targets and so on there are.
    n : int
        Outcomes.
    confidence : float
    reason : str or None
        Why coefficients are NaN.
    """

    coefficients: tuple[Coefficient, ...]
    deviations: dict[str, float]
    covariance: Floats = field(repr=False)
    log_likelihood: float
    levels: dict[str, int]
    n: int
    confidence: float
    reason: str | None = None

    @property
    def degrees_of_freedom(self) -> int:
        return min(self.levels.values()) - 1

    def __getitem__(self, name: str) -> Coefficient:
        return next(one for one in self.coefficients if one.name == name)

    def probability(
        self, at: Mapping[str, float], *, rng: int | np.random.Generator = 0
    ) -> MarginalProbability:
        """The probability of the outcome where the columns have these values.

        Parameters
        ----------
        at : mapping of str to float
            A value for each column; those not named are 0.
        rng : int or Generator
            Of the 20,000 draws of the coefficients that the interval is made of.

        Returns
        -------
        MarginalProbability
            The logistic function averaged over the normal intercepts of new groups; limits are
            percentiles.

        Raises
        ------
        ValueError
            If a name is no column of the model.
        """
        names = [one.name for one in self.coefficients]
        if unknown := set(at) - set(names[1:]):
            raise InvalidValue(
                f"at must name columns of the model, not {sorted(unknown)[0]!r}",
                code="unknown_column",
            )
        if self.reason is not None:
            return MarginalProbability(nan, nan, nan)
        row = np.array([1.0, *(at.get(name, 0.0) for name in names[1:])])
        deviations = np.array(list(self.deviations.values()))
        best = np.array([*deviations, *(one.value for one in self.coefficients)])
        generator, degrees = np.random.default_rng(rng), self.degrees_of_freedom
        gaps = generator.multivariate_normal(
            np.zeros(len(best)), self.covariance, N_DRAWS, method="eigh"
        )
        draws = best + gaps * np.sqrt(degrees / generator.chisquare(degrees, (N_DRAWS, 1)))
        spread = np.sqrt((draws[:, : len(deviations)] ** 2).sum(axis=1))
        shares = _averaged(draws[:, len(deviations) :] @ row, spread)
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(shares, [tail, 1 - tail])
        spread = np.sqrt((deviations**2).sum())[None]
        value = _averaged(best[None, len(deviations) :] @ row, spread)[0]
        return MarginalProbability(float(value), float(low), float(high))


def mixed_logistic(
    outcome: Column,
    columns: Mapping[str, Column],
    groups: Mapping[str, Column],
    *,
    confidence: float = 0.95,
) -> MixedLogistic:
    """The model ``logit P(outcome) = intercept + columns + one intercept for each group``.

    Parameters
    ----------
    outcome : array-like, shape (n,)
        0 or 1.
    columns : mapping of str to array-like of float, shape (n,)
        Fixed effects; an interaction is a column of products.
    groups : mapping of str to array-like, shape (n,)
        The annotator of each outcome, its target: their intercepts are normal around 0, groups
        may be crossed.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    MixedLogistic
        Coefficients are NaN with a reason where outcomes are all the same or separated.

    Raises
    ------
    ValueError
        If columns differ in length, a value is missing, the outcome is not 0 and 1, a column is
        constant or a sum of others, or a group has fewer than three levels.

    Notes
    -----
    Maximum likelihood with the random intercepts integrated by Laplace's approximation, as in
    lme4's ``glmer`` with ``nAGQ = 1``. Standard errors count what is not known of the deviations:
    they are of the likelihood's curvature in deviations and coefficients together (``glmer``'s
    ``use.hessian = TRUE``). Where there are few levels the deviations are a little small, which
    Student's t with one degree less than the smallest grouping has levels makes up for. How
    often the intervals hold is in docs/coverage.md, under `switching`.

    References
    ----------
    D. Bates, M. Mächler, B. Bolker and S. Walker (2015). Fitting linear mixed-effects models
    using lme4. Journal of Statistical Software 67(1).
    N. E. Breslow and D. G. Clayton (1993). Approximate inference in generalized linear mixed
    models. JASA 88, 9-25.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> worker, loss = np.arange(400) % 20, rng.integers(0, 2, 400)
    >>> logit = -1 + 2 * loss + rng.normal(size=20)[worker]
    >>> switched = rng.random(400) < 1 / (1 + np.exp(-logit))
    >>> model = mixed_logistic(switched, {"loss": loss}, {"worker": worker})
    >>> model["loss"].ci_low < 2 < model["loss"].ci_high
    True
    """
    require_confidence(confidence)
    design, names, levels = _design(outcome, columns, groups)
    if design.outcome.min() == design.outcome.max():
        return undefined_model(
            names,
            levels,
            len(design.outcome),
            confidence,
            CodedText("all outcomes are the same", code="equal_outcomes"),
        )
    parameters, mode = _fit(design)
    covariance = _covariance(design, parameters, mode)
    beta, se = parameters[len(levels) :], np.sqrt(np.diag(covariance))[len(levels) :]
    if max(np.abs(beta).max(), se.max()) > WIDEST:
        return undefined_model(
            names,
            levels,
            len(design.outcome),
            confidence,
            CodedText("the outcomes are separated by the columns", code="separated"),
        )
    student = scipy.stats.t(min(levels.values()) - 1)
    t = float(student.ppf((1 + confidence) / 2))
    rows = tuple(
        Coefficient(name, b, s, b - t * s, b + t * s, float(2 * student.sf(abs(b / s))))
        for name, b, s in zip(names, beta.tolist(), se.tolist(), strict=True)
    )
    return MixedLogistic(
        coefficients=rows,
        deviations=dict(zip(levels, parameters[: len(levels)].tolist(), strict=True)),
        covariance=covariance,
        log_likelihood=mode.log_likelihood,
        levels=levels,
        n=len(design.outcome),
        confidence=confidence,
    )


def _design(
    outcome: Column, columns: Mapping[str, Column], groups: Mapping[str, Column]
) -> tuple[Design, list[str], dict[str, int]]:
    require_same_length(outcome=outcome, **columns, **groups)
    y = complete_numbers(outcome, "outcome")
    require(
        len(y) and np.isin(y, (0, 1)).all(),
        "outcome must be 0 or 1 in every row",
        code="outcome_out_of_range",
    )
    require(groups, "groups must name at least one column of groups", code="groups_missing")
    names = [INTERCEPT, *columns]
    values = [complete_numbers(column, name) for name, column in columns.items()]
    x = np.column_stack([np.ones(len(y)), *values])
    require(
        np.linalg.matrix_rank(x) >= x.shape[1],
        "columns must not be constant, nor sums of one another",
        code="collinear_columns",
    )
    codes: list[Integers] = []
    levels: dict[str, int] = {}
    for name, column in groups.items():
        code, distinct = coded_in_order(column, name)
        require(
            len(distinct) >= LEAST_LEVELS,
            f"{name} must have at least {LEAST_LEVELS} levels",
            code="too_few_levels",
        )
        codes.append(code)
        levels[name] = len(distinct)
    return Design(y, x, tuple(codes), tuple(levels.values())), names, levels


def _fit(design: Design) -> tuple[Floats, Mode]:
    """Deviations and coefficients with the highest likelihood, first the ones alone.

    Over the logarithm of the deviations: the likelihood is even in each, so that a step which
    overshot to 0 would find no slope there that leads back.
    """
    n_groups = len(design.codes)
    modes: dict[str, Mode] = {}

    def of_deviations(log_theta: Floats) -> float:
        modes["last"] = conditional_mode(design, np.exp(log_theta), None, modes.get("last"))
        return -modes["last"].log_likelihood

    bounds = [(log(LEAST_DEVIATION), log(WIDEST))] * n_groups
    guess = np.full(n_groups, log(0.7))
    first = scipy.optimize.minimize(of_deviations, guess, bounds=bounds, **SEARCH)
    beta = conditional_mode(design, np.exp(first.x), None, None).beta

    def of_all(parameters: Floats) -> float:
        theta = np.exp(parameters[:n_groups])
        modes["last"] = conditional_mode(design, theta, parameters[n_groups:], modes.get("last"))
        return -modes["last"].log_likelihood

    free = [(-3 * WIDEST, 3 * WIDEST)] * len(beta)
    start = np.concatenate([first.x, beta])
    second = scipy.optimize.minimize(of_all, start, bounds=bounds + free, **SEARCH)
    theta, best = np.exp(second.x[:n_groups]), second.x[n_groups:]
    theta = np.where(theta > 2 * LEAST_DEVIATION, theta, 0.0)
    return np.concatenate([theta, best]), conditional_mode(design, theta, best, None)


def _covariance(design: Design, parameters: Floats, mode: Mode) -> Floats:
    """The inverse of the likelihood's curvature, by central differences.

    A deviation of 0 is taken as known, and all are where there is no maximum to speak of.
    """
    n_groups = len(design.codes)
    is_free = np.r_[parameters[:n_groups] > 0, np.ones(len(parameters) - n_groups, dtype=bool)]
    steps = np.eye(len(parameters))[is_free] * STEP

    def value(at: Floats) -> float:
        return conditional_mode(design, at[:n_groups], at[n_groups:], mode).log_likelihood

    curvature = np.empty((len(steps), len(steps)))
    for first, one in enumerate(steps):
        for second, other in enumerate(steps[: first + 1]):
            near = value(parameters + one + other) + value(parameters - one - other)
            far = value(parameters + one - other) + value(parameters - one + other)
            curvature[first, second] = curvature[second, first] = (far - near) / (4 * STEP**2)
    covariance = np.zeros((len(parameters), len(parameters)))
    if np.linalg.eigvalsh(curvature)[0] > 0:
        try:
            covariance[np.ix_(is_free, is_free)] = np.linalg.inv(curvature)
        except np.linalg.LinAlgError:  # flat, as where outcomes are separated
            np.fill_diagonal(covariance, np.inf)
    else:
        covariance[n_groups:, n_groups:] = mode.covariance
    return covariance


def _averaged(logits: Floats, spread: Floats) -> Floats:
    shares = scipy.special.expit(logits[:, None] + spread[..., None] * NODES)
    return np.asarray(shares @ WEIGHTS / WEIGHTS.sum())


def undefined_model(
    names: Sequence[str], levels: Mapping[str, int], n: int, confidence: float, reason: str
) -> MixedLogistic:
    """A model that cannot be fitted: all NaN, with the reason.

    Parameters
    ----------
    names : sequence of str
        Of the coefficients, the intercept first.
    levels : mapping of str to int
        How many annotators, targets and so on there are.
    n : int
        Outcomes.
    confidence : float
    reason : str

    Returns
    -------
    MixedLogistic
    """
    return MixedLogistic(
        coefficients=tuple(Coefficient(name, nan, nan, nan, nan, nan) for name in names),
        deviations=dict.fromkeys(levels, nan),
        covariance=np.full((len(levels) + len(names),) * 2, nan),
        log_likelihood=nan,
        levels=dict(levels),
        n=n,
        confidence=confidence,
        reason=reason,
    )
