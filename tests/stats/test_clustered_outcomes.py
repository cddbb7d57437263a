from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.special import expit

from error_codes import InvalidValue
from stats.inference.mixed_logistic import _design, mixed_logistic
from stats.inference.penalised_logistic import conditional_mode
from stats.proportions import clustered_share
from tests.codes import refused

TRUTH = {"intercept": -1.5, "loss": 2.0, "turn": 0.1, "loss x turn": -0.1}
WORKER_SD, TARGET_SD = 0.9, 0.5


def study(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Decisions to switch of workers who see loss or gain at a random turn of random targets."""
    rng, n_workers, n_targets = np.random.default_rng(seed), 40, 40
    worker = np.repeat(np.arange(n_workers), 20)
    target = rng.integers(0, n_targets, len(worker))
    loss = rng.integers(0, 2, len(worker))
    turn = rng.integers(1, 9, len(worker)) - 4.5
    columns = {"loss": loss, "turn": turn, "loss x turn": loss * turn}
    logit = TRUTH["intercept"] + sum(TRUTH[name] * columns[name] for name in columns)
    logit = logit + rng.normal(0, WORKER_SD, n_workers)[worker]
    logit = logit + rng.normal(0, TARGET_SD, n_targets)[target]
    return rng.random(len(worker)) < expit(logit), columns, {"worker": worker, "target": target}


def test_without_groups_that_differ_it_is_plain_logistic_regression():
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    x, worker = rng.normal(size=600), rng.integers(0, 30, 600)
    y = rng.random(600) < expit(0.3 + 0.8 * x)
    # Outcomes balanced within workers leave no variation between them to be seen.
    model = mixed_logistic(y, {"x": x}, {"worker": worker})
    plain = sm.Logit(y.astype(float), sm.add_constant(x)).fit(disp=0)
    if model.deviations["worker"] < 1e-4:
        assert [one.value for one in model.coefficients] == pytest.approx(plain.params, abs=1e-4)
    balanced = np.arange(600) % 2 == 0
    same = mixed_logistic(balanced, {"x": x}, {"worker": np.arange(600) // 20})
    oracle = sm.Logit(balanced.astype(float), sm.add_constant(x)).fit(disp=0)
    assert same.deviations["worker"] == pytest.approx(0, abs=1e-4)
    assert [one.value for one in same.coefficients] == pytest.approx(oracle.params, abs=1e-4)
    assert [one.se for one in same.coefficients] == pytest.approx(oracle.bse, rel=1e-3)
    assert same.log_likelihood == pytest.approx(oracle.llf, abs=1e-6)


def exact_likelihood(
    y: np.ndarray, x: np.ndarray, worker: np.ndarray
) -> Callable[[np.ndarray], float]:
    """The likelihood of one grouping, each worker's intercept integrated by 60 nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    log_weights = np.log(weights / weights.sum())

    def negative(parameters: np.ndarray) -> float:
        sd, beta = abs(parameters[0]), parameters[1:]
        logit = (beta[0] + beta[1] * x)[:, None] + sd * nodes
        terms = y[:, None] * logit - np.logaddexp(0, logit)
        of_workers = np.zeros((worker.max() + 1, len(nodes)))
        np.add.at(of_workers, worker, terms)
        return -float(np.logaddexp.reduce(of_workers + log_weights, axis=1).sum())

    return negative


def test_one_grouping_agrees_with_the_integrated_likelihood():
    rng = np.random.default_rng(3)
    worker, x = np.repeat(np.arange(50), 25), rng.normal(size=1250)
    y = (rng.random(1250) < expit(-0.5 + x + rng.normal(0, 1.2, 50)[worker])).astype(float)
    exact = exact_likelihood(y, x, worker)
    best = optimize.minimize(exact, np.array([1.0, 0.0, 0.0]), method="BFGS")
    model = mixed_logistic(y, {"x": x}, {"worker": worker})
    # Laplace's approximation differs by so little with 25 outcomes a worker.
    assert model.deviations["worker"] == pytest.approx(abs(best.x[0]), rel=0.02)
    assert [one.value for one in model.coefficients] == pytest.approx(best.x[1:], abs=0.02)
    assert model.log_likelihood == pytest.approx(-best.fun, abs=0.6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_nothing_near_the_estimates_is_likelier(seed):
    """The search stopped short of the maximum where the likelihood was too rough to be climbed."""
    rng = np.random.default_rng([seed, 5])
    worker, target = np.repeat(np.arange(20), 15), rng.integers(0, 40, 300)
    loss, turn = rng.integers(0, 2, 300), rng.normal(size=300)
    logit = 1.2 * loss - 1 + rng.normal(0, 0.8, 20)[worker] + rng.normal(0, 0.4, 40)[target]
    outcome = (rng.random(300) < expit(logit)).astype(float)
    columns, groups = {"loss": loss, "turn": turn}, {"worker": worker, "target": target}
    model = mixed_logistic(outcome, columns, groups)
    design, _names, _levels = _design(outcome, columns, groups)

    def worse(parameters: np.ndarray) -> float:
        at = conditional_mode(design, np.abs(parameters[:2]), parameters[2:], None)
        return -at.log_likelihood

    best = np.array([*model.deviations.values(), *(one.value for one in model.coefficients)])
    # A search without derivatives, from there and from elsewhere.
    for start in (best, np.array([0.5, 0.5, *best[2:]])):
        found = optimize.minimize(worse, start, method="Nelder-Mead", options={"maxiter": 600})
        assert -found.fun < model.log_likelihood + 1e-4


@pytest.fixture(scope="module")
def marginal():
    """The true probability of a switch at a loss, of all workers and targets."""
    spread = np.hypot(WORKER_SD, TARGET_SD)
    share, _ = integrate.quad(
        lambda u: expit(TRUTH["intercept"] + TRUTH["loss"] + spread * u) * stats.norm.pdf(u), -8, 8
    )
    return float(share)


@pytest.mark.slow
def test_intervals_hold_the_truth_and_estimates_are_near_it(marginal):
    n_trials = 24
    models = [mixed_logistic(*study(seed)) for seed in range(n_trials)]
    covered = np.array(
        [[one.ci_low < TRUTH[one.name] < one.ci_high for one in m.coefficients] for m in models]
    )
    # 95 % of 96 intervals, less three standard errors for dependence within a study.
    assert covered.mean() > 0.95 - 3 * (0.0475 / n_trials) ** 0.5
    means = np.mean([[one.value for one in m.coefficients] for m in models], axis=0)
    assert means == pytest.approx(list(TRUTH.values()), abs=0.12)
    deviations = np.mean([list(m.deviations.values()) for m in models], axis=0)
    assert deviations == pytest.approx([WORKER_SD, TARGET_SD], abs=0.12)
    of_all = [m.probability({"loss": 1}) for m in models]
    assert all(one.ci_low < one.value < one.ci_high for one in of_all)
    assert sum(one.ci_low < marginal < one.ci_high for one in of_all) >= 20
    with refused(InvalidValue, "unknown_column"):
        models[0].probability({"gain": 1})


def test_outcomes_that_tell_nothing_are_undefined_and_what_cannot_be_fitted_is_refused():
    _, columns, groups = study(0)
    model = mixed_logistic(np.ones(800), columns, groups)
    assert model.reason.code == "equal_outcomes"
    assert np.isnan(model["loss"].value)
    assert np.isnan(model.probability({"loss": 1}).value)
    separated = mixed_logistic(columns["loss"], {"loss": columns["loss"]}, groups)
    assert separated.reason.code == "separated"
    for change, code in (
        (lambda y, x, g: (y + 1, x, g), "outcome_out_of_range"),
        (lambda y, x, g: (y, {**x, "one": np.ones(800)}, g), "collinear_columns"),
        (lambda y, x, g: (y, x, {}), "groups_missing"),
        (lambda y, x, g: (y, x, {"worker": np.arange(800) % 2}), "too_few_levels"),
        (lambda y, x, g: (y[:-1], x, g), "unequal_lengths"),
    ):
        y, columns, groups = study(0)
        with refused(InvalidValue, code):
            mixed_logistic(*change(y.astype(float), columns, groups))


def test_clusters_count_by_how_far_they_differ():
    found = clustered_share([1] * 7 + [0] * 13, range(20))
    # R 4.3: binom.test(7, 20)
    assert (found.ci_low, found.ci_high) == pytest.approx((0.1539092, 0.5921885), abs=1e-6)
    found = clustered_share(np.repeat([1, 0, 0, 1, 0, 0], 50), np.repeat(range(6), 50))
    assert found.effective_n < 6
    independent = clustered_share([1, 0, 0, 1, 0, 0], range(6))
    assert found.ci_high - found.ci_low >= independent.ci_high - independent.ci_low
    found = clustered_share([1] * 500 + [0] * 500 + [1], [0] * 1000 + [1])
    assert 0 <= found.ci_low < found.value < found.ci_high <= 1


@pytest.mark.parametrize("own", [[1, 0], [1, 0, 0], [1, 1, 0, 0, 0]])
def test_clusters_of_equal_shares_count_in_full_whether_the_share_is_a_binary_fraction_or_not(own):
    found = clustered_share(own * 10, np.repeat([0, 1], 5 * len(own)))
    assert found.effective_n == 10 * len(own)


@pytest.mark.parametrize("value", [0, 1])
def test_outcomes_that_are_all_alike_bound_the_share_by_the_number_of_clusters(value):
    found = clustered_share([value] * 100, np.arange(100) % 10)
    low, high = sorted((value, abs(value - (1 - 0.025 ** (1 / 10)))))
    assert (found.ci_low, found.ci_high) == pytest.approx((low, high))
    assert found.effective_n == 10


@pytest.mark.parametrize(("logit", "sd"), [(-5, 0.8), (-3, 1.5), (0, 0.8), (1, 1.5)])
@pytest.mark.parametrize("n_clusters", [3, 6, 20])
def test_the_interval_holds_the_share_of_all_clusters(logit, sd, n_clusters):
    rng, n_trials, held = np.random.default_rng(0), 150, 0
    share = expit(logit + sd * rng.normal(size=200_000)).mean()
    cluster = np.repeat(np.arange(n_clusters), 10)
    for _ in range(n_trials):
        p = expit(logit + sd * rng.normal(size=n_clusters))[cluster]
        found = clustered_share(rng.random(len(p)) < p, cluster)
        held += found.ci_low <= share <= found.ci_high
    # Of 150 at 95 %, 133 or fewer have a probability of .001.
    assert held > 133


@pytest.mark.parametrize("n_clusters", [12, 40])
def test_the_interval_holds_where_one_cluster_has_half_of_the_outcomes(n_clusters):
    rng, n_trials, held = np.random.default_rng(1), 150, 0
    size = np.full(n_clusters, 5)
    size[0] = 5 * (n_clusters - 1)
    cluster = np.repeat(np.arange(n_clusters), size)
    for _ in range(n_trials):
        p = rng.beta(0.8, 3.2, size=n_clusters)[cluster]
        found = clustered_share(rng.random(len(p)) < p, cluster)
        held += found.ci_low <= 0.2 <= found.ci_high
    assert held > 133


def test_too_little_has_a_reason_and_what_is_no_outcome_is_refused():
    assert clustered_share([], []).reason.code == "no_outcomes"
    alone = clustered_share([1, 0], ["a", "a"])
    assert (alone.value, alone.reason.code) == (0.5, "one_cluster")
    assert np.isnan(alone.ci_low)
    for outcome, cluster, code in (
        ([0, 2], [1, 2], "outcome_out_of_range"),
        ([0, 1], [1], "unequal_lengths"),
    ):
        with refused(InvalidValue, code):
            clustered_share(outcome, cluster)
