from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from error_codes import note_if
from stats.aggregation.ascent import (
    Ascent,
    Estimates,
    fit,
    normalised,
    posterior_estimates,
    safe_log,
)
from stats.aggregation.result import Aggregation, Repeats, Votes, code_votes, require_table
from stats.arguments import Column, Floats, Integers, require_at_least
from stats.libraries import np, pd, scipy

# Fewer labels of an annotator than this earn a warning.
FEW_LABELS = 5


def dawid_skene(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    smoothing: float = 0.0,
    tolerance: float = 1e-10,
    max_iterations: int = 2000,
    repeats: Repeats = "count",
) -> Aggregation:
    """Labels, class shares and confusion matrices by maximum likelihood.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are categories. A missing label is an absent row.
    smoothing : float
        Pseudo-labels added to every cell of every confusion matrix. 0 is the published
        model; with few labels an annotator, 0.1 to 1 keeps matrices from certainty.
    tolerance : float
        Iterations stop when one raises the log-likelihood by less than this, in nats a label.
    max_iterations : int
        Iterations after which the result is given up as not converged.
    repeats : {"count", "refuse"}
        Whether an annotator may label an item more than once; the model takes each label as
        drawn anew, as the published example does.

    Returns
    -------
    Aggregation
        ``probability`` is the posterior of the label. ``annotators`` has ``accuracy`` (the
        chance to label an item of the estimated class shares correctly) and ``informedness``:
        the mean of the diagonal of the confusion matrix over the classes the annotator met,
        rescaled so that guessing is 0 and perfection 1 (Youden's J for two classes).
        ``confusions`` has the matrices; a class an annotator never met has NaN.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or repeat an (item, annotator)
        pair while `repeats` is ``"refuse"``; or `smoothing`, `tolerance` or `max_iterations`
        is out of range.

    Notes
    -----
    EM from the shares of votes. Labels are one sparse matrix of items by (annotator, label)
    pairs, so that each half of a round is a product with a dense matrix of few columns.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979). Maximum likelihood estimation of observer error-rates
    using the EM algorithm. Applied Statistics 28(1), 20-28.

    Examples
    --------
    >>> items, annotators = [1, 1, 1, 2, 2, 2, 3, 3, 3], list("abc") * 3
    >>> result = dawid_skene(items, annotators, list("xxyyyyxxx"))
    >>> result.labels["label"].tolist(), result.converged
    (['x', 'y', 'x'], True)
    >>> result.annotators[["annotator", "informedness"]].round(2)
      annotator  informedness
    0         a           1.0
    1         b           1.0
    2         c           0.5
    """
    require_at_least(0, smoothing=smoothing)
    votes = code_votes(items, annotators, values, repeats)
    return fit(
        "dawid_skene",
        votes,
        lambda votes: _Model(votes, smoothing),
        smoothing=smoothing,
        tolerance=tolerance,
        max_iterations=max_iterations,
        repeats=repeats,
    )


@dataclass(frozen=True)
class _Parameters:
    """Class shares (K), and the chance of each occurring (annotator, label) given the truth."""

    prior: Floats
    chance: Floats
    exposure: Floats  # expected number of labels given to each true class, (annotators, K)


class _Model:
    def __init__(self, votes: Votes, smoothing: float) -> None:
        self.votes = votes
        self.smoothing = smoothing
        self.n_categories = n = votes.n_categories
        require_table("values", annotators=len(votes.annotators), truths=n, labels=n)
        key = votes.annotator * votes.n_categories + votes.value
        occurring, column = np.unique(key, return_inverse=True)
        self.annotator: Integers = occurring // votes.n_categories
        self.value: Integers = occurring % votes.n_categories
        self.n_annotators = len(votes.annotators)
        self.counts = scipy.sparse.csr_array(
            (np.ones(votes.n_labels), (votes.item, column)),
            shape=(len(votes.items), len(occurring)),
        )

    @cached_property
    def _by_pair(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(self.counts.T)

    @cached_property
    def _by_annotator(self) -> scipy.sparse.csr_array:
        n_pairs = len(self.annotator)
        return scipy.sparse.csr_array(
            (np.ones(n_pairs), (self.annotator, np.arange(n_pairs))),
            shape=(self.n_annotators, n_pairs),
        )

    def start(self) -> Floats:
        return self.votes.shares()

    def estimates(self, ascent: Ascent[Floats, _Parameters]) -> Estimates:
        confusion = self.confusion(ascent.parameters)
        skill = _skill(confusion, ascent.parameters.prior)
        return replace(
            posterior_estimates(self.votes, ascent.expectation, **skill),
            confusions=_confusion_table(self.votes, confusion),
            warnings=_thin_warnings(self.votes),
        )

    def maximise(self, posterior: Floats) -> _Parameters:
        label_mass = np.asarray(self._by_pair @ posterior)
        exposure = np.asarray(self._by_annotator @ label_mass)
        total = exposure + self.smoothing * self.n_categories
        with np.errstate(invalid="ignore"):
            chance = (label_mass + self.smoothing) / total[self.annotator]
        return _Parameters(posterior.mean(axis=0), np.nan_to_num(chance), exposure)

    def expect(self, parameters: _Parameters) -> tuple[Floats, float]:
        log_chance = safe_log(parameters.chance)
        posterior, evidence = normalised(
            np.asarray(self.counts @ log_chance) + safe_log(parameters.prior)
        )
        return posterior, float(evidence.sum()) + self._log_prior(parameters, log_chance)

    def _log_prior(self, parameters: _Parameters, log_chance: Floats) -> float:
        """The Dirichlet density of the confusion matrices, also of labels that never occur."""
        if not self.smoothing:
            return 0.0
        absent = self.n_categories - np.bincount(self.annotator, minlength=self.n_annotators)
        total = parameters.exposure + self.smoothing * self.n_categories
        of_absent = absent[:, None] * np.log(self.smoothing / total)
        return self.smoothing * float(log_chance.sum() + of_absent.sum())

    def confusion(self, parameters: _Parameters) -> Floats:
        """The confusion matrices, shape (annotators, truth, label); NaN for a class not met."""
        total = parameters.exposure + self.smoothing * self.n_categories
        shape = (self.n_annotators, self.n_categories, self.n_categories)
        with np.errstate(divide="ignore", invalid="ignore"):
            matrices = np.broadcast_to((self.smoothing / total)[:, :, None], shape).copy()
        matrices[self.annotator, :, self.value] = parameters.chance
        matrices[parameters.exposure < np.finfo(float).eps] = np.nan
        return matrices


def _skill(confusion: Floats, prior: Floats) -> dict[str, Floats]:
    correct = np.einsum("akk->ak", confusion)
    met = ~np.isnan(correct)
    n_categories = correct.shape[1]
    hit = np.where(met, correct, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        accuracy = (hit * prior).sum(axis=1) / (met * prior).sum(axis=1)
        mean_hit = hit.sum(axis=1) / met.sum(axis=1)
        informedness = (mean_hit * n_categories - 1) / (n_categories - 1)
    return {"accuracy": accuracy, "informedness": informedness}


def _confusion_table(votes: Votes, confusion: Floats) -> pd.DataFrame:
    annotator, truth, label = (axis.ravel() for axis in np.indices(confusion.shape))
    categories = pd.Series(votes.categories)
    return pd.DataFrame(
        {
            "annotator": pd.Series(votes.annotators)[annotator].reset_index(drop=True),
            "truth": categories[truth].reset_index(drop=True),
            "label": categories[label].reset_index(drop=True),
            "probability": confusion.ravel(),
        }
    )


def _thin_warnings(votes: Votes) -> tuple[str, ...]:
    thin = int((votes.labels_per_annotator < FEW_LABELS).sum())
    return note_if(
        thin,
        f"{thin} of {len(votes.annotators)} annotators gave fewer than {FEW_LABELS} labels: "
        "their confusion matrices are guesses; majority or smoothing is safer",
        "thin_annotators",
    )


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
    require_at_least(0, smoothing=smoothing)
    votes = code_votes(items, annotators, values, repeats)
    return fit(
        "one_coin",
        votes,
        lambda votes: _OneCoinModel(votes, smoothing),
        smoothing=smoothing,
        tolerance=tolerance,
        max_iterations=max_iterations,
        repeats=repeats,
    )


@dataclass(frozen=True)
class _OneCoinParameters:
    prior: Floats
    accuracy: Floats


class _OneCoinModel:
    def __init__(self, votes: Votes, smoothing: float) -> None:
        self.votes = votes
        self.smoothing = smoothing
        self.n_labels = votes.labels_per_annotator

    def start(self) -> Floats:
        return self.votes.shares()

    def estimates(self, ascent: Ascent[Floats, _OneCoinParameters]) -> Estimates:
        accuracy = ascent.parameters.accuracy
        return posterior_estimates(self.votes, ascent.expectation, accuracy=accuracy)

    def maximise(self, posterior: Floats) -> _OneCoinParameters:
        right = self.votes.per_annotator(posterior[self.votes.item, self.votes.value])
        accuracy = (right + self.smoothing) / (self.n_labels + 2 * self.smoothing)
        return _OneCoinParameters(posterior.mean(axis=0), np.minimum(accuracy, 1.0))

    def expect(self, parameters: _OneCoinParameters) -> tuple[Floats, float]:
        votes, n_wrong = self.votes, max(self.votes.n_categories - 1, 1)
        right = safe_log(parameters.accuracy)
        wrong = safe_log((1 - parameters.accuracy) / n_wrong)
        log_joint = votes.per_category((right - wrong)[votes.annotator])
        log_joint += votes.per_item(wrong[votes.annotator])[:, None] + safe_log(parameters.prior)
        posterior, evidence = normalised(log_joint)
        wrong_prior = safe_log(1 - parameters.accuracy)
        log_prior = self.smoothing * float((right + wrong_prior).sum())
        return posterior, float(evidence.sum()) + log_prior
