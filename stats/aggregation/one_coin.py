"""The one-coin model: each annotator has one chance of being right."""

from dataclasses import dataclass

import numpy as np

from error_codes import InvalidValue
from stats.aggregation.ascent import (
    Ascent,
    Estimates,
    fit,
    normalised,
    posterior_estimates,
    safe_log,
)
from stats.aggregation.crowd import Repeats, Votes, code_votes
from stats.aggregation.result import Aggregation
from stats.arguments import Column, Floats


def one_coin(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    smoothing: float = 0.0,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """Labels, class shares and one accuracy an annotator by maximum likelihood.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are categories. A missing label is an absent row.
    smoothing : float
        Pseudo-labels, right and wrong, added to each annotator.
    tolerance : float
        Iterations stop when one raises the log-likelihood by less than this, in nats a label.
    max_iterations : int
        Iterations after which the result is given up as not converged.
    repeats : {"refuse", "count"}
        Whether an annotator may label an item more than once; each label is then drawn anew.

    Returns
    -------
    Aggregation
        ``probability`` is the posterior of the label; ``annotators`` has ``accuracy``.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or repeat an (item, annotator)
        pair while `repeats` is ``"refuse"``; or `smoothing`, `tolerance` or `max_iterations`
        is out of range.

    Notes
    -----
    Dawid and Skene's model with every error as likely as any other: one parameter an annotator
    instead of K (K - 1), so the better choice where annotators gave few labels.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan (2016). Spectral methods meet EM: a provably
    optimal algorithm for crowdsourcing. JMLR 17(102), 1-44 (section 2).

    Examples
    --------
    >>> items, annotators = [1, 1, 1, 2, 2, 2, 3, 3, 3], list("abc") * 3
    >>> result = one_coin(items, annotators, list("xxyyyyxxx"))
    >>> result.annotators["accuracy"].round(2).tolist()
    [1.0, 1.0, 0.67]
    """
    if smoothing < 0:
        raise InvalidValue(
            f"smoothing must not be negative, not {smoothing}", code="smoothing_out_of_range"
        )
    votes = code_votes(items, annotators, values, repeats)
    return fit(
        "one_coin",
        votes,
        lambda votes: _Model(votes, smoothing),
        smoothing=smoothing,
        tolerance=tolerance,
        max_iterations=max_iterations,
        repeats=repeats,
    )


@dataclass(frozen=True)
class _Parameters:
    prior: Floats
    accuracy: Floats


class _Model:
    def __init__(self, votes: Votes, smoothing: float) -> None:
        self.votes = votes
        self.smoothing = smoothing
        self.n_labels = votes.labels_per_annotator

    def start(self) -> Floats:
        return self.votes.shares()

    def estimates(self, ascent: Ascent[Floats, _Parameters]) -> Estimates:
        accuracy = ascent.parameters.accuracy
        return posterior_estimates(self.votes, ascent.expectation, accuracy=accuracy)

    def maximise(self, posterior: Floats) -> _Parameters:
        right = self.votes.per_annotator(posterior[self.votes.item, self.votes.value])
        accuracy = (right + self.smoothing) / (self.n_labels + 2 * self.smoothing)
        return _Parameters(posterior.mean(axis=0), np.minimum(accuracy, 1.0))

    def expect(self, parameters: _Parameters) -> tuple[Floats, float]:
        votes, n_wrong = self.votes, max(self.votes.n_categories - 1, 1)
        right = safe_log(parameters.accuracy)
        wrong = safe_log((1 - parameters.accuracy) / n_wrong)
        log_joint = votes.per_category((right - wrong)[votes.annotator])
        log_joint += votes.per_item(wrong[votes.annotator])[:, None] + safe_log(parameters.prior)
        posterior, evidence = normalised(log_joint)
        wrong_prior = safe_log(1 - parameters.accuracy)
        log_prior = self.smoothing * float((right + wrong_prior).sum())
        return posterior, float(evidence.sum()) + log_prior
