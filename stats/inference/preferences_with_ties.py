from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations
from math import nan
from typing import Literal, get_args

from error_codes import CodedText, note_if
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    coded_in_order,
    complete_numbers,
    require,
    require_confidence,
    require_one_of,
    require_same_length,
)
from stats.inference.tie_likelihood import (
    NOTHING,
    Game,
    Model,
    Precision,
    TieLikelihood,
    groups_that_met,
    is_identified,
    maximum,
    precision_of,
    rising_direction,
    systems_apart,
    unbeaten,
)
from stats.jackknife import uneven_notes
from stats.libraries import np, scipy

Separated = Literal["refuse", "half_wins"]
FEW_CLUSTERS = 10


class Reason(StrEnum):
    NO_COMPARISONS = "no_comparisons"
    NOT_COMPARED = "systems fall into groups that were never compared"
    UNBEATEN = "some systems never lost to the others, or never won"
    ALL_TIES = "every comparison is a tie"
    NOT_IDENTIFIED = "a covariate says nothing beyond the systems, the side or other covariates"
    COVARIATE_DECIDES = "the side or a covariate tells every outcome, or nearly"
    NOT_CONVERGED = "not_converged"


@dataclass(frozen=True, kw_only=True)
class PairOfAbilities:
    """The difference of two systems' log abilities, a less b, with interval and p, and the degrees
    of freedom of both: infinitely many where comparisons are taken as independent."""

    a: Hashable
    b: Hashable
    delta: float
    se: float
    ci_low: float
    ci_high: float
    p: float
    freedom: float


@dataclass(frozen=True, kw_only=True)
class Abilities:
    """Log abilities of systems with mean 0, and what else the model estimates.

    Attributes
    ----------
    abilities : dict
        By system; NaN where there is no maximum.
    tie_parameter : float
        Davidson's nu, or Rao and Kupper's theta. 0 (theta: 1) where no tie was called.
    coefficients, coefficient_limits : dict
        Of covariates: by how much a unit of the first's less the second's moves the log odds.
    pairs : tuple of PairOfAbilities
        Every two systems.
    se_by : str
        What the standard errors take for independent: ``comparisons``, ``items``,
        ``annotators`` or both; not what there is one of only.
    converged : bool
        Whether the gradient vanished.
    busiest_share : float
        The share of the comparisons that one annotator made, the busiest; NaN without annotators.
    n_annotators : int
    smoothed : tuple of Hashable
        Systems that never lost (or never won): those on whose account half a win either way was
        added to each pair that met, or the model is refused.
    reason : Reason or None
        Why there is no result.
    """

    abilities: dict[Hashable, float]
    tie_parameter: float
    model: Model
    pairs: tuple[PairOfAbilities, ...]
    log_likelihood: float
    converged: bool
    se_by: str
    coefficients: dict[str, float] = field(default_factory=dict)
    coefficient_limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    smoothed: tuple[Hashable, ...] = ()
    reason: Reason | None = None
    n: int = 0
    n_ties: int = 0
    n_annotators: int = 0
    busiest_share: float = nan
    notes: tuple[str, ...] = ()


def abilities_with_ties(
    first: Column,
    second: Column,
    outcome: Column,
    *,
    model: Model = "davidson",
    covariates: Mapping[str, Column] | None = None,
    side: bool = False,
    items: Column | None = None,
    annotators: Column | None = None,
    weights: Column | None = None,
    separated: Separated = "refuse",
    confidence: float = 0.95,
) -> Abilities:
    """Log abilities of systems from comparisons of two that may end in a tie.

    Parameters
    ----------
    first, second : array-like, shape (n_comparisons,)
        The systems compared; `first` is the one shown first, where `side` matters.
    outcome : array-like of int, shape (n_comparisons,)
        1 where the first won, -1 where the second did, 0 for a tie.
    model : {"davidson", "rao_kupper"}
        How ties come about: in proportion to the root of both abilities, or where the
        difference is below a threshold.
    covariates : mapping of str to array-like of float, optional
        Of each comparison, the first's less the second's: length, say, standardised.
    side : bool
        Estimate, too, by how much being shown first helps (coefficient ``first``).
    items, annotators : array-like, optional
        Standard errors are then by leaving them out one at a time, both where both are given.
    weights : array-like of float, optional
        How often each row counts.
    separated : {"refuse", "half_wins"}
        What becomes of systems that never lost or never won to the rest: no result, or half a
        win either way added to each pair that met, and marked.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    Abilities

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, a system meets itself, an
        outcome is not 1, 0 or -1, or an option is unknown.

    Notes
    -----
    Davidson: ``P(i > j) : P(j > i) : P(tie) = pi_i : pi_j : nu sqrt(pi_i pi_j)``. Rao and
    Kupper: ``P(i > j) = pi_i / (pi_i + theta pi_j)``. Newton's method with halved steps on the
    concave log-likelihood. A maximum exists only where the graph of wins, ties counting both
    ways, is strongly connected, and where no change of abilities, ties and covariates together
    makes some outcomes ever likelier and none less likely: two systems of which one won or tied
    have none.

    References
    ----------
    R. R. Davidson (1970). On extending the Bradley-Terry model to accommodate ties in paired
    comparison experiments. JASA 65(329), 317-328.
    P. V. Rao and L. L. Kupper (1967). Ties in paired-comparison experiments. JASA 62(317),
    194-204.
    L. R. Ford (1957). Solution of a ranking problem from binary comparisons. American
    Mathematical Monthly 64(8), 28-33.

    Examples
    --------
    >>> result = abilities_with_ties(list("aaabb"), list("bbbaa"), [1, 1, 0, -1, 1])
    >>> {name: round(value, 2) for name, value in result.abilities.items()}
    {'a': 0.55, 'b': -0.55}
    """
    require_confidence(confidence)
    require_one_of(model=(model, get_args(Model)), separated=(separated, get_args(Separated)))
    game = _game(first, second, outcome, covariates or {}, side, weights)
    clusters = _clusters(items, annotators, len(game.outcome))
    if not len(game.outcome):
        return _nothing(game, model, Reason.NO_COMPARISONS)
    if groups_that_met(game) > 1:
        return _nothing(game, model, Reason.NOT_COMPARED)
    if not is_identified(game):
        return _nothing(game, model, Reason.NOT_IDENTIFIED)
    ends = unbeaten(game)
    reason = Reason.UNBEATEN if ends else None
    if not ends:
        reason, ends = _without_maximum(game)
    if reason == Reason.UNBEATEN and separated == "half_wins":
        played = _with_half_wins(game)
        reason, _ = _without_maximum(played)
    else:
        played = game
    if reason is not None:
        return _nothing(game, model, reason, ends)
    return _fitted(game, played, model, clusters, tuple(ends), confidence)


def _without_maximum(game: Game) -> tuple[Reason | None, list[Hashable]]:
    """Why the likelihood has no maximum, and the systems for whose sake; None where it has."""
    if not game.outcome.any():
        return Reason.ALL_TIES, []
    direction = rising_direction(game)
    if direction is None:
        return None, []
    n_free = len(game.systems) - 1
    if np.abs(direction[n_free : n_free + len(game.names)]).max(initial=0.0) > NOTHING:
        return Reason.COVARIATE_DECIDES, []
    return Reason.UNBEATEN, systems_apart(game, direction)


def _game(
    first: Column,
    second: Column,
    outcome: Column,
    covariates: Mapping[str, Column],
    side: bool,
    weights: Column | None,
) -> Game:
    n = require_same_length(first=first, second=second, outcome=outcome)
    both, systems = coded_in_order([*first, *second], "first and second")
    require(
        not (both[:n] == both[n:]).any(),
        "first and second must differ: a system is compared with itself",
        code="compared_with_itself",
    )
    result = complete_numbers(outcome, "outcome")
    require(
        np.isin(result, (-1, 0, 1)).all(), "outcome must be 1, 0 or -1", code="outcome_out_of_range"
    )
    weight = np.ones(n)
    if weights is not None:
        require_same_length(first=first, weights=weights)
        weight = complete_numbers(weights, "weights")
        require(not (weight < 0).any(), "weights must not be negative", code="weights_out_of_range")
    columns = [np.ones(n)] if side else []
    for name, column in covariates.items():
        require_same_length(first=first, **{name: column})
        columns.append(complete_numbers(column, name))
    extra = np.stack(columns, axis=1) if columns else np.zeros((n, 0))
    units = np.sqrt(np.square(extra).mean(axis=0)) if n else np.ones(extra.shape[1])
    units = np.where(units > 0, units, 1.0)
    names = [*(["first"] if side else []), *covariates]
    outcomes = result.astype(np.int8)
    return Game(both[:n], both[n:], outcomes, weight, extra / units, systems, names, units)


def _clusters(items: Column | None, annotators: Column | None, n: int) -> dict[str, Integers]:
    clusters = {}
    for name, column in (("items", items), ("annotators", annotators)):
        if column is not None:
            require_same_length(**{"first": np.zeros(n), name: column})
            clusters[name] = coded(column, name)[0]
    return clusters


def _with_half_wins(game: Game) -> Game:
    low, high = np.minimum(game.first, game.second), np.maximum(game.first, game.second)
    pairs = np.unique(np.stack([low, high], axis=1), axis=0)
    n = len(pairs)
    return Game(
        np.concatenate([game.first, pairs[:, 0], pairs[:, 0]]),
        np.concatenate([game.second, pairs[:, 1], pairs[:, 1]]),
        np.concatenate([game.outcome, np.ones(n, np.int8), -np.ones(n, np.int8)]),
        np.concatenate([game.weight, np.full(2 * n, 0.5)]),
        np.concatenate([game.extra, np.zeros((2 * n, game.extra.shape[1]))]),
        game.systems,
        game.names,
        game.units,
    )


def _fitted(
    game: Game,
    played: Game,
    model: Model,
    clusters: Mapping[str, Integers],
    ends: tuple[Hashable, ...],
    confidence: float,
) -> Abilities:
    n_ties = int(((game.outcome == 0) & (game.weight > 0)).sum())
    terms = TieLikelihood(played, model, with_ties=n_ties > 0)
    value, log_likelihood, converged = maximum(terms)
    if not converged:
        return _nothing(game, model, Reason.NOT_CONVERGED, list(ends))
    several = {name: code for name, code in clusters.items() if int(code.max()) > 0}
    single = tuple(name for name in clusters if name not in several)
    precision = precision_of(terms, value, several, len(game.outcome))
    freedom = precision.freedom
    per_annotator = np.bincount(clusters.get("annotators", []))
    n_annotators = len(per_annotator)
    share = float(per_annotator.max() / per_annotator.sum()) if n_annotators else nan
    n_systems = len(game.systems)
    of_systems = np.concatenate([[0.0], value[: n_systems - 1]])
    centred = of_systems - of_systems.mean()
    tie = terms.tie_parameter(value)
    t = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))
    extra = slice(n_systems - 1, n_systems - 1 + len(game.names))
    estimates = value[extra] / game.units
    spread = [precision.se(one) for one in np.eye(len(value))[extra]] / game.units
    return Abilities(
        abilities={name: float(v) for name, v in zip(game.systems, centred, strict=True)},
        tie_parameter=tie,
        model=model,
        pairs=tuple(_pairs(game.systems, of_systems, precision, confidence)),
        log_likelihood=log_likelihood,
        converged=True,
        se_by=" and ".join(several) or "comparisons",
        coefficients={name: float(v) for name, v in zip(game.names, estimates, strict=True)},
        coefficient_limits={
            name: (float(v - t * s), float(v + t * s))
            for name, v, s in zip(game.names, estimates, spread, strict=True)
        },
        smoothed=ends,
        n=len(game.outcome),
        n_ties=n_ties,
        n_annotators=n_annotators,
        busiest_share=share,
        notes=(*_notes(ends, single, freedom), *uneven_notes(share, n_annotators)),
    )


def _notes(
    ends: tuple[Hashable, ...],
    single: tuple[str, ...],
    freedom: float,
) -> tuple[str, ...]:
    return (
        *(
            CodedText(f"one of the {name} only: nothing is said of others", code="one_only")
            for name in single
        ),
        *note_if(
            ends,
            "half a win either way was added to each pair: "
            f"{', '.join(map(str, ends))} never lost, or never won",
            "half_wins",
        ),
        *note_if(
            freedom < FEW_CLUSTERS - 1,
            f"only {freedom + 1:.0f} items or annotators, or as many in effect: intervals are a "
            "rough guide",
            "few_clusters",
        ),
    )


def _pairs(
    systems: list[Hashable], value: Floats, precision: Precision, confidence: float
) -> list[PairOfAbilities]:
    freedom = precision.freedom
    t = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))
    # The first system has no parameter: its ability is 0.
    one_of = np.eye(len(systems), len(precision.covariances[0]) + 1)[:, 1:]
    pairs = []
    for a, b in combinations(range(len(systems)), 2):
        delta = float(value[a] - value[b])
        se = precision.se(one_of[a] - one_of[b])
        pairs.append(
            PairOfAbilities(
                a=systems[a],
                b=systems[b],
                delta=delta,
                se=se,
                ci_low=delta - t * se,
                ci_high=delta + t * se,
                p=float(2 * scipy.stats.t.sf(abs(delta) / se, freedom)) if se > 0 else nan,
                freedom=freedom,
            )
        )
    return pairs


def _nothing(
    game: Game, model: Model, reason: Reason, ends: list[Hashable] | None = None
) -> Abilities:
    return Abilities(
        abilities=dict.fromkeys(game.systems, nan),
        tie_parameter=nan,
        model=model,
        pairs=(),
        log_likelihood=nan,
        converged=False,
        se_by="",
        smoothed=tuple(ends or ()),
        reason=reason,
        n=len(game.outcome),
        n_ties=int((game.outcome == 0).sum()),
    )
