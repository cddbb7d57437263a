from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from stats.arguments import Floats, Integers, Signs, sum_by
from stats.jackknife import (
    InformationBy,
    LeftOut,
    effective_freedom,
    maximum_left_out,
)
from stats.libraries import np, scipy

Model = Literal["davidson", "rao_kupper"]
TOLERANCE = 1e-10
MOST_STEPS = 200
HALVINGS = 40


@dataclass(frozen=True)
class Game:
    """Comparisons: `design` times the parameters is the log odds of the first over the second.

    Covariates are in units of their root mean square, `units`, so that steps and ranks do not
    depend on how they were measured.
    """

    first: Integers
    second: Integers
    outcome: Signs
    weight: Floats
    extra: Floats
    systems: list[Hashable]
    names: list[str]
    units: Floats

    @property
    def design(self) -> Floats:
        n = len(self.outcome)
        table = np.zeros((n, len(self.systems)))
        table[np.arange(n), self.first] += 1.0
        table[np.arange(n), self.second] -= 1.0
        return np.hstack([table[:, 1:], self.extra])


class TieLikelihood:
    """Log-likelihood, and derivatives by the log odds d and the tie parameter's logarithm."""

    def __init__(self, game: Game, model: Model, *, with_ties: bool) -> None:
        self.design, self.weight = game.design, game.weight
        self.sign = game.outcome.astype(np.float64)
        self.model, self.with_ties = model, with_ties

    def start(self) -> Floats:
        value = np.zeros(self.design.shape[1] + self.with_ties)
        if self.with_ties and self.model == "rao_kupper":
            value[-1] = np.log(0.5)
        return value

    def tie_parameter(self, value: Floats) -> float:
        if not self.with_ties:
            return 0.0 if self.model == "davidson" else 1.0
        if self.model == "davidson":
            return float(np.exp(value[-1]))
        return float(np.exp(np.exp(value[-1])))

    def total(self, value: Floats) -> float:
        return float(self.weight @ self._terms(value)[0])

    def derivatives(self, value: Floats) -> tuple[Floats, Floats]:
        _, by_d, by_tie, dd, dt, tt = self._terms(value)
        columns = [self.design * by_d[:, None]]
        information = -(self.design * (self.weight * dd)[:, None]).T @ self.design
        if not self.with_ties:
            return columns[0] * self.weight[:, None], information
        columns.append(by_tie[:, None])
        cross = -(self.design.T @ (self.weight * dt))
        corner = np.array([[-float(self.weight @ tt)]])
        information = np.block([[information, cross[:, None]], [cross[None, :], corner]])
        return np.hstack(columns) * self.weight[:, None], information

    def information_by(self, value: Floats) -> InformationBy:
        curves = [-self.weight * curve for curve in self._terms(value)[3:]]
        n_odds, ones = self.design.shape[1], np.ones((len(self.sign), int(self.with_ties)))
        columns = np.hstack([self.design, ones])

        def summed(rows: Integers, group: Integers, n_groups: int) -> Floats:
            n = columns.shape[1]
            table, of_rows = np.empty((n_groups, n, n)), columns[rows]
            for j in range(n):
                for k in range(j + 1):
                    curve = curves[(j >= n_odds) + (k >= n_odds)][rows]
                    own = sum_by(group, curve * of_rows[:, j] * of_rows[:, k], n_groups)
                    table[:, j, k] = table[:, k, j] = own
            return table

        return summed

    def _terms(self, value: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        d = self.design @ value[: self.design.shape[1]]
        if not self.with_ties:
            zero = np.zeros_like(d)
            log = scipy.special.log_expit(self.sign * d)
            return (
                log,
                self.sign * scipy.special.expit(-self.sign * d),
                zero,
                -scipy.special.expit(d) * scipy.special.expit(-d),
                zero,
                zero,
            )
        tie = float(value[-1])
        return self._davidson(d, tie) if self.model == "davidson" else self._rao_kupper(d, tie)

    def _davidson(
        self, d: Floats, tie: float
    ) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        logits = np.stack([d / 2, np.full_like(d, tie), -d / 2])
        top = logits.max(axis=0)
        log_total = np.log(np.exp(logits - top).sum(axis=0)) + top
        win, tied, loss = np.exp(logits - log_total)
        is_tie = (self.sign == 0).astype(np.float64)
        log = np.where(self.sign == 0, tie, self.sign * d / 2) - log_total
        centre = (win - loss) / 2
        dd = -((win + loss) / 4 - np.square(centre))
        return log, self.sign / 2 - centre, is_tie - tied, dd, tied * centre, -tied * (1 - tied)

    def _rao_kupper(
        self, d: Floats, tie: float
    ) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """An ordered logit with thresholds of -tau and tau, tau the exponential of `tie`."""
        tau = np.exp(tie)
        up, down = d - tau, -d - tau  # log odds of a win, and of a loss
        s_up, s_down = scipy.special.expit(up), scipy.special.expit(down)
        log_tie = (
            np.log(-np.expm1(-2 * tau))
            + scipy.special.log_expit(-up)
            + scipy.special.log_expit(-down)
        )
        won, lost = self.sign > 0, self.sign < 0
        log = np.where(
            won, scipy.special.log_expit(up), np.where(lost, scipy.special.log_expit(down), log_tie)
        )
        by_d = np.where(won, 1 - s_up, np.where(lost, s_down - 1, s_down - s_up))
        spread_up, spread_down = s_up * (1 - s_up), s_down * (1 - s_down)
        dd = -np.where(won, spread_up, np.where(lost, spread_down, spread_up + spread_down))
        ratio = 2 / np.expm1(2 * tau)
        by_tau = np.where(won, s_up - 1, np.where(lost, s_down - 1, ratio + s_up + s_down))
        d_tau = np.where(won, spread_up, np.where(lost, -spread_down, spread_up - spread_down))
        curve = -ratio * (2 + ratio)
        tau_tau = np.where(
            won, -spread_up, np.where(lost, -spread_down, curve - spread_up - spread_down)
        )
        return log, by_d, tau * by_tau, dd, tau * d_tau, tau * by_tau + tau**2 * tau_tau


def maximum(terms: TieLikelihood) -> tuple[Floats, float, bool]:
    """The parameters, the log-likelihood there, and whether the gradient vanished."""
    value = terms.start()
    reached = terms.total(value)
    enough = TOLERANCE * max(float(terms.weight.sum()), 1.0)
    for _ in range(MOST_STEPS):
        scores, information = terms.derivatives(value)
        gradient = scores.sum(axis=0)
        if np.abs(gradient).max() <= enough:
            return value, reached, True
        step = _step(information, gradient)
        for _ in range(HALVINGS):
            total = terms.total(value + step)
            if total >= reached - 1e-12 * abs(reached):
                break
            step = step / 2
        else:
            return value, reached, False
        value, reached = value + step, total
    return value, reached, False


def _step(information: Floats, gradient: Floats) -> Floats:
    try:
        np.linalg.cholesky(information)
        return np.asarray(np.linalg.solve(information, gradient))
    except np.linalg.LinAlgError:
        return gradient / max(float(np.abs(information).max()), 1.0)


@dataclass(frozen=True)
class Precision:
    """Covariances of the parameters, by each kind of cluster and, of two, by cells of both, and
    degrees of freedom of t."""

    covariances: list[Floats]
    freedom: float

    def se(self, contrast: Floats) -> float:
        parts = [float(contrast @ one @ contrast) for one in self.covariances]
        variance = parts[0]
        if len(parts) == 3:
            # If both components are estimated below 0, the larger of the two. As the least in any
            # case it would be too much: power falls by .06 if each item has one comparison.
            both = parts[0] + parts[1] - parts[2]
            variance = both if both >= min(parts[:2]) else max(parts[:2])
        return float(np.sqrt(max(variance, 0.0)))


def precision_of(
    terms: TieLikelihood, value: Floats, clusters: Mapping[str, Integers], n: int
) -> Precision:
    scores, information = terms.derivatives(value)
    if not clusters:
        return Precision([np.asarray(np.linalg.pinv(information))], np.inf)
    scores = scores[:n]  # half wins that were added belong to no item
    of_groups, weight = terms.information_by(value), terms.weight[:n]

    def left_out(code: Integers) -> LeftOut:
        return maximum_left_out(scores, information, of_groups, code, weight)

    parts = [left_out(code) for code in clusters.values()]
    freedom = effective_freedom(*(part.effective for part in parts))
    if len(parts) == 2:
        one, other = clusters.values()
        cell = np.unique(one * (int(other.max()) + 1) + other, return_inverse=True)[1]
        parts.append(left_out(cell))
    return Precision([part.variance for part in parts], freedom)


# Of a direction in which no outcome grows less likely, and some grow more: as good as none.
NOTHING = 1e-7
# Of comparisons, nearly always enough to rule out such a direction.
ENOUGH_ROWS = 2000


def groups_that_met(game: Game) -> int:
    """How many groups of systems there are between which nothing was compared."""
    counted = game.weight > 0
    n = len(game.systems)
    edges = (game.first[counted], game.second[counted])
    graph = scipy.sparse.coo_array((np.ones(int(counted.sum())), edges), shape=(n, n)).tocsr()
    return int(scipy.sparse.csgraph.connected_components(graph, directed=False)[0])


def unbeaten(game: Game) -> list[Hashable]:
    """Systems outside the largest group that beat each other, ties counting both ways."""
    n = len(game.systems)
    counted = game.weight > 0
    won, lost = counted & (game.outcome >= 0), counted & (game.outcome <= 0)
    source = np.concatenate([game.first[won], game.second[lost]])
    target = np.concatenate([game.second[won], game.first[lost]])
    graph = scipy.sparse.coo_array((np.ones(len(source)), (source, target)), shape=(n, n)).tocsr()
    count, label = scipy.sparse.csgraph.connected_components(
        graph, directed=True, connection="strong"
    )
    if count == 1:
        return []
    largest = np.bincount(label).argmax()
    return [name for name, group in zip(game.systems, label, strict=True) if group != largest]


def is_identified(game: Game) -> bool:
    """Whether no covariate (or the side) is a sum of the others and of systems' differences."""
    design = np.unique(game.design[game.weight > 0], axis=0)
    return bool(np.linalg.matrix_rank(design) == design.shape[1])


def rising_direction(game: Game) -> Floats | None:
    """A direction of the parameters in which the likelihood rises for ever, None where none.

    The last element is the tie parameter's logarithm, where there is a tie. Along such a
    direction no comparison's outcome loses to another outcome that it could have had, and one
    at least gains.

    References
    ----------
    A. Albert and J. A. Anderson (1984). On the existence of maximum likelihood estimates in
    logistic regression models. Biometrika 71(1), 1-10.

    Examples
    --------
    >>> one = Game(
    ...     np.array([0, 0]), np.array([1, 1]), np.array([1, 0], np.int8), np.ones(2),
    ...     np.zeros((2, 0)), ["a", "b"], [], np.ones(0),
    ... )
    >>> rising_direction(one) is None  # a won and tied: the more b loses, the likelier
    False
    """
    counted = game.weight > 0
    rows = np.unique(
        np.column_stack([game.design[counted], game.outcome[counted].astype(np.float64)]), axis=0
    )
    half, outcome = rows[:, :-1] / 2, rows[:, -1]
    won, lost, tied = half[outcome > 0], -half[outcome < 0], half[outcome == 0]
    ahead = np.vstack([won, lost])
    gains = [2 * ahead]
    if len(tied):
        gains = [
            np.column_stack([part, np.full(len(part), of_tie)])
            for part, of_tie in ((2 * ahead, 0.0), (ahead, -1.0), (tied, 1.0), (-tied, 1.0))
        ]
    table = np.vstack(gains)
    part = table[:: max(len(table) // ENOUGH_ROWS, 1)]
    if len(part) < len(table) and np.linalg.matrix_rank(part) == table.shape[1]:
        # what a part of the comparisons rules out, all of them do
        return None if _direction(part) is None else _direction(table)
    return _direction(table)


def _direction(gains: Floats) -> Floats | None:
    """By linear programming: the direction whose gains, none below 0 or above 1, sum highest."""
    found = scipy.optimize.linprog(
        -gains.sum(axis=0),
        A_ub=np.vstack([-gains, gains]),
        b_ub=np.concatenate([np.zeros(len(gains)), np.ones(len(gains))]),
        bounds=(None, None),
        method="highs",
    )
    if found.fun is None or -found.fun <= NOTHING:
        return None
    return np.asarray(found.x, dtype=np.float64)


def systems_apart(game: Game, direction: Floats) -> list[Hashable]:
    """The systems that such a direction parts from the most that it keeps together."""
    of_systems = np.concatenate([[0.0], direction[: len(game.systems) - 1]])
    level = np.unique(np.round(of_systems, 6), return_inverse=True)[1]
    most = np.bincount(level)
    if len(most) == 1:
        return []
    kept = int(np.flatnonzero(most == most.max())[0])  # the lowest, so that winners are named
    return [name for name, group in zip(game.systems, level, strict=True) if group != kept]
