from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from error_codes import CodedText, note_if
from stats.aggregation.result import (
    Aggregation,
    Crowd,
    Repeats,
    Votes,
    annotator_table,
    chosen_categories,
    label_table,
    name_of,
    nothing,
    probability_table,
    repeat_warnings,
    sign,
)
from stats.arguments import Floats, require_at_least
from stats.libraries import np, pd

# Of a category's share: where a model departs further from the majority, a warning says so.
CONTRADICTION = 0.5
CONTRADICTED_ITEMS = 0.05
ENOUGH_ITEMS = 20
Expectation = TypeVar("Expectation")
Parameters = TypeVar("Parameters")
CrowdT = TypeVar("CrowdT", bound=Crowd)


@dataclass(frozen=True)
class Ascent(Generic[Expectation, Parameters]):
    expectation: Expectation
    parameters: Parameters
    objective: float
    iterations: int
    converged: bool


@dataclass(frozen=True)
class Estimates:
    labels: pd.DataFrame
    annotators: Mapping[str, Floats]
    probabilities: pd.DataFrame | None = None
    confusions: pd.DataFrame | None = None
    warnings: tuple[str, ...] = field(default=())


class Model(Protocol[Expectation, Parameters]):
    def start(self) -> Expectation:
        """What is expected before the first round."""

    def maximise(self, expectation: Expectation) -> Parameters:
        """The parameters that are best for an expectation."""

    def expect(self, parameters: Parameters) -> tuple[Expectation, float]:
        """What is expected of the unknown under some parameters, and the objective at them."""

    def estimates(self, ascent: Ascent[Expectation, Parameters]) -> Estimates:
        """What the end of the ascent says."""


def fit(
    method: str,
    crowd: CrowdT,
    model_of: Callable[[CrowdT], Model[Expectation, Parameters]],
    *,
    tolerance: float,
    max_iterations: int,
    repeats: Repeats,
    **parameters: object,
) -> Aggregation:
    """Fit a model by expectation-maximisation; `parameters` are its own, for the signature."""
    options = {"tolerance": tolerance, "max_iterations": max_iterations, "repeats": repeats}
    signature = sign(method, **parameters, **options)
    if not crowd.n_labels:
        return nothing(signature)
    model = model_of(crowd)
    ascent = ascend(
        model.expect,
        model.maximise,
        model.start(),
        tolerance=tolerance * crowd.n_labels,
        max_iterations=max_iterations,
    )
    return fitted(
        signature,
        crowd,
        model.estimates(ascent),
        converged=ascent.converged,
        iterations=ascent.iterations,
        log_likelihood=ascent.objective,
    )


def fitted(
    signature: str,
    crowd: Crowd,
    estimates: Estimates,
    *,
    converged: bool,
    iterations: int,
    log_likelihood: float,
) -> Aggregation:
    labels = estimates.labels
    return Aggregation(
        method=name_of(signature),
        signature=signature,
        labels=labels,
        annotators=annotator_table(crowd, **estimates.annotators),
        probabilities=estimates.probabilities,
        confusions=estimates.confusions,
        converged=converged,
        iterations=iterations,
        log_likelihood=log_likelihood,
        n_ties=int(labels["tied"].sum()) if "tied" in labels else 0,
        warnings=convergence_warnings(converged, iterations)
        + repeat_warnings(crowd)
        + estimates.warnings,
    )


def posterior_estimates(votes: Votes, posterior: Floats, **annotators: Floats) -> Estimates:
    return Estimates(
        label_table(votes, posterior),
        annotators,
        probability_table(votes, posterior),
        warnings=contradiction_warnings(votes, posterior),
    )


def contradiction_warnings(votes: Votes, posterior: Floats) -> tuple[str, ...]:
    n_items = len(votes.items)
    if n_items < ENOUGH_ITEMS:
        return ()
    chosen, majority = (chosen_categories(table)[0] for table in (posterior, votes.shares()))
    if (chosen != majority).mean() < CONTRADICTED_ITEMS:
        return ()
    here, before = (
        np.bincount(labels, minlength=votes.n_categories) / n_items for labels in (chosen, majority)
    )
    far = np.abs(here - before) > CONTRADICTION * np.maximum(before, 1 / n_items)
    return tuple(
        CodedText(
            f"{votes.categories[at]} is the label of {here[at]:.0%} of the items and of "
            f"{before[at]:.0%} by majority: this model contradicts the majority; check it against "
            "gold, or use majority",
            code="contradicts_majority",
        )
        for at in np.flatnonzero(far)
    )


def ascend(
    expect: Callable[[Parameters], tuple[Expectation, float]],
    maximise: Callable[[Expectation], Parameters],
    start: Expectation,
    *,
    tolerance: float,
    max_iterations: int,
) -> Ascent[Expectation, Parameters]:
    """Repeat maximisation and expectation until a round gains less than `tolerance`.

    The objective never falls, so a small gain is the end and not a dip.
    """
    require_at_least(0, tolerance=tolerance)
    require_at_least(1, max_iterations=max_iterations)
    parameters = maximise(start)
    expectation, objective = expect(parameters)
    for iteration in range(1, max_iterations + 1):
        candidate = maximise(expectation)
        expectation, reached = expect(candidate)
        parameters, gain, objective = candidate, reached - objective, reached
        if gain <= tolerance:
            return Ascent(expectation, parameters, objective, iteration, True)
    return Ascent(expectation, parameters, objective, max_iterations, False)


def normalised(log_joint: Floats) -> tuple[Floats, Floats]:
    """The posterior of each row of log joint probabilities, and the log of the row's sum."""
    top = log_joint.max(axis=1, keepdims=True)
    joint = np.exp(log_joint - top)
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(joint / total), np.asarray(np.log(total) + top).ravel()


def safe_log(probability: Floats) -> Floats:
    """The logarithm, with a floor that keeps an impossible event finite."""
    return np.asarray(np.log(np.maximum(probability, np.finfo(float).tiny)))


def convergence_warnings(converged: bool, iterations: int) -> tuple[str, ...]:
    return note_if(
        not converged,
        f"not converged after {iterations} iterations; raise max_iterations, "
        "or do not rely on the labels",
        "not_converged",
    )
