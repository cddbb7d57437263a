from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan

from error_codes import CodedText
from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    complete_numbers,
    require,
    require_same_length,
    sum_by,
)
from stats.inference.powered_means import (
    LEAST_OF_A_CLASS,
    Estimate,
    Withheld,
    adds_nothing,
    judge_notes,
)
from stats.inference.powered_moments import Rules, centered_scores, checked_columns
from stats.label_sampling import compare_labeled
from stats.libraries import np, scipy

# Rated items (or clusters) that each coefficient asks for, and as many more.
LABELS_FOR_EACH = 5


@dataclass(frozen=True, kw_only=True)
class Coefficient(Estimate):
    """What ratings rise by with a unit of a covariate, two-sided p, and people alone."""

    name: str
    p: float
    people_only: Estimate


@dataclass(frozen=True, kw_only=True)
class PoweredRegression:
    """Coefficients, the intercept first; `reason` says why there is no interval.

    `power` is how much the judge's scores count, from 0 to 1: lambda for scores with the standard
    deviation of the human ratings, covariates held fixed.
    """

    coefficients: tuple[Coefficient, ...]
    power: float
    n_labelled: int
    n: int
    freedom: float
    reason: Withheld | None = None
    notes: tuple[CodedText, ...] = ()


def prediction_powered_regression(
    human: Column,
    judge: Column,
    covariates: Mapping[str, Column],
    *,
    clusters: Column | None = None,
    power: float | None = None,
    small_sample: bool = True,
    confidence: float = 0.95,
) -> PoweredRegression:
    """Least squares of human ratings on covariates, from a part rated and a judge of all items.

    Parameters
    ----------
    human : array-like of float, shape (n_items,)
        The human rating of each item, NaN for an item without one. Which items have one must be
        random.
    judge : array-like of float, shape (n_items,)
        The judge's score of each item, in any unit; lower scores may go with higher ratings.
    covariates : mapping of str to array-like of float, shape (n_items,)
        Columns known of every item; an intercept is added.
    clusters : array-like, shape (n_items,), optional
        The cluster of each item, where items are not independent.
    power : float, optional
        Lambda between 0 and 1, one for all coefficients, for a judge on the scale of the human
        ratings; without it, tuned to the least sum of their variances.
    small_sample : bool
        Student's t, residuals of rated items divided by 1 less their leverage, and lambda tuned
        for the judge's scores after a regression of the ratings on them; otherwise normal and
        tuned for the scores as they are, as the authors' library has it.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    PoweredRegression
        Without intervals, and with `reason`, where fewer than 5 items (or clusters) are rated
        for each coefficient and 5 more, covariates do not vary apart among them, or the judge's
        scores or a covariate of rated items and of the others do not overlap; with a note where
        they differ.

    Raises
    ------
    ValueError
        If the columns differ in length, there is no covariate, `judge`, a covariate or a
        cluster is missing, or `power` or `confidence` is out of range.

    Notes
    -----
    ``ols(X, lambda judge; unlabelled) + ols(X, human - lambda judge; labelled)`` with sandwich
    variances, the bread of all items together. Lambda is tuned twice: at the coefficients of
    lambda 1, and at those which that gives. The authors' library returns the coefficients of the
    first as its estimate and the interval of the second; here both are of the second.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023). PPI++: Efficient prediction-powered
    inference. arXiv:2311.01453.
    J. G. MacKinnon and H. White (1985). Some heteroskedasticity-consistent covariance matrix
    estimators with improved finite sample properties. Journal of Econometrics 29(3), 305-325
    (leverage).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> length = rng.normal(size=300)
    >>> truth = 3 + 0.5 * length + rng.normal(size=300)
    >>> human = np.where(np.arange(300) < 40, truth, np.nan)
    >>> found = prediction_powered_regression(human, truth, {"length": length})
    >>> slope = found.coefficients[1]
    >>> slope.name, slope.ci_low < 0.5 < slope.ci_high
    ('length', True)
    """
    rules = Rules(power, small_sample, confidence)
    y, f, cluster = checked_columns(human, judge, clusters, rules)
    require(covariates, "covariates must name at least one column", code="covariates_missing")
    columns = [np.ones(len(y))]
    for name, column in covariates.items():
        require_same_length(**{"human": human, name: column})
        columns.append(complete_numbers(column, name))
    design = _Design(
        np.stack(columns, axis=1), y, f, np.arange(len(y)) if cluster is None else cluster
    )
    names = ["intercept", *covariates]
    known = dict(zip(covariates, columns[1:], strict=True))
    sampling = compare_labeled(design.labelled, {"the judge's score": f} | known, cluster=cluster)
    reason = Withheld.LABELS_APART if sampling.is_apart else design.withheld()
    if reason is not None:
        return replace(_nothing(names, design, reason), notes=sampling.notes)
    strength = 1.0
    if power is None and small_sample:
        design, strength = design.scaled()
    chosen = design.tuned() if power is None else power
    result = _result(names, design, chosen if design.others_suffice() else 0.0, rules, strength)
    return replace(result, notes=(*result.notes, *sampling.notes))


@dataclass(frozen=True)
class _Design:
    x: Floats
    y: Floats
    f: Floats
    cluster: Integers

    @property
    def labelled(self) -> Flags:
        return ~np.isnan(self.y)

    @property
    def count(self) -> int:
        return len(np.unique(self.cluster[self.labelled]))

    def withheld(self) -> Withheld | None:
        x = self.x[self.labelled]
        if not len(x):
            return Withheld.NO_LABELS
        if self.count < LABELS_FOR_EACH * (x.shape[1] + 1):
            return Withheld.TOO_FEW_LABELS
        counts = np.unique(self.y[self.labelled], return_counts=True)[1]
        if len(counts) == 1 or np.linalg.matrix_rank(x) < x.shape[1]:
            return Withheld.NO_VARIATION
        few = len(counts) == 2 and counts.min() < LEAST_OF_A_CLASS
        return Withheld.TOO_FEW_OF_A_CLASS if few else None

    def others_suffice(self) -> bool:
        """Whether the unrated items have a regression of their own, with residuals."""
        x = self.x[~self.labelled]
        return bool(len(x) > x.shape[1] and np.linalg.matrix_rank(x) == x.shape[1])

    def scaled(self) -> tuple[_Design, float]:
        """With the ratings' regression on covariates and judge for a judge, so that its units do
        not matter, and the size of the partial correlation of ratings and judge."""
        rated = self.labelled
        f = centered_scores(self.f)
        wide = np.column_stack([self.x, f / (f.std() or 1.0)])
        fitted = wide @ _least_squares(wide[rated], self.y[rated])
        without = self.x[rated] @ _least_squares(self.x[rated], self.y[rated])
        left, total = (
            float(np.square(self.y[rated] - part).sum()) for part in (fitted[rated], without)
        )
        r = float(np.sqrt(max(1 - left / total, 0.0))) if total > 0 else 0.0
        return replace(self, f=fitted), r

    def coefficients(self, power: float) -> Floats:
        is_rated = self.labelled
        own = _least_squares(self.x[is_rated], (self.y - power * self.f)[is_rated])
        if not power:
            return own
        return own + _least_squares(self.x[~is_rated], power * self.f[~is_rated])

    def scores(self, at: Floats) -> tuple[Floats, Floats, Floats]:
        fitted, rated = self.x @ at, self.labelled
        of_judge = self.x * (fitted - self.f)[:, None]
        return self.x[rated] * (fitted - self.y)[rated, None], of_judge[rated], of_judge[~rated]

    def bread(self, *, all_items: bool) -> Floats:
        x = self.x if all_items else self.x[self.labelled]
        return np.asarray(np.linalg.pinv(x.T @ x / len(x)), dtype=np.float64)

    def tuned(self) -> float:
        if not self.others_suffice():
            return 0.0
        power = 1.0
        for _ in range(2):
            power = self._tuned_at(self.coefficients(power))
        return power

    def _tuned_at(self, at: Floats) -> float:
        people, judge, rest = self.scores(at)
        bread = self.bread(all_items=True)
        both = (people - people.mean(axis=0)).T @ (judge - judge.mean(axis=0)) / len(people)
        spread = np.atleast_2d(np.cov(np.concatenate([judge, rest]).T))
        least = (1 + len(people) / len(rest)) * float(np.trace(bread @ spread @ bread))
        gain = float(np.trace(bread @ both @ bread))
        return float(np.clip(gain / least, 0, 1)) if least > 0 else 0.0

    def covariance(self, power: float, rules: Rules) -> Floats:
        """The sandwich: sums, by cluster, of what items move the coefficients by."""
        moved = self._moved_apart(power) if rules.small_sample else self._moved_together(power)
        codes = np.unique(self.cluster, return_inverse=True)[1]
        size = int(codes.max()) + 1
        sums = np.stack([sum_by(codes, column, size) for column in moved.T], axis=1)
        has_labels = np.bincount(codes[self.labelled], minlength=size) > 0
        counts = np.where(has_labels, has_labels.sum(), (~has_labels).sum())
        spare = counts - 1
        if rules.small_sample and power:
            spare = spare - has_labels  # the tuning takes one more
        weight = counts / np.maximum(spare, 1)
        return np.asarray(sums.T @ (sums * weight[:, None]), dtype=np.float64)

    def _moved_together(self, power: float) -> Floats:
        """With the bread of all items and residuals from the coefficients, as the authors do."""
        people, judge, rest = self.scores(self.coefficients(power))
        own = people - power * judge
        moved = np.zeros_like(self.x)
        moved[self.labelled] = (own - own.mean(axis=0)) / len(own)
        if power:
            moved[~self.labelled] = power * (rest - rest.mean(axis=0)) / len(rest)
        return np.asarray(moved @ self.bread(all_items=power > 0), dtype=np.float64)

    def _moved_apart(self, power: float) -> Floats:
        """Each part's regression with its own bread, residuals divided by 1 less the leverage.

        Few rated items spread less, or more, than all do: with 40 of 300 rated the bread of all
        gives a variance an eighth too small.
        """
        moved = np.zeros_like(self.x)
        rated = self.labelled
        moved[rated] = _jackknifed(self.x[rated], (self.y - power * self.f)[rated])
        if power:
            moved[~rated] = _jackknifed(self.x[~rated], power * self.f[~rated])
        return moved


def _jackknifed(x: Floats, y: Floats) -> Floats:
    inverse = np.linalg.pinv(x.T @ x)
    leverage = np.minimum(np.einsum("ij,jk,ik->i", x, inverse, x), 0.99)
    residual = (y - x @ _least_squares(x, y)) / (1 - leverage)
    return np.asarray((x * residual[:, None]) @ inverse, dtype=np.float64)


def _least_squares(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(x, y, rcond=None)[0], dtype=np.float64)


def _result(
    names: list[str], design: _Design, power: float, rules: Rules, strength: float
) -> PoweredRegression:
    freedom = float(design.count - len(names) - (power > 0)) if rules.small_sample else np.inf
    own = _estimates(design, power, freedom, rules)
    alone = _estimates(design, 0.0, freedom + (power > 0), rules)
    coefficients = tuple(
        Coefficient(
            **vars(one),
            name=name,
            p=float(2 * scipy.stats.t.sf(abs(one.value) / one.se, freedom)) if one.se > 0 else nan,
            people_only=other,
        )
        for name, one, other in zip(names, own, alone, strict=True)
    )
    return replace(
        _nothing(names, design, None),
        coefficients=coefficients,
        power=power * strength,
        freedom=freedom,
        notes=_notes(design, power * strength),
    )


def _estimates(design: _Design, power: float, freedom: float, rules: Rules) -> list[Estimate]:
    t = float(scipy.stats.t.ppf((1 + rules.confidence) / 2, freedom))
    variances = np.diag(design.covariance(power, rules))
    return [
        Estimate(value=value, ci_low=value - t * se, ci_high=value + t * se, se=se)
        for value, se in zip(
            design.coefficients(power).tolist(), np.sqrt(variances).tolist(), strict=True
        )
    ]


def _notes(design: _Design, power: float) -> tuple[CodedText, ...]:
    n_rest = int((~design.labelled).sum())
    spare = design.count - design.x.shape[1] + 1
    adds = not design.others_suffice() or not adds_nothing(power * len(design.y) / n_rest, spare)
    return judge_notes(adds=adds, count=design.count, interval="the intervals are")


def _nothing(names: list[str], design: _Design, reason: Withheld | None) -> PoweredRegression:
    none = Estimate(value=nan, ci_low=nan, ci_high=nan, se=nan)
    return PoweredRegression(
        coefficients=tuple(
            Coefficient(**vars(none), name=name, p=nan, people_only=none) for name in names
        ),
        power=nan,
        n_labelled=int(design.labelled.sum()),
        n=len(design.y),
        freedom=nan,
        reason=reason,
    )
