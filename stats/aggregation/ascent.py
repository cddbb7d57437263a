"""Expectation-maximisation that stops when the likelihood stands still, and says whether it did."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from stats.arguments import Floats

Expectation = TypeVar("Expectation")
Parameters = TypeVar("Parameters")


@dataclass(frozen=True)
class Ascent(Generic[Expectation, Parameters]):
    """Where EM ended: the expectation, the parameters it follows from, the objective there."""

    expectation: Expectation
    parameters: Parameters
    objective: float
    iterations: int
    converged: bool


def ascend(
    expect: Callable[[Parameters], tuple[Expectation, float]],
    maximise: Callable[[Expectation], Parameters],
    start: Expectation,
    *,
    tolerance: float,
    max_iterations: int,
) -> Ascent[Expectation, Parameters]:
    """Repeat maximisation and expectation until a round gains less than `tolerance`.

    `expect` gives what is expected of the unknown under some parameters, such as a posterior,
    and the objective at them; `maximise` the parameters that are best for an expectation.
    The objective never falls, so a small gain is the end and not a dip.
    """
    if tolerance < 0:
        raise ValueError(f"tolerance must not be negative, not {tolerance}")
    if max_iterations < 1:
        raise ValueError(f"max_iterations must be at least 1, not {max_iterations}")
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
    """The warning that the iterations ended before the likelihood stood still."""
    if converged:
        return ()
    return (
        f"not converged after {iterations} iterations; raise max_iterations, "
        "or do not rely on the labels",
    )
