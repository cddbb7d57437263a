"""MACE: an annotator either knows the label or spams with a habit of their own.

`mace` has the priors that its authors advise; `mace_em` is fitted by maximum likelihood.
"""

from dataclasses import dataclass

from stats.aggregation.ascent import (
    Ascent,
    Estimates,
    fit,
    fitted,
    normalised,
    posterior_estimates,
    safe_log,
)
from stats.aggregation.result import Aggregation, Repeats, Votes, code_votes, nothing, sign
from stats.arguments import Column, Floats, require_at_least, sum_by
from stats.libraries import np, scipy

KNOWING_PRIOR = 0.5
HABIT_PRIOR = 10.0
LEAST_ITERATIONS = 50


def mace(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    restarts: int = 10,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
    repeats: Repeats = "refuse",
    rng: int = 0,
) -> Aggregation:
    """Labels and the competence of each annotator by variational Bayes, as published.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are categories. A missing label is an absent row.
    restarts : int
        Random starting points, of which the most likely end counts.
    tolerance : float
        Iterations stop when one moves the log-likelihood by less than this, in nats a label.
    max_iterations : int
        Iterations of each start after which the result is given up as not converged.
    repeats : {"refuse", "count"}
        Whether an annotator may label an item more than once; each label is then drawn anew.
    rng : int
        Seed of the starting points.

    Returns
    -------
    Aggregation
        ``probability`` is the posterior of the label; ``annotators`` has ``competence``: the
        posterior mean of the share of an annotator's labels that were not spam.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or repeat an (item, annotator)
        pair while `repeats` is ``"refuse"``; or `restarts`, `tolerance` or `max_iterations`
        is out of range.

    Notes
    -----
    With chance ``competence`` an annotator copies the true category, else draws one from a
    distribution of their own; all categories are equally likely to be true. Priors are those of
    the authors' program: Beta(1/2, 1/2) on competence and Dirichlet(10, ...) on what is spammed.
    Without them (`mace_em`) a rare class can be overstated badly.

    References
    ----------
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013). Learning whom to trust with
    MACE. NAACL-HLT, 1120-1130.

    Examples
    --------
    >>> items, annotators = [1, 1, 1, 2, 2, 2, 3, 3, 3], list("abc") * 3
    >>> result = mace(items, annotators, list("xxyyyyxxy"))
    >>> result.labels["label"].tolist()
    ['x', 'y', 'x']
    >>> result.annotators["competence"].idxmin()
    2
    """
    _require(restarts, tolerance, max_iterations)
    votes = code_votes(items, annotators, values, repeats)
    signature = sign(
        "mace",
        restarts=restarts,
        tolerance=tolerance,
        max_iterations=max_iterations,
        repeats=repeats,
        seed=rng,
    )
    if not votes.n_labels:
        return nothing(signature)
    model = _BayesModel(votes)
    generator = np.random.default_rng(rng)
    ends = [model.ascend(generator, tolerance, max_iterations) for _ in range(restarts)]
    best = max(ends, key=lambda end: end.log_likelihood)
    return fitted(
        signature,
        votes,
        posterior_estimates(votes, best.posterior, competence=best.competence),
        converged=best.converged,
        iterations=best.iterations,
        log_likelihood=best.log_likelihood,
    )


def _require(restarts: int, tolerance: float, max_iterations: int) -> None:
    require_at_least(1, restarts=restarts)
    require_at_least(0, tolerance=tolerance)
    require_at_least(1, max_iterations=max_iterations)


@dataclass(frozen=True)
class _Weights:
    """Exponentials of expected logarithms: what stands for a chance in variational Bayes."""

    knowing: Floats
    spamming: Floats
    habit: Floats  # (annotators, categories)


@dataclass(frozen=True)
class _End:
    posterior: Floats
    competence: Floats
    log_likelihood: float
    iterations: int
    converged: bool


class _BayesModel:
    def __init__(self, votes: Votes) -> None:
        self.votes = votes
        self.n_labels = votes.labels_per_annotator
        self.cell = votes.annotator * votes.n_categories + votes.value
        self.shape = (len(votes.annotators), votes.n_categories)

    def ascend(self, rng: np.random.Generator, tolerance: float, max_iterations: int) -> _End:
        posterior, known, reached = self._expect(self._start(rng))
        converged = False
        enough = tolerance * self.votes.n_labels
        for iteration in range(1, max_iterations + 1):
            posterior, known, log_likelihood = self._expect(self._maximise(known))
            gain, reached = abs(log_likelihood - reached), log_likelihood
            if gain <= enough and iteration >= min(LEAST_ITERATIONS, max_iterations):
                converged = max_iterations >= LEAST_ITERATIONS or gain == 0
                break
        counts = self.votes.per_annotator(known)
        competence = (counts + KNOWING_PRIOR) / (self.n_labels + 2 * KNOWING_PRIOR)
        return _End(posterior, competence, reached, iteration, converged)

    def _start(self, rng: np.random.Generator) -> _Weights:
        either = rng.uniform(1.0, 1.5, size=(self.shape[0], 2))
        habit = rng.uniform(1.0, 1.5, size=self.shape)
        either /= either.sum(axis=1, keepdims=True)
        habit /= habit.sum(axis=1, keepdims=True)
        return _Weights(either[:, 1], either[:, 0], habit)

    def _maximise(self, known: Floats) -> _Weights:
        of_knowing = self.votes.per_annotator(known)
        total = scipy.special.digamma(self.n_labels + 2 * KNOWING_PRIOR)
        spam = sum_by(self.cell, 1 - known, self.shape[0] * self.shape[1]).reshape(self.shape)
        habit = scipy.special.digamma(spam + HABIT_PRIOR)
        habit -= scipy.special.digamma(
            spam.sum(axis=1, keepdims=True) + self.shape[1] * HABIT_PRIOR
        )
        return _Weights(
            np.exp(scipy.special.digamma(of_knowing + KNOWING_PRIOR) - total),
            np.exp(scipy.special.digamma(self.n_labels - of_knowing + KNOWING_PRIOR) - total),
            np.exp(habit),
        )

    def _expect(self, weights: _Weights) -> tuple[Floats, Floats, float]:
        votes = self.votes
        knowing = weights.knowing[votes.annotator]
        spammed = weights.spamming[votes.annotator] * weights.habit[votes.annotator, votes.value]
        posterior, evidence = _posterior(votes, knowing, spammed)
        known = posterior[votes.item, votes.value] * knowing / (knowing + spammed)
        return posterior, known, evidence


def _posterior(votes: Votes, knowing: Floats, spammed: Floats) -> tuple[Floats, float]:
    log_spammed, log_either = safe_log(spammed), safe_log(knowing + spammed)
    log_joint = votes.per_category(log_either - log_spammed)
    log_joint += votes.per_item(log_spammed)[:, None] - np.log(votes.n_categories)
    posterior, evidence = normalised(log_joint)
    return posterior, float(evidence.sum())


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
    require_at_least(0, smoothing=smoothing)
    votes = code_votes(items, annotators, values, repeats)
    return fit(
        "mace_em",
        votes,
        lambda votes: _LikelihoodModel(votes, smoothing),
        smoothing=smoothing,
        tolerance=tolerance,
        max_iterations=max_iterations,
        repeats=repeats,
    )


@dataclass(frozen=True)
class _Expectation:
    posterior: Floats
    known: Floats


@dataclass(frozen=True)
class _Parameters:
    competence: Floats
    habit: Floats  # what each annotator spams, (annotators, categories)


class _LikelihoodModel:
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
        posterior, evidence = _posterior(votes, competence, spammed)
        expectation = _Expectation(posterior, posterior[votes.item, votes.value] * known)
        return expectation, evidence + self._log_prior(parameters)

    def _log_prior(self, parameters: _Parameters) -> float:
        of_competence = safe_log(parameters.competence) + safe_log(1 - parameters.competence)
        of_habit = safe_log(parameters.habit)
        return self.smoothing * float(of_competence.sum() + of_habit.sum())
