import numpy as np
import pytest
from scipy import stats

from error_codes import InvalidValue
from stats.agreement import coefficients_at_level
from stats.inference import active_labels, powered_quantiles
from stats.inference.looks import confidence_at_look
from stats.inference.powered_means import prediction_powered_mean
from stats.inference.powered_regression import prediction_powered_regression
from stats.inference.sampled_batches import batch_weights, sampled_mean
from stats.label_sampling import SIGNIFICANT, compare_labeled
from tests.codes import codes_of, refused

N = 200


def unrated(values, n_rated, fill=np.nan):
    return np.where(np.arange(len(values)) < n_rated, values, fill)


def test_one_batch_is_prediction_powered_inference_or_the_survey_regression_estimator():
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    truth = rng.normal(size=N)
    judge = 0.8 * truth + 0.6 * rng.normal(size=N)
    human, sent = unrated(truth, 40), unrated(np.ones(N), 40)
    found = sampled_mean(human, judge, sent, 0.2 * sent)
    power = found.power * truth[:40].std() / judge[:40].std()
    plain = prediction_powered_mean(human, judge, power=power)
    assert found.value == pytest.approx(plain.value)
    assert found.se == pytest.approx(plain.se, rel=0.02)
    assert found.people_only.value == pytest.approx(plain.people_only.value)
    assert found.people_only.se == pytest.approx(plain.people_only.se)
    assert found.freedom == pytest.approx(38)
    rng = np.random.default_rng(4)
    truth = rng.normal(size=N)
    judge, chance = 2 + 0.5 * truth + rng.normal(size=N), rng.uniform(0.1, 0.9, size=N)
    rated = rng.random(N) < chance
    human = np.where(rated, truth, np.nan)
    found = sampled_mean(human, judge, np.where(rated, 1, np.nan), np.where(rated, chance, np.nan))
    fit = sm.WLS(truth[rated], sm.add_constant(judge[rated]), weights=1 / chance[rated]).fit()
    assert found.value == pytest.approx(fit.predict(sm.add_constant(judge)).mean())


def test_weights_give_each_batch_the_items_that_were_left():
    human = [1.0, 2, 3, 4, np.nan, 6] + [np.nan] * 6
    batch = [1, 1, 1, 2, 2, 3] + [np.nan] * 6
    chance = [0.25, 0.25, 0.25, 0.2, 0.4, np.nan] + [np.nan] * 6
    weights = batch_weights(human, batch, chance)
    # by hand: N = 12, 3 of 12, then 1 (of 2 sent) of 9; what was picked by hand came after
    first, second = 1 / (1 / 3 - 1 / 12), 1 / ((9 / 12) ** 2 * (1 - 1 / 9))
    of_second = second / (first + second)
    expected = [(1 - of_second) / 3 + of_second / 12] * 3 + [of_second * 9 / 12]
    assert weights[:4] == pytest.approx(expected)
    assert weights.sum() == pytest.approx(1)
    assert weights[5] == 0
    for given, code in ((0.0, "probability_out_of_range"), (np.nan, "probability_missing")):
        with refused(InvalidValue, code):
            batch_weights([1.0, 2.0], [1, 1], [0.5, given])
    human = [9.0, 9.0, 1.0, 2.0] + [np.nan] * 4
    batch = [1, 1, 2, 2] + [np.nan] * 4
    chance = [np.nan, np.nan, 1 / 3, 1 / 3] + [np.nan] * 4
    assert batch_weights(human, batch, chance)[:4] == pytest.approx([1 / 8, 1 / 8, 3 / 8, 3 / 8])
    weights = batch_weights([3.0, 1.0, 2.0, 4.0], [1, 2, 2, 2], [0.25, 1, 1, 1])
    assert weights == pytest.approx([0.25] * 4)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [([1.0, 1, np.nan], "no_recorded_probabilities"), ([np.nan] * 3, "no_labels")],
)
def test_without_recorded_chances_there_is_no_value(batch, reason):
    human = [1.0, 2.0, np.nan] if reason != "no_labels" else [np.nan] * 3
    found = sampled_mean(human, [1, 2, 3], batch, [np.nan] * 3)
    assert (found.reason, np.isnan(found.value)) == (reason, True)


def test_a_systematic_sample_has_its_size_and_each_item_its_probability():
    rng = np.random.default_rng(5)
    chance = active_labels.labelling_probabilities(rng.gamma(1.0, size=40), budget=10)
    counts = np.zeros(40)
    for _ in range(4000):
        order = rng.permutation(40)
        drawn = order[active_labels.systematic_sample(chance[order], start=rng.random())]
        assert len(drawn) == 10
        counts[drawn] += 1
    error = np.sqrt(chance * (1 - chance) / 4000) + 1e-9
    assert (np.abs(counts / 4000 - chance) < 4.5 * error).all()
    with refused(InvalidValue, "probability_out_of_range"):
        active_labels.systematic_sample([0.5, 0.7], start=0)


def study_of_batches(rng, sizes):
    """What is known after each batch: the first at random, then where the judge is least sure."""
    spread, truth = rng.gamma(1.0, size=300), rng.normal(size=300)
    judge = truth + 0.8 * spread * rng.normal(size=300)
    batch, chance = np.full(300, np.nan), np.full(300, np.nan)
    for number, size in enumerate(sizes, start=1):
        left = rng.permutation(np.flatnonzero(np.isnan(batch)))
        probabilities = np.full(len(left), size / len(left))
        if number > 1:
            human = np.where(np.isnan(batch), np.nan, truth)
            error = active_labels.expected_errors(human, judge, spread).error
            probabilities = active_labels.labelling_probabilities(error[left], budget=size)
        drawn = active_labels.systematic_sample(probabilities, start=rng.random())
        batch[left[drawn]], chance[left[drawn]] = number, probabilities[drawn]
        yield np.where(np.isnan(batch), np.nan, truth), judge, batch.copy(), chance.copy()


@pytest.mark.slow
def test_intervals_of_all_looks_together_hold_the_mean_where_chances_follow_earlier_ratings():
    rng, n_trials, sizes = np.random.default_rng(6), 120, (30, 30, 40)
    held, alone, errors = 0, 0, []
    for _ in range(n_trials):
        looks = [
            sampled_mean(*known, confidence=confidence_at_look(number, len(sizes)))
            for number, known in enumerate(study_of_batches(rng, sizes), start=1)
        ]
        held += all(one.ci_low <= 0 <= one.ci_high for one in looks)
        alone += looks[-1].ci_low <= 0 <= looks[-1].ci_high
        errors.append(looks[-1].value)
    assert held / n_trials > 0.93
    assert alone / n_trials > 0.95
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(n_trials)


def test_ignoring_the_chances_is_off_where_they_follow_the_ratings():
    """Why the chances are stored: higher ratings are drawn oftener here."""
    rng, errors, naive = np.random.default_rng(7), [], []
    for _ in range(200):
        truth = rng.gamma(1.0, size=N)
        judge = truth + 0.5 * rng.normal(size=N)
        chance = active_labels.labelling_probabilities(truth, budget=60)
        order = rng.permutation(N)
        drawn = order[active_labels.systematic_sample(chance[order], start=rng.random())]
        human = np.full(N, np.nan)
        human[drawn] = truth[drawn]
        sent, known = (np.where(np.isnan(human), np.nan, one) for one in (1.0, chance))
        errors.append(sampled_mean(human, judge, sent, known).value - 1)
        naive.append(prediction_powered_mean(human, judge).value - 1)
    assert abs(np.mean(errors)) < 0.02
    assert abs(np.mean(naive)) > 0.1


BOUNDARIES = {
    # two-sided, .05 in all, five equally spaced looks: the programs of Reboussin, DeMets, Kim and
    # Lan (2000, Controlled Clinical Trials 21, 190-207), of which R's ldbounds is a translation
    "obrien_fleming": [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
    "pocock": [2.4380, 2.4268, 2.4101, 2.3966, 2.3859],
}


@pytest.mark.parametrize("spending", BOUNDARIES)
def test_boundaries_are_those_of_lan_and_demets(spending):
    levels = [confidence_at_look(look, 5, spending=spending) for look in range(1, 6)]
    bounds = stats.norm.isf((1 - np.array(levels)) / 2)
    assert bounds == pytest.approx(BOUNDARIES[spending], abs=2e-4)


def test_one_look_is_no_look_at_all_and_others_are_refused():
    assert confidence_at_look(1, 1, confidence=0.9) == 0.9
    for look, looks in ((0, 3), (4, 3), (1, 0)):
        with refused(InvalidValue, "look_out_of_range"):
            confidence_at_look(look, looks)


N_ITEMS = 400


def scored(seed=0, n=N_ITEMS):
    rng = np.random.default_rng(seed)
    truth = rng.normal(3.2, 1, size=n)
    return truth, truth + rng.normal(0, 0.7, size=n), rng


ESTIMATES = {
    "mean": lambda human, judge, _covariate: prediction_powered_mean(human, judge),
    "median": lambda human, judge, _covariate: powered_quantiles.prediction_powered_quantile(
        human, judge
    ),
    "correlation": powered_quantiles.prediction_powered_correlation,
    "slopes": lambda human, judge, x: prediction_powered_regression(human, judge, {"length": x}),
}


@pytest.mark.parametrize("name", ESTIMATES)
def test_labels_of_the_highest_scores_give_no_value(name):
    truth, judge, rng = scored()
    length = rng.normal(size=N_ITEMS)
    human = np.where(stats.rankdata(judge) > N_ITEMS - 60, truth, np.nan)
    found = ESTIMATES[name](human, judge, length)
    assert found.reason == "labels_do_not_overlap"
    assert "labels_not_random" in codes_of(found.notes)
    one = found.coefficients[1] if name == "slopes" else found
    assert np.isnan([one.value, one.ci_low, one.people_only.value, one.people_only.ci_low]).all()


@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.parametrize("by", ["judge", "middle", "covariate"])
def test_labels_that_depend_on_what_is_known_are_warned_of(name, by):
    truth, judge, rng = scored(1)
    length = rng.normal(size=N_ITEMS)
    if by == "covariate" and name in ("mean", "median"):
        return
    drawn = {
        "judge": rng.random(N_ITEMS) < stats.norm.cdf(judge - 4),
        "middle": (np.abs(judge - 3.2) < 0.8) & (rng.random(N_ITEMS) < 0.5),
        "covariate": rng.random(N_ITEMS) < stats.norm.cdf(length - 0.8),
    }[by]
    found = ESTIMATES[name](np.where(drawn, truth, np.nan), judge, length)
    assert "labels_not_random" in codes_of(found.notes)
    assert found.reason is None
    random = rng.permutation(N_ITEMS) < drawn.sum()
    found = ESTIMATES[name](np.where(random, truth, np.nan), judge, length)
    assert "labels_not_random" not in codes_of(found.notes)


def test_probabilities_and_strata_account_for_unequal_chances():
    truth, judge, rng = scored(2)
    chance = np.where(judge > 3.2, 0.4, 0.1)
    human = np.where(rng.random(N_ITEMS) < chance, truth, np.nan)
    assert "labels_not_random" in codes_of(prediction_powered_mean(human, judge).notes)
    sent = np.where(np.isnan(human), np.nan, 1)
    found = sampled_mean(human, judge, sent, np.where(np.isnan(human), np.nan, chance))
    assert "labels_not_random" not in codes_of(found.notes)
    found = prediction_powered_mean(human, judge, strata=judge > 3.2)
    assert "labels_not_random" not in codes_of(found.notes)


@pytest.mark.parametrize(
    ("n_labeled", "size", "whole"), [(10, 1, True), (60, 1, True), (60, 5, True), (60, 5, False)]
)
@pytest.mark.parametrize("points", [2, 5, None])
def test_random_labels_are_rarely_warned_of(n_labeled, size, whole, points):
    rng = np.random.default_rng(n_labeled + size)
    trials, warned = 400, 0
    for _ in range(trials):
        cluster = np.arange(200) // size
        judge = 3 + rng.normal(size=200)[cluster] + rng.normal(size=200)
        if points:
            judge = np.clip(np.round(judge), 3, 2 + points)
        unit = cluster if whole else np.arange(200)
        order = rng.permutation(unit.max() + 1)
        labeled = order[unit] < n_labeled // (size if whole else 1)
        found = compare_labeled(labeled, {"judge": judge}, cluster=None if size == 1 else cluster)
        warned += not found.is_random
    assert warned / trials <= 0.025


@pytest.mark.parametrize(("n_clusters", "n_labeled"), [(40, 6), (40, 3), (12, 4)])
@pytest.mark.parametrize("is_top", [True, False])
def test_whole_clusters_with_the_highest_scores_give_no_value(n_clusters, n_labeled, is_top):
    rng = np.random.default_rng(n_clusters + n_labeled)
    cluster = np.repeat(rng.permutation(n_clusters), 10)
    judge = cluster + rng.uniform(0, 1, size=len(cluster))
    truth = judge + rng.normal(size=len(cluster))
    chosen = cluster >= n_clusters - n_labeled if is_top else cluster < n_labeled
    found = prediction_powered_mean(np.where(chosen, truth, np.nan), judge, clusters=cluster)
    assert found.reason == "labels_do_not_overlap"
    part = chosen & (rng.random(len(cluster)) < 0.6)
    found = prediction_powered_mean(np.where(part, truth, np.nan), judge, clusters=cluster)
    assert "labels_not_random" in codes_of(found.notes)


def test_few_clusters_are_rarely_warned_of_and_the_test_of_location_is_wilcoxons():
    rng = np.random.default_rng(0)
    for n_clusters, n_labeled, least in ((12, 2, 1.0), (12, 4, 1.0), (30, 8, 0.02)):
        trials, warned = 300, 0
        for _ in range(trials):
            sizes = np.ceil(10 * rng.uniform(least, 1, size=n_clusters)).astype(int)
            cluster = np.repeat(np.arange(n_clusters), sizes)
            judge = rng.normal(size=n_clusters)[cluster] + rng.normal(size=len(cluster))
            labeled = rng.permutation(n_clusters)[cluster] < n_labeled
            warned += not compare_labeled(labeled, {"judge": judge}, cluster=cluster).is_random
        assert warned / trials <= 0.03
    _, judge, rng = scored(3, n=50)
    judge = np.round(judge)
    labeled = rng.permutation(50) < 20
    expected = stats.mannwhitneyu(
        judge[labeled], judge[~labeled], method="asymptotic", use_continuity=False
    ).pvalue
    found = compare_labeled(labeled, {"judge": judge, "same": np.zeros(50)})
    assert found.p == pytest.approx(min(1, 4 * expected)) or found.p < 4 * expected
    found = compare_labeled(judge > 3, {"judge": judge})
    assert found.is_apart
    assert found.p < SIGNIFICANT
    assert not compare_labeled(np.arange(6) < 3, {"judge": np.arange(6.0)}).is_apart
    assert compare_labeled(np.ones(6, dtype=bool), {"judge": np.arange(6.0)}).p == 1


@pytest.mark.parametrize("n", [20, 50])
def test_means_of_few_skewed_ratings_hold_or_have_a_note(n):
    rng = np.random.default_rng(n)
    trials, missed, unsaid, noted_normal = 500, 0, 0, 0
    for _ in range(trials):
        truth = np.exp(rng.normal(size=300))
        found = prediction_powered_mean(
            np.where(np.arange(300) < n, truth, np.nan), truth + rng.normal(size=300)
        )
        missed += (miss := not found.ci_low <= np.exp(0.5) <= found.ci_high)
        unsaid += miss and "skewed_ratings" not in codes_of(found.notes)
        values = rng.normal(size=300)
        plain = prediction_powered_mean(
            np.where(np.arange(300) < n, values, np.nan), rng.normal(size=300)
        )
        noted_normal += "skewed_ratings" in codes_of(plain.notes)
    assert missed / trials > 0.08
    assert unsaid / trials < 0.08
    assert noted_normal / trials < 0.1


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_agreement_on_items_that_were_picked_by_their_label_is_warned_of(level):
    rng = np.random.default_rng(0)
    first = rng.choice(3, p=[0.5, 0.3, 0.2], size=300)
    second = np.where(rng.random(300) < 0.8, first, rng.choice(3, size=300))
    picked = (first == 2) | (rng.random(300) < 0.1)
    for again, expected in ((picked, True), (rng.permutation(300) < 80, False)):
        found = coefficients_at_level(
            [*range(300), *np.flatnonzero(again)],
            ["a"] * 300 + ["b"] * again.sum(),
            [*first, *second[again]],
            level=level,
        )
        for one in found:
            assert ("overlap_not_random" in codes_of(one.warnings)) == (expected and one.is_defined)
