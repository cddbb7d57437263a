from dataclasses import dataclass, replace

from stats.aggregation.ascent import fitted, normalised, posterior_estimates
from stats.aggregation.result import Aggregation, Repeats, Votes, code_votes, nothing, sign
from stats.arguments import Column, Floats, require_at_least
from stats.libraries import np, scipy

# The mean of the prior of Whitehill et al.
MEAN_ABILITY = 1.0


def glad(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    tolerance: float = 1e-10,
    max_iterations: int = 1000,
    repeats: Repeats = "refuse",
) -> Aggregation:
    """Labels, the ability of each annotator and the difficulty of each item.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are categories. A missing label is an absent row.
    tolerance : float
        Iterations stop when one raises the log posterior by less than this share of it.
    max_iterations : int
        Iterations after which the result is given up as not converged.
    repeats : {"refuse", "count"}
        Whether an annotator may label an item more than once; each label is then drawn anew.

    Returns
    -------
    Aggregation
        ``probability`` is the posterior of the label. ``annotators`` has ``ability``, 0 for
        guessing and negative for an annotator who is mostly wrong; ``labels`` has in addition
        ``difficulty``, at least 0, 1 being that of an item without labels.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or repeat an (item, annotator)
        pair while `repeats` is ``"refuse"``; or `tolerance` or `max_iterations` is out of range.

    Notes
    -----
    Annotator j labels item i correctly with chance expit(ability_j / difficulty_i), else with
    any other category alike; all categories are equally likely to be true. Priors: ability
    N(1, 1), log difficulty N(0, 1). Whitehill et al. alternate an expectation with a gradient
    search; here L-BFGS climbs the same marginal posterior at once, with the gradient that an
    expectation step gives (Fisher's identity), from ability 1 and difficulty 1.

    References
    ----------
    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009). Whose vote should count
    more: optimal integration of labels from labelers of unknown expertise. NeurIPS 22.

    Examples
    --------
    >>> items, annotators = [1, 1, 1, 2, 2, 2, 3, 3, 3], list("abc") * 3
    >>> result = glad(items, annotators, list("xxyyyyxxy"))
    >>> result.labels["label"].tolist(), result.converged
    (['x', 'y', 'x'], True)
    >>> result.labels["difficulty"].round(1).tolist()
    [0.9, 0.6, 0.9]
    """
    require_at_least(0, tolerance=tolerance)
    require_at_least(1, max_iterations=max_iterations)
    votes = code_votes(items, annotators, values, repeats)
    signature = sign("glad", tolerance=tolerance, max_iterations=max_iterations, repeats=repeats)
    if not votes.n_labels:
        return nothing(signature)
    model = _Model(votes)
    optimum = scipy.optimize.minimize(
        model.loss,
        model.start(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iterations,
            "maxfun": 10 * max_iterations,
            "ftol": tolerance,
            "gtol": 1e-8 * votes.n_labels,
        },
    )
    state = model.state(optimum.x)
    estimates = posterior_estimates(votes, state.posterior, ability=state.ability)
    return fitted(
        signature,
        votes,
        replace(estimates, labels=estimates.labels.assign(difficulty=np.exp(-state.log_ease))),
        converged=bool(optimum.success),
        iterations=int(optimum.nit),
        log_likelihood=-float(optimum.fun),
    )


@dataclass(frozen=True)
class _State:
    ability: Floats
    log_ease: Floats
    logit: Floats
    posterior: Floats
    log_evidence: float


class _Model:
    def __init__(self, votes: Votes) -> None:
        self.votes = votes
        self.n_annotators = len(votes.annotators)
        self.log_wrong = np.log(max(votes.n_categories - 1, 1))

    def start(self) -> Floats:
        ability = np.full(self.n_annotators, MEAN_ABILITY)
        return np.concatenate([ability, np.zeros(len(self.votes.items))])

    def state(self, parameters: Floats) -> _State:
        votes = self.votes
        ability, log_ease = np.split(parameters, [self.n_annotators])
        logit = ability[votes.annotator] * np.exp(log_ease)[votes.item]
        log_joint = votes.per_category(logit + self.log_wrong)
        log_joint += votes.per_item(scipy.special.log_expit(-logit) - self.log_wrong)[:, None]
        posterior, evidence = normalised(log_joint - np.log(votes.n_categories))
        return _State(ability, log_ease, logit, posterior, float(evidence.sum()))

    def loss(self, parameters: Floats) -> tuple[float, Floats]:
        votes, state = self.votes, self.state(parameters)
        departure = state.ability - MEAN_ABILITY
        log_prior = -0.5 * float(departure @ departure + state.log_ease @ state.log_ease)
        slope = state.posterior[votes.item, votes.value] - scipy.special.expit(state.logit)
        of_ability = votes.per_annotator(slope * np.exp(state.log_ease)[votes.item]) - departure
        of_ease = votes.per_item(slope * state.logit) - state.log_ease
        return -state.log_evidence - log_prior, -np.concatenate([of_ability, of_ease])
