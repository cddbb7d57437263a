"""MACE by maximum likelihood, without the priors that its authors advise."""

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
from stats.groups import sum_by


def mace_em(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    smoothing: float = 0.1,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """Labels and the competence of each annotator by maximum likelihood.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are categories. A missing label is an absent row.
    smoothing : float
        Pseudo-labels added to each annotator: known, spammed, and to each category spammed.
    tolerance : float
        Iterations stop when one raises the log-likelihood by less than this, in nats a label.
    max_iterations : int
        Iterations after which the result is given up as not converged.
    repeats : {"refuse", "count"}
        Whether an annotator may label an item more than once; each label is then drawn anew.

    Returns
    -------
    Aggregation
        ``probability`` is the posterior of the label; ``annotators`` has ``competence``: the
        share of an annotator's labels that were not spam.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or repeat an (item, annotator)
        pair while `repeats` is ``"refuse"``; or `smoothing`, `tolerance` or `max_iterations`
        is out of range.

    Notes
    -----
    With chance ``competence`` an annotator copies the true category, else draws one from a
    distribution of their own; all categories are equally likely to be true. EM starts from the
    shares of votes and needs no seed. On crowds with a rare class it can call many more items
    positive than there are, which a warning then says; `mace` has the published priors.

    References
    ----------
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013). Learning whom to trust with
    MACE. NAACL-HLT, 1120-1130.

    Examples
    --------
    >>> items, annotators = [1, 1, 1, 2, 2, 2, 3, 3, 3], list("abc") * 3
    >>> result = mace_em(items, annotators, list("xxyyyyxxy"))
    >>> result.labels["label"].tolist()
    ['x', 'y', 'x']
    >>> (result.annotators["competence"] > 0.5).tolist()
    [True, True, False]
    """
    if smoothing < 0:
        raise InvalidValue(
            f"smoothing must not be negative, not {smoothing}", code="smoothing_out_of_range"
        )
    votes = code_votes(items, annotators, values, repeats)
    return fit(
        "mace_em",
        votes,
        lambda votes: _Model(votes, smoothing),
        smoothing=smoothing,
        tolerance=tolerance,
        max_iterations=max_iterations,
        repeats=repeats,
    )


@dataclass(frozen=True)
class _Expectation:
    """Posterior of each item's category, and the chance that each label was known."""

    posterior: Floats
    known: Floats


@dataclass(frozen=True)
class _Parameters:
    competence: Floats
    habit: Floats  # what each annotator spams, (annotators, categories)


class _Model:
    def __init__(self, votes: Votes, smoothing: float) -> None:
        self.votes = votes
        self.smoothing = smoothing
        self.n_labels = votes.labels_per_annotator

    def start(self) -> _Expectation:
        """A label is as surely known as its item's other labels say the same."""
        shares = self.votes.shares()
        return _Expectation(shares, shares[self.votes.item, self.votes.value])

    def estimates(self, ascent: Ascent[_Expectation, _Parameters]) -> Estimates:
        competence = ascent.parameters.competence
        return posterior_estimates(self.votes, ascent.expectation.posterior, competence=competence)

    def maximise(self, expectation: _Expectation) -> _Parameters:
        votes, smoothing = self.votes, self.smoothing
        known = votes.per_annotator(expectation.known)
        competence = (known + smoothing) / (self.n_labels + 2 * smoothing)
        cell = votes.annotator * votes.n_categories + votes.value
        shape = (len(votes.annotators), votes.n_categories)
        spam = sum_by(cell, 1 - expectation.known, shape[0] * shape[1]).reshape(shape) + smoothing
        total = spam.sum(axis=1, keepdims=True)
        habit = np.where(total > 0, spam / np.where(total > 0, total, 1), 1 / votes.n_categories)
        return _Parameters(np.minimum(competence, 1.0), habit)

    def expect(self, parameters: _Parameters) -> tuple[_Expectation, float]:
        votes = self.votes
        competence = parameters.competence[votes.annotator]
        spammed = (1 - competence) * parameters.habit[votes.annotator, votes.value]
        known = competence / np.maximum(competence + spammed, np.finfo(float).tiny)
        log_spammed, log_either = safe_log(spammed), safe_log(competence + spammed)
        log_joint = votes.per_category(log_either - log_spammed)
        log_joint += votes.per_item(log_spammed)[:, None] - np.log(votes.n_categories)
        posterior, evidence = normalised(log_joint)
        objective = float(evidence.sum()) + self._log_prior(parameters)
        return _Expectation(posterior, posterior[votes.item, votes.value] * known), objective

    def _log_prior(self, parameters: _Parameters) -> float:
        of_competence = safe_log(parameters.competence) + safe_log(1 - parameters.competence)
        of_habit = safe_log(parameters.habit)
        return self.smoothing * float(of_competence.sum() + of_habit.sum())
