from dataclasses import dataclass

from stats.arguments import Floats, Integers
from stats.libraries import np, scipy

MOST_STEPS = 60
# Steps below it end the search: the determinant depends on the mode to the first order, so that a
# mode that is only nearly the best would leave the likelihood too rough to be climbed.
PRECISION = 1e-9


@dataclass(frozen=True)
class Design:
    """Outcomes (n,), fixed columns (n, p), and for each grouping the code of each row's group."""

    outcome: Floats
    columns: Floats
    codes: tuple[Integers, ...]
    sizes: tuple[int, ...]

    @property
    def n_intercepts(self) -> int:
        return sum(self.sizes)

    @property
    def offsets(self) -> list[int]:
        return [sum(self.sizes[:at]) for at in range(len(self.sizes))]

    def intercepts(self, theta: Floats, standard: Floats) -> Floats:
        """The sum of each row's intercepts; `standard` have variance 1."""
        return np.asarray(
            sum(
                deviation * standard[offset + code]
                for deviation, offset, code in zip(theta, self.offsets, self.codes, strict=True)
            )
        )

    def sums(self, theta: Floats, values: Floats) -> Floats:
        """Values (n,) or (n, p) summed by group, times the group's deviation."""
        parts = []
        for deviation, code, size in zip(theta, self.codes, self.sizes, strict=True):
            total = np.zeros((size, *values.shape[1:]))
            np.add.at(total, code, values)
            parts.append(deviation * total)
        return np.concatenate(parts)

    def precision(self, theta: Floats, weight: Floats) -> Floats:
        """That of the standard intercepts given the data, (n_intercepts, n_intercepts)."""
        matrix = np.eye(self.n_intercepts)
        groupings = list(zip(theta, self.offsets, self.codes, self.sizes, strict=True))
        for first, low, code, size in groupings:
            for second, other_low, other, other_size in groupings:
                table = np.bincount(code * other_size + other, weight, size * other_size)
                block = first * second * table.reshape(size, other_size)
                matrix[low : low + size, other_low : other_low + other_size] += block
        return matrix


@dataclass(frozen=True)
class Mode:
    standard: Floats
    beta: Floats
    covariance: Floats
    log_likelihood: float


def conditional_mode(design: Design, theta: Floats, beta: Floats | None, near: Mode | None) -> Mode:
    """The mode by Newton's steps, halved where they overshoot; of the coefficients too if None."""
    is_free = beta is None
    x = design.columns
    coefficients = near.beta if is_free and near is not None else beta
    coefficients = np.zeros(x.shape[1]) if coefficients is None else coefficients
    standard = np.zeros(design.n_intercepts) if near is None else near.standard
    value = _penalised(design, theta, coefficients, standard)
    for _ in range(MOST_STEPS):
        step_u, step_b = _step(design, theta, coefficients, standard, is_free)
        if max(np.abs(step_u).max(), np.abs(step_b).max()) < PRECISION:
            break
        size, before = 1.0, value
        while size > 1e-6:
            trial = standard + size * step_u, coefficients + size * step_b
            value = _penalised(design, theta, trial[1], trial[0])
            if value >= before:
                standard, coefficients = trial
                break
            size /= 2
        else:
            value = before
            break
    return _mode(design, theta, coefficients, standard, value)


def _penalised(design: Design, theta: Floats, beta: Floats, standard: Floats) -> float:
    logit = design.columns @ beta + design.intercepts(theta, standard)
    return float((design.outcome * logit - np.logaddexp(0, logit)).sum() - standard @ standard / 2)


def _step(
    design: Design, theta: Floats, beta: Floats, standard: Floats, is_free: bool
) -> tuple[Floats, Floats]:
    x = design.columns
    share = scipy.special.expit(x @ beta + design.intercepts(theta, standard))
    gap, weight = design.outcome - share, share * (1 - share)
    factor = scipy.linalg.cho_factor(design.precision(theta, weight))
    gradient = design.sums(theta, gap) - standard
    if not is_free:
        return scipy.linalg.cho_solve(factor, gradient), np.zeros(x.shape[1])
    cross = design.sums(theta, weight[:, None] * x)
    solved = scipy.linalg.cho_solve(factor, cross)
    schur = x.T @ (weight[:, None] * x) - cross.T @ solved
    step_b = np.linalg.lstsq(schur, x.T @ gap - solved.T @ gradient, rcond=None)[0]
    return scipy.linalg.cho_solve(factor, gradient - cross @ step_b), np.asarray(step_b)


def _mode(design: Design, theta: Floats, beta: Floats, standard: Floats, value: float) -> Mode:
    x = design.columns
    share = scipy.special.expit(x @ beta + design.intercepts(theta, standard))
    weight = share * (1 - share)
    factor = scipy.linalg.cho_factor(design.precision(theta, weight))
    cross = design.sums(theta, weight[:, None] * x)
    schur = x.T @ (weight[:, None] * x) - cross.T @ scipy.linalg.cho_solve(factor, cross)
    log_determinant = 2 * np.log(np.diag(factor[0])).sum()
    covariance: Floats = np.asarray(np.linalg.pinv(schur), dtype=np.float64)
    return Mode(standard, beta, covariance, float(value - log_determinant / 2))
