from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan

import numpy as np

from stats.arguments import Floats, require, require_confidence
from stats.inference.variance_components import RESIDUAL

N_DRAWS = 20_000


@dataclass(frozen=True)
class Reliability:
    value: float
    ci_low: float
    ci_high: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a collection of so many topics, each judged by so many assessors, would be worth.

    Attributes
    ----------
    n_topics, n_assessors : int
    generalizability, dependability : Reliability
        Eρ², of the systems' order, and Φ, of their values.
    se_of_difference : float
        Of two systems' means.
    """

    n_topics: int
    n_assessors: int
    generalizability: Reliability
    dependability: Reliability
    se_of_difference: float


@dataclass(frozen=True, kw_only=True)
class Generalisability:
    """Variance components of a pilot, unbiased (they may be below 0), and plans made of them."""

    components: dict[str, float]
    plans: tuple[Plan, ...]


def generalisability(
    values: Floats,
    plans: Sequence[tuple[int, int]],
    *,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    rng: int | np.random.Generator = 0,
) -> Generalisability:
    """How reliable systems' means would be with other numbers of topics and assessors.

    Parameters
    ----------
    values : ndarray of float, shape (n_systems, n_topics) or (n_systems, n_topics, n_assessors)
        A measure in a pilot in which every assessor judged every topic; without the last axis
        one assessor, whose part cannot be told from the topics'.
    plans : sequence of (int, int)
        Topics, and assessors of each.
    confidence : float
        Confidence level of the intervals.
    n_draws : int
    rng : int or Generator
        Seed or generator of the draws.

    Returns
    -------
    Generalisability
        Components ``system, topic, assessor, system_topic, system_assessor, topic_assessor`` and
        ``residual``; without assessors ``system, topic, residual``.

    Raises
    ------
    ValueError
        If a value is missing, an axis has one level, a plan has a number below 1, or more than
        one assessor where the pilot had one.

    Notes
    -----
    Systems, topics and assessors are all random and effects normal. Components are those of the
    expected mean squares. Intervals are generalised ones: each mean square is divided by a
    chi-square over its degrees of freedom, components below 0 count as 0. With systems and
    topics alone the limits of Eρ² are the exact ones of F.

    References
    ----------
    R. L. Brennan (2001). Generalizability Theory. Springer, chapters 3, 4 and 6.
    J. Hannig, H. Iyer and P. Patterson (2006). Fiducial generalized confidence intervals. JASA
    101, 254-269.
    J. Urbano, M. Marrero and D. Martín (2013). On the measurement of test collection
    reliability. SIGIR 2013, 393-402.

    Examples
    --------
    >>> values = np.array([[0.2, 0.5, 0.4, 0.1], [0.3, 0.7, 0.6, 0.1], [0.5, 0.8, 0.6, 0.4]])
    >>> found = generalisability(values, [(4, 1), (20, 1)])
    >>> [round(plan.generalizability.value, 3) for plan in found.plans]
    [0.938, 0.987]
    """
    require_confidence(confidence)
    _require_table(values)
    for n_topics, n_assessors in plans:
        require(
            n_topics >= 1 and n_assessors >= 1,
            "plans must have numbers of at least 1",
            code="plans_out_of_range",
        )
        require(
            n_assessors <= 1 or values.ndim != 2,
            "plans of several assessors take a pilot of several",
            code="plans_unfit",
        )
    squares, freedom = _mean_squares(values)
    generator = np.random.default_rng(rng)
    names = list(squares)
    chi = generator.chisquare([freedom[name] for name in names], size=(n_draws, len(names)))
    drawn = {name: squares[name] * freedom[name] / chi[:, at] for at, name in enumerate(names)}
    point = _components({name: np.array([value]) for name, value in squares.items()}, values.shape)
    draws = _components(drawn, values.shape)
    tail = (1 - confidence) / 2
    return Generalisability(
        components=_titled(point),
        plans=tuple(_plan(sizes, point, draws, tail) for sizes in plans),
    )


def _require_table(values: Floats) -> None:
    require(
        values.ndim in (2, 3),
        "values must have two or three axes: systems, topics, assessors",
        code="values_shape",
    )
    require(
        min(values.shape) >= 2,
        "values must have two levels or more on each axis",
        code="too_few_levels",
    )
    require(
        not np.isnan(values).any(),
        "values must be complete: every system, topic and assessor",
        code="values_incomplete",
    )


def _mean_squares(values: Floats) -> tuple[dict[str, float], dict[str, int]]:
    """Of each set of axes, as s, t, a, st …: the mean square and its degrees of freedom."""
    axes = range(values.ndim)
    squares: dict[str, float] = {}
    freedom: dict[str, int] = {}
    for size in range(1, values.ndim + 1):
        for chosen in combinations(axes, size):
            effect = np.zeros(values.shape)
            for inner in range(size + 1):
                for kept in combinations(chosen, inner):
                    others = tuple(axis for axis in axes if axis not in kept)
                    mean = values.mean(axis=others, keepdims=True) if others else values
                    effect = effect + (-1) ** (size - inner) * mean
            name = "".join("sta"[axis] for axis in chosen)
            freedom[name] = int(np.prod([values.shape[axis] - 1 for axis in chosen]))
            squares[name] = float(np.square(effect).sum()) / freedom[name]
    return squares, freedom


def _components(squares: dict[str, Floats], shape: tuple[int, ...]) -> dict[str, Floats]:
    """Each effect's variance: mean squares of all sets that hold it, by turns added and taken."""
    every = "sta"[: len(shape)]
    components = {}
    for name in squares:
        total = np.zeros_like(squares[name])
        for other, square in squares.items():
            if set(name) <= set(other):
                total = total + (-1) ** (len(other) - len(name)) * square
        cells = np.prod([shape[every.index(axis)] for axis in every if axis not in name])
        components[name] = total / cells
    return components


def _plan(
    sizes: tuple[int, int], point: dict[str, Floats], draws: dict[str, Floats], tail: float
) -> Plan:
    [relative], [absolute], [error] = _reliabilities(sizes, point)
    drawn_relative, drawn_absolute, _ = _reliabilities(sizes, draws)
    limits = [np.nanquantile(each, [tail, 1 - tail]) for each in (drawn_relative, drawn_absolute)]
    return Plan(
        n_topics=sizes[0],
        n_assessors=sizes[1],
        generalizability=Reliability(float(relative), float(limits[0][0]), float(limits[0][1])),
        dependability=Reliability(float(absolute), float(limits[1][0]), float(limits[1][1])),
        se_of_difference=float(np.sqrt(2 * error)),
    )


def _reliabilities(
    sizes: tuple[int, int], components: dict[str, Floats]
) -> tuple[Floats, Floats, Floats]:
    counts = {"t": sizes[0], "a": sizes[1]}
    positive = {name: np.maximum(value, 0) for name, value in components.items()}
    signal = positive["s"]
    relative, absolute = np.zeros_like(signal), np.zeros_like(signal)
    for name, value in positive.items():
        if name == "s":
            continue
        part = value / np.prod([counts[axis] for axis in name if axis != "s"])
        absolute = absolute + part
        relative = relative + part if "s" in name else relative
    with np.errstate(invalid="ignore"):
        return signal / (signal + relative), signal / (signal + absolute), relative


def _titled(components: dict[str, Floats]) -> dict[str, float]:
    words = {"s": "system", "t": "topic", "a": "assessor"}
    names = ["_".join(words[axis] for axis in name) for name in components]
    values = [float(value[0]) for value in components.values()]
    return dict(zip([*names[:-1], "residual"], values, strict=True))


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a study of so many items and annotators would be worth.

    Attributes
    ----------
    n_items, n_annotators : int
        Items, and annotators of each rated output; all rate the same ones.
    se_of_mean : float
        Of a system's mean (without systems: of an item's), for new items and annotators.
    se_of_difference : float
        Of the difference of two systems (without systems: of two items).
    generalizability : float
        The reliability of the order of systems (items).
    dependability : float
        The reliability of their values.
    """

    n_items: int
    n_annotators: int
    se_of_mean: float
    se_of_difference: float
    generalizability: float
    dependability: float


def decision_study(
    components: Mapping[str, float], *, n_items: int = 1, n_annotators: int
) -> Decision:
    """How sure systems (or, without systems, items) would be with other numbers of ratings.

    Parameters
    ----------
    components : mapping of str to float
        From `variance_components`; what is missing counts as 0, negative ones as 0.
    n_items : int
        Items of each system; not used without systems.
    n_annotators : int
        Annotators who each rate every output.

    Returns
    -------
    Decision

    Raises
    ------
    ValueError
        If a number is below 1.

    References
    ----------
    R. L. Brennan (2001). Generalizability Theory. Springer, chapters 2 and 4.

    Examples
    --------
    >>> parts = {"item": 0.98, "annotator": 0.29, "residual": 0.71}
    >>> round(decision_study(parts, n_annotators=3).generalizability, 2)
    0.81
    """
    require(
        n_items >= 1 and n_annotators >= 1,
        "n_items and n_annotators must be at least 1",
        code="n_items_out_of_range",
    )
    part = {
        name: 0.0 if isnan(value) else max(float(value), 0.0) for name, value in components.items()
    }

    def of(name: str) -> float:
        return part.get(name, 0.0)

    if "system" in part:
        cells = n_items * n_annotators
        object_ = of("system")
        relative = of("item_system") / n_items + of("system_annotator") / n_annotators
        relative += of(RESIDUAL) / cells
        absolute = relative + of("item") / n_items + of("annotator") / n_annotators
        absolute += of("item_annotator") / cells
    else:
        object_ = of("item")
        relative = of(RESIDUAL) / n_annotators
        absolute = relative + of("annotator") / n_annotators
    return Decision(
        n_items=n_items,
        n_annotators=n_annotators,
        se_of_mean=float(np.sqrt(absolute)),
        se_of_difference=float(np.sqrt(2 * relative)),
        generalizability=_share(object_, relative),
        dependability=_share(object_, absolute),
    )


def _share(signal: float, error: float) -> float:
    return signal / (signal + error) if signal + error > 0 else nan
